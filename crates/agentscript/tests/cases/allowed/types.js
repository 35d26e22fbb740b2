//// annotation
// expect: ok 1
const a: number = 1; return a

//// parameters
// expect: ok 3
const f = (a: number, b?: number): number => a + (b ?? 0); return f(1, 2)

//// interface
// expect: ok 1
interface A { a: number }
const x: A = { a: 1 }; return x.a

//// type alias
// expect: ok 1
type A = { a: number } | null
const x: A = { a: 1 }; return x!.a

//// as
// expect: ok "a"
return ('a' as unknown) as string

//// as const
// expect: ok [1]
return [1] as const

//// satisfies
// expect: ok {"a": 1}
return { a: 1 } satisfies Record<string, number>

//// generics
// expect: ok 1
function id<T extends unknown>(x: T): T { return x }
return id<number>(1)

//// generic arrow
// expect: ok 1
const id = <T,>(x: T): T => x; return id(1)

//// class members
// expect: ok 1
class A<T> { private readonly x: number = 1; public get(): number { return this.x } }
return new A<string>().get()

//// abstract class
// expect: ok 1
abstract class A { abstract m(): number }
class B extends A { override m(): number { return 1 } }
return new B().m()

//// overloads
// expect: ok 2
function f(a: number): number
function f(a: string): string
function f(a: any) { return a }
return f(2)

//// function type
// expect: ok 1
const f: (a: number) => number = a => a; return f(1)

//// tuple
// expect: ok [1, "a"]
const t: [number, string] = [1, 'a']; return t

//// catch annotation
// expect: ok "x"
try { throw new Error('x') } catch (e: any) { return e.message }

//// rest parameter
// expect: ok 2
const f = (...a: number[]): number => a.length; return f(1, 2)

//// typed callback
// expect: ok [2]
return [1].map((x: number): number => x + 1)

//// call with type arguments
// expect: ok 1
const r = await Promise.resolve<number>(1); return r

//// assertion
// expect: ok 1
return <number>1

//// this parameter
// expect: ok 1
function f(this: { a: number }) { return this.a }
return f.call({ a: 1 })

//// conditional type
// expect: ok 1
type A<T> = T extends string ? 'a' : 'b'
return 1

//// mapped type
// expect: ok 1
type A = { [K in 'a' | 'b']?: number }
return 1

//// definite
// expect: ok 1
let a!: number; a = 1; return a

//// object type in a parameter
// expect: ok 3
const f = ({ a, b }: { a: number; b: number }) => a + b; return f({ a: 1, b: 2 })

//// generic call that is not one
// expect: ok [false, true]
const a = 1, b = 2, c = 0; return [a < b > (c), true].map((x, i) => i === 0 ? false : x)


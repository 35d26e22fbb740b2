//// regular expression behind a name
// expect: illegal IllegalBuiltinAccess
let x
/'/.test('a'); eval('1') //'

//// division across lines
// expect: ok 2
let x = 8, g = 1
const y = x
/4/g
return y

//// regular expression behind a type
// expect: illegal IllegalGlobalAccess
type X = T
/'/.test('a'); process.exit() //'

//// regular expression behind a type alone
// expect: ok true
type X = T;
return /'/.test("'") //'

//// regular expression behind a negated condition
// expect: illegal IllegalGlobalAccess
if (1) !/'/.test('a'); process.exit() //'

//// regular expression behind a negated block
// expect: illegal IllegalGlobalAccess
{} !/'/.test('a'); globalThis.x = 1 //'

//// this behind a negated regular expression
// expect: illegal IllegalGlobalAccess
if (1) !/'/.x; return this //'

//// ticks behind a negated regular expression
// expect: limit
{} !/'/.x; for (;;); //'

//// ticks behind a type
// expect: limit
type X = string
/'/.test('a'); while (1); //'

//// ticks behind a comparison with a template
// expect: limit
let a = 1, b = 2; a <!--b; for (;;) `
`

//// open comment in an expression
// expect: ok false
let a = 1, b = 2
return a <!--b

//// open comment that hides a line end
// expect: ok 7
let a = 1, b = 2, c = a <!--b
, d = 7
return d

//// close comment behind a decrement
// expect: ok true
let n = 3
return n-->
2

//// close comment at the start of a line
// expect: syntax 3:3
let n = 3
n
--> 2

//// close comment behind a comment
// expect: syntax 1:11
/* a */ --> return 1

//// comment in a regular expression
// expect: ok true
return /[/*]/.test('*') /* a */

//// comment behind a regular expression
// expect: ok "/\\/*/"
return String(/\/*/) //*/

//// template that looks like a comment
// expect: ok "<!--\n-->/*"
return `<!--
-->/*`

//// string that looks like a comment
// expect: ok "--><!--"
return '--><!--'

//// regular expression that looks like a comment
// expect: ok "<!--"
return /<!--/.source

//// negated decrement
// expect: ok true
let a = 1, b = 1
return a < ! --b === false

//// slash behind a block
// expect: ok true
{} /'/.test("'"); return true // '

//// slash behind a greater sign
// expect: ok false
return 1 > /x/

//// slash behind void
// expect: ok null
return void /'/ //'

//// slash behind an increment
// expect: ok 2
let a = 3, g = 1
return a++/2/g + .5

//// shadowed infinity
// expect: ok true
const f = (Infinity) => 1e999 > Infinity
return f(5)

//// key without end
// expect: ok 1
const o = { 1e999: 1 }
return o.Infinity

//// escaped name
// expect: ok 1
const \u0061b = 1
return a\u{62}

//// escaped global
// expect: illegal IllegalGlobalAccess
return \u0067lobalThis

//// directive in a function
// expect: ok 3
function f(a) { 'use strict'; return a + 1 }
return f(2)

//// text that looks like a directive
// expect: ok 3
function f(a = 2) { ('use strict'); return a + 1 }
return f()

//// halves of surrogate pairs
// expect: ok [1, 55357]
const a = '\ud83d'
return [a.length, a.charCodeAt(0)]

//// object at the start of a statement
// expect: ok 1
({ a: 1 }).a
return [{ a: 1 }].map(({ a }) => ({ a }).a)[0]

//// chains in parentheses
// expect: runtime TypeError
const a = undefined
return (a?.b).c

//// chains
// expect: ok null
const a = undefined
return a?.b.c

//// new of a call
// expect: ok 1
const f = () => class { x = 1 }
return new (f())().x

//// in at the head of a loop
// expect: ok 1
let n = 0
for (let a = ('x' in { x: 1 }) ? 1 : 0; n < a; n++);
return n

//// powers of negative numbers
// expect: ok 4
return (-2) ** 2

//// fields without semicolons
// expect: ok [1, 2]
class A {
  static
  a = 1
  'b' = 2
  ;[`c`]
  d
}
return [A.a, new A().b]

//// async names
// expect: ok 3
const async = (x) => x
return async(1) + async
(2)

//// types of every kind
// expect: ok [2, "a", 3]
interface A<T> { b: T }
declare const never: A<string>
abstract class C<T> implements A<T> {
  private readonly b: T
  declare x: number
  abstract y(): void
  z?(): void
  constructor(b: T) { this.b = b }
  get(this: C<T>): T { return this.b! }
}
class D extends C<string> { override get(): string { return <string>super.get() } }
function f(a: number): number
function f(a: any): any { return (a as number) + 1 }
let u!: number
for (u of [3] as number[]) { (u as any) = u! }
return [f<number>(1), new D('a')?.get()!, u satisfies number]

//// an escaped replacement character after half a surrogate pair ends no text
// expect: illegal IllegalCharacter
return '\ud800\�{1}"; globalThis.escaped = process; //'

//// the same in a template
// expect: illegal IllegalCharacter
return `\ud800\�{1}"; globalThis.escaped = process; //`

//// the same as a key
// expect: illegal IllegalCharacter
return { '\ud800\�{1}"; globalThis.escaped = process; //': 1 }

//// replacement characters and halves of pairs are texts like others
// expect: ok [2,3,"�","�"]
const a = '\ud800�', b = 'x\ufffd\udc00'; return [a.length, b.length, a[1], b[1]]

//// function
// expect: safe
const f = () => f(); f()

//// named
// expect: safe
function f() { return f() + 1 }
return f()

//// two functions
// expect: safe
const a = () => b(), b = () => a(); a()

//// getter
// expect: safe
const o = { get x() { return this.x } }; return o.x

//// toString
// expect: safe
const o = { toString() { return `${o}` } }; return `${o}`

//// valueOf
// expect: safe
const o = { valueOf() { return +o } }; return +o

//// JSON
// expect: safe
const o = { toJSON() { return JSON.stringify(o) } }; return JSON.stringify(o)

//// map
// expect: safe
const f = () => [1].map(f); f()

//// sort
// expect: safe
const f = () => [2, 1].sort(f); f()

//// replace
// expect: safe
const f = () => 'a'.replace('a', f); f()

//// constructor
// expect: safe
class A { constructor() { new A() } }
new A()

//// field
// expect: safe
class A { a = new A() }
new A()

//// default parameter
// expect: safe
const f = (a = f()) => a; f()

//// template tag
// expect: safe
const f = () => f``; f()

//// spread
// expect: safe
const f = () => f(...[1]); f()

//// caught
// expect: safe
const f = () => { try { f() } catch { f() } }; f()

//// finally
// expect: safe
const f = () => { try { f() } finally { f() } }; f()

//// bind
// expect: safe
let f = () => 1; for (let i = 0; i < 1e5; i++) f = f.bind(null); return f()

//// iterator
// expect: safe
const o = { [Symbol.iterator]: () => [...o] }; return [...o]

//// destructuring
// expect: safe
const o = { get a() { const { a } = o; return a } }; return o.a

//// instanceof
// expect: safe
const o = { [Symbol.hasInstance]: () => 1 instanceof o }; return 1 instanceof o

//// array toString
// expect: safe
let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return `${a}`


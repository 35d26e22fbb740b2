//// declaration
// expect: ok 2
function f(a) { return a + 1 } return f(1)

//// hoisted
// expect: ok 1
return f(); function f() { return 1 }

//// expression
// expect: ok 1
const f = function () { return 1 }; return f()

//// named expression
// expect: ok 6
const f = function g(n) { return n ? n * g(n - 1) : 1 }; return f(3)

//// arrow
// expect: ok 2
const f = a => a + 1; return f(1)

//// arrow with an object
// expect: ok {"a": 1}
return (a => ({ a }))(1)

//// arrow with a block
// expect: ok 1
return (() => { return 1 })()

//// defaults
// expect: ok 3
const f = (a, b = a + 1) => a + b; return f(1)

//// rest
// expect: ok 2
const f = (a, ...r) => r.length; return f(1, 2, 3)

//// destructured parameter
// expect: ok 3
const f = ({ a, b: [c] }) => a + c; return f({ a: 1, b: [2] })

//// closure
// expect: ok 2
const c = () => { let n = 0; return () => ++n }; const f = c(); f(); return f()

//// async
// expect: ok 1
const f = async () => 1; return await f()

//// async function
// expect: ok 2
async function f() { return 2 } return f()

//// generator
// expect: ok [1, 2]
function* g() { yield 1; yield 2 } return [...g()]

//// generator delegation
// expect: ok [1, 2, 3]
function* a() { yield 1; yield* [2, 3] } return [...a()]

//// async generator
// expect: ok [1, 2]
async function* g() { yield 1; yield 2 }
const r = []; for await (const x of g()) r.push(x); return r

//// arguments
// expect: ok 2
function f() { return arguments.length } return f(1, 2)

//// recursion
// expect: ok 120
const f = n => n <= 1 ? 1 : n * f(n - 1); return f(5)

//// callbacks
// expect: ok [2, 4]
return [1, 2].map(x => x * 2)

//// method
// expect: ok 1
return { m() { return 1 } }.m()

//// getter
// expect: ok 1
return { get a() { return 1 } }.a

//// setter
// expect: ok 2
const o = { set a(v) { this.b = v } }; o.a = 2; return o.b

//// bind
// expect: ok 3
const f = (a, b) => a + b; return f.bind(null, 1)(2)

//// call
// expect: ok 1
function f() { return this.a } return f.call({ a: 1 })

//// immediately called
// expect: ok 1
return (() => 1)()

//// currying
// expect: ok 3
return (a => b => a + b)(1)(2)


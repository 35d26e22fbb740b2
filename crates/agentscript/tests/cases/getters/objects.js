//// getter on the result
// expect: safe
return { get a() { return 1 } }

//// getter that throws on the result
// expect: safe
return { get a() { throw new Error('g') } }

//// getter that loops
// expect: safe
return { get a() { while (true) ; } }

//// setter on a variable
// expect: safe
let x; const o = { set a(v) { x = v } }; o.a = 1; return x

//// getter defined later
// expect: safe
const o = {}; Object.defineProperty(o, 'a', { get: () => 1, enumerable: true }); return o

//// getter on a tool argument
// expect: safe
return callTool('echo', { get a() { return 1 } })

//// getter that changes an argument
// expect: safe
const o = { get a() { this.b = 1; return 2 } }; return callTool('echo', o)

//// frozen getter
// expect: safe
return Object.freeze({ get a() { return 1 } }).a

//// class getter
// expect: safe
class A { get a() { return 1 } }; return new A().a

//// static getter
// expect: safe
class A { static get a() { return 1 } }; return A.a

//// getter by symbol
// expect: safe
return { get [Symbol.toStringTag]() { return 'x' } }.toString()

//// getter chain
// expect: safe
const o = { get a() { return this.b }, get b() { return this.a } }; return o.a


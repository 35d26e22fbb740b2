//// stack of an error
// expect: safe
return new Error('x').stack

//// stack of a thrown error
// expect: safe
try { null.x } catch (e) { return e.stack }

//// stack of a tool error
// expect: safe
try { await callTool('fail', {}) } catch (e) { return e.stack }

//// stackTraceLimit
// expect: safe
Error.stackTraceLimit = 100; return 1

//// error cause
// expect: safe
return new Error('x', { cause: callTool }).message

//// aggregate
// expect: safe
return new AggregateError([new Error('a')], 'b').errors.length

//// error toString gadget
// expect: safe
const e = new Error('x'); e.toString = () => 'y'; throw e

//// message getter
// expect: safe
const e = new Error('x'); Object.defineProperty(e, 'message', { get() { return 'y' } }); throw e

//// name object
// expect: safe
const e = new Error('x'); e.name = { toString: () => 'n' }; throw e

//// throws null
// expect: safe
throw null

//// throws undefined
// expect: safe
throw undefined

//// throws a function
// expect: safe
throw () => 1

//// throws a symbol
// expect: safe
throw Symbol('s')

//// throws a big object
// expect: safe
throw { a: 'x'.repeat(1000) }

//// throws a cycle
// expect: safe
const o = {}; o.o = o; throw o

//// throws in finally
// expect: safe
try { throw 1 } finally { throw 2 }

//// long message
// expect: safe
throw new Error('x'.repeat(100000))

//// recursion error reused
// expect: safe
let e; const f = () => f(); try { f() } catch (x) { e = x } return e.name

//// error in a promise
// expect: safe
return Promise.reject(new Error('p'))

//// unhandled rejection
// expect: safe
Promise.reject(new Error('p')); return 1

//// error subclass
// expect: safe
class E extends Error { get name() { return 'E' } }; throw new E('x')


//// toJSON
// expect: safe
return callTool('echo', { toJSON: () => ({ a: 1 }) })

//// toJSON that throws
// expect: safe
return callTool('echo', { toJSON() { throw new Error('x') } })

//// getter that counts
// expect: safe
let n = 0; return callTool('echo', { get a() { return ++n } })

//// cycle
// expect: safe
const o = {}; o.o = o; return callTool('echo', o)

//// BigInt
// expect: safe
return callTool('echo', { a: 1n })

//// function
// expect: safe
return callTool('echo', () => 1)

//// no arguments
// expect: safe
return callTool()

//// name with toString
// expect: safe
return callTool({ toString: () => 'echo' }, {})

//// name as an array
// expect: safe
return callTool(['echo'], {})

//// name as a symbol
// expect: safe
return callTool(Symbol('echo'), {})

//// empty name
// expect: safe
return callTool('', {})

//// long name
// expect: safe
return callTool('x'.repeat(1e6), {})

//// name with a nul
// expect: safe
return callTool('echo\u0000', {})

//// huge input
// expect: safe
return callTool('echo', { a: 'x'.repeat(1e7) })

//// deep input
// expect: safe
let o = {}; for (let i = 0; i < 1e4; i++) o = { o }; return callTool('echo', o)

//// input of text
// expect: safe
return callTool('echo', '{}')

//// input null
// expect: safe
return callTool('echo', null)

//// options getter
// expect: safe
return callTool('echo', {}, { get throwOnError() { throw new Error('x') } })

//// options text
// expect: safe
return callTool('echo', {}, 'x')

//// own proto key
// expect: safe
return callTool('echo', JSON.parse('{"__proto__": {"admin": true}}'))

//// constructor key
// expect: safe
return callTool('echo', { constructor: 1 })

//// lone surrogate
// expect: safe
return callTool('echo', { a: '\ud800' })

//// call with a receiver
// expect: safe
return callTool.call({ name: 'x' }, 'echo', {})

//// apply
// expect: safe
return callTool.apply(null, ['echo', {}])

//// then on the input
// expect: safe
return callTool('echo', { then(r) { r(1) } })

//// line feed in a name
// expect: safe
return callTool('echo\n', {})

//// getTool of a number
// expect: safe
return getTool(1)

//// getTool of nothing
// expect: safe
return getTool()


//// huge text
// expect: safe
return 'x'.repeat(2e6)

//// huge array
// expect: safe
return Array.from({ length: 99999 }, () => 'xxxxxxxxxxxxxxx')

//// cycle
// expect: safe
const o = {}; o.o = o; return o

//// deep
// expect: safe
let o = {}; for (let i = 0; i < 1000; i++) o = { o }; return o

//// BigInt
// expect: safe
return 1n

//// function
// expect: safe
return () => 1

//// symbol
// expect: safe
return Symbol('a')

//// date
// expect: safe
return new Date(0)

//// invalid date
// expect: safe
return new Date(NaN)

//// map
// expect: safe
return new Map([['a', 1]])

//// set
// expect: safe
return new Set([1])

//// not a number
// expect: safe
return [NaN, Infinity, -0]

//// undefined in an array
// expect: safe
return [undefined, () => 1]

//// promise inside
// expect: safe
return { p: Promise.resolve(1) }

//// lone surrogate
// expect: safe
return '\ud800'

//// sparse
// expect: safe
return Array(5)

//// the tool itself
// expect: safe
return callTool

//// the context
// expect: safe
return codecallContext

//// shared references doubling
// expect: safe
let o = { a: 1 }; for (let i = 0; i < 30; i++) o = { a: o, b: o }; return o

//// nul characters
// expect: safe
return '\u0000'

//// proto in a result
// expect: safe
return JSON.parse('{"__proto__": {"a": 1}}')

//// regular expression
// expect: safe
return /x/

//// typed array
// expect: safe
return new Uint8Array(3)

//// error
// expect: safe
return new Error('x')

//// generator
// expect: safe
return (function* () { yield 1 })()


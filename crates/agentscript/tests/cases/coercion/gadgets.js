//// toString that throws
// expect: safe
return `${{ toString() { throw new Error('x') } }}`

//// valueOf that loops
// expect: safe
return +{ valueOf() { return {} }, toString() { return {} } }

//// key with side effects
// expect: safe
let n = 0; const k = { toString() { return n++ ? 'b' : 'a' } }; return { a: 1, b: 2 }[k]

//// key turning bad
// expect: safe
let n = 0; const k = { toString() { return n++ ? ['con', 'structor'].map(x => x).join('') : 'a' } }; const o = { a: 1 }; o[k]; return o[k]

//// sort that lies
// expect: safe
return [3, 1, 2].sort(() => Math.random() - 0.5).length

//// sort that throws
// expect: safe
[2, 1].sort(() => { throw new Error('s') })

//// toJSON that throws
// expect: safe
return { toJSON() { throw new Error('j') } }

//// toJSON that recurses
// expect: safe
const o = { toJSON() { return o } }; return o

//// toJSON of undefined
// expect: safe
return { toJSON: () => undefined }

//// BigInt mixed
// expect: safe
return 1n + 1

//// symbol as text
// expect: safe
return `${Symbol('a')}`

//// symbol key
// expect: safe
const s = Symbol('constructor'); return { [s]: 1 }[s]

//// number of an object
// expect: safe
return Number({ valueOf: () => 4 })

//// date from an object
// expect: safe
return new Date({ valueOf: () => NaN }).getTime()

//// length that changes
// expect: safe
return [].concat({ length: 3, [Symbol.isConcatSpreadable]: true, 0: 1 }).length

//// array-like with a getter
// expect: safe
return Array.from({ length: 2, get 0() { return 1 } })

//// index of many zeros
// expect: safe
return [][1e300]

//// negative length
// expect: safe
return new Array(-1)

//// huge index
// expect: safe
const a = []; a[4294967294] = 1; return a.length


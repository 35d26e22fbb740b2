//// join of a huge array
// expect: safe
return Array(2 ** 32 - 2).join()

//// fill
// expect: safe
const a = []; a.length = 1e8; return a.fill(0).length

//// copyWithin
// expect: safe
const a = []; a.length = 2 ** 32 - 1; a.copyWithin(1, 0); return 1

//// sparse reverse
// expect: safe
const a = []; a.length = 2 ** 32 - 1; a.reverse(); return 1

//// sparse sort
// expect: safe
const a = []; a.length = 2 ** 32 - 1; a.sort(); return 1

//// sparse includes
// expect: safe
const a = []; a.length = 2 ** 32 - 1; return a.includes(1)

//// sparse indexOf
// expect: safe
const a = []; a.length = 2 ** 32 - 1; return a.indexOf(undefined)

//// lastIndexOf
// expect: safe
return Array(2 ** 32 - 1).lastIndexOf(1)

//// quadratic indexOf
// expect: safe
const s = 'a'.repeat(1e6); return s.indexOf('a'.repeat(5e5) + 'b')

//// quadratic lastIndexOf
// expect: safe
const s = 'a'.repeat(1e6); return s.lastIndexOf('b' + 'a'.repeat(5e5))

//// replaceAll growth
// expect: safe
let s = 'a'; for (let i = 0; i < 40; i++) s = s.replaceAll('a', 'aaaa'); return s.length

//// split of a long text
// expect: safe
return 'a'.repeat(1e7).split('').length

//// parseFloat of a long text
// expect: safe
return parseFloat('1'.repeat(1e7))

//// BigInt of a long text
// expect: safe
return BigInt('9'.repeat(1e6)).toString().length

//// BigInt power
// expect: safe
return (2n ** 10000000n).toString().length

//// BigInt shift
// expect: safe
return (1n << 1000000000n) > 0n

//// toFixed loop
// expect: safe
let s = ''; for (let i = 0; i < 1e9; i++) s = (i / 3).toFixed(100)

//// padStart
// expect: safe
return 'a'.padStart(2 ** 30).length

//// localeCompare loop
// expect: safe
return Array.from({ length: 1e6 }, (_, i) => 'k' + i).sort((a, b) => a.localeCompare(b)).length

//// flat
// expect: safe
let a = []; for (let i = 0; i < 10000; i++) a = [a]; return a.flat(Infinity).length

//// JSON.stringify of a deep object
// expect: safe
let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; return JSON.stringify(o).length

//// JSON.parse of a deep text
// expect: safe
return JSON.parse('['.repeat(1e6) + ']'.repeat(1e6))

//// join of a cycle
// expect: safe
const a = []; a.push(a); return a.join()

//// concat doubling
// expect: safe
let a = [1]; for (let i = 0; i < 40; i++) a = a.concat(a); return a.length

//// spread doubling
// expect: safe
let a = [1]; for (let i = 0; i < 40; i++) a = [...a, ...a]; return a.length

//// Array.from with a length
// expect: safe
return Array.from({ length: 2 ** 31 }).length

//// typed array
// expect: safe
return new Uint8Array(2 ** 31).length

//// typed array sort
// expect: safe
return new Float64Array(1e7).sort().length

//// normalize of a long text
// expect: safe
return '\u1e9b\u0323'.repeat(1e6).normalize('NFKD').length

//// toUpperCase of a long text
// expect: safe
return 'ß'.repeat(1e7).toUpperCase().length

//// encodeURIComponent
// expect: safe
return encodeURIComponent('ü'.repeat(1e7)).length

//// Map growth
// expect: safe
const m = new Map(); for (let i = 0; ; i++) m.set(i, i)

//// Set growth
// expect: safe
const s = new Set(); for (;;) s.add({})

//// unshift
// expect: safe
const a = []; for (;;) a.unshift(1)

//// splice
// expect: safe
const a = new Array(1e6).fill(1); while (a.length) a.splice(0, 1)

//// at every index
// expect: safe
const a = []; a[2 ** 32 - 2] = 1; for (const x of a) ;

//// every on sparse
// expect: safe
return Array(2 ** 32 - 1).every(x => x)

//// reduce on sparse
// expect: safe
return Array(2 ** 32 - 1).reduce((a, b) => a + b, 0)

//// keys of a huge array
// expect: safe
return Object.keys('x'.repeat(1e7)).length

//// date loop
// expect: safe
const end = Date.now() + 1e9; while (Date.now() < end) ;


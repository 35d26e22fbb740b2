//// doubling a string
// expect: safe
let s = 'x'; for (;;) s += s

//// doubling forty times
// expect: safe
let s = 'x'; for (let i = 0; i < 40; i++) s += s; return s.length

//// repeat
// expect: safe
return 'x'.repeat(2 ** 30 - 1).length

//// array of arrays
// expect: safe
const a = []; for (;;) a.push(new Array(10000).fill(0))

//// closures
// expect: safe
const fs = []; for (;;) { const big = new Array(1000).fill(0); fs.push(() => big) }

//// objects
// expect: safe
const a = []; for (;;) a.push({ a: {}, b: {}, c: {} })

//// array buffers
// expect: safe
const a = []; for (;;) a.push(new ArrayBuffer(1e6))

//// one large buffer
// expect: safe
return new ArrayBuffer(2 ** 33).byteLength

//// promises
// expect: safe
const a = []; for (;;) a.push(new Promise(() => {}))

//// template growth
// expect: safe
let s = 'ab'; for (;;) s = `${s}${s}`

//// symbols
// expect: safe
const a = []; for (;;) a.push(Symbol('x'.repeat(1000)))

//// big integers
// expect: safe
let n = 2n; for (;;) n *= n

//// property names
// expect: safe
const o = {}; for (let i = 0; ; i++) o['k' + i] = i

//// generators
// expect: safe
const a = []; function* g() { yield 1 }
for (;;) a.push(g())

//// caught and repeated
// expect: safe
const a = []; for (;;) { try { a.push('x'.repeat(1e7)) } catch {} }

//// weak maps
// expect: safe
const w = new WeakMap(); const a = []; for (;;) { const k = {}; a.push(k); w.set(k, new Array(100)) }

//// dates
// expect: safe
const a = []; for (;;) a.push(new Date())

//// regular expressions
// expect: safe
const a = []; for (;;) a.push(/x/g)

//// errors
// expect: safe
const a = []; for (;;) a.push(new Error('x'))

//// array length
// expect: safe
const a = [1]; a.length = 2 ** 32 - 1; return a.map(x => x).length

//// concatenated numbers
// expect: safe
let s = ''; for (let i = 0; ; i++) s += i


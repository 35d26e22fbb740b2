//// doubling thirty times
// expect: limit
let s = 'a'; for (let i = 0; i < 30; i++) s = s + s; return s.length

//// doubling twenty-six times
// expect: limit
let s = 'a'; for (let i = 0; i < 26; i++) { s = s + s } return s.length

//// doubling in the head of the loop
// expect: limit
for (let s = 'a', i = 0; i < 30; i++, s += s) {} return 1

//// doubling by template
// expect: limit
let s = 'a'; let i = 0; while (i++ < 30) s = `${s}${s}`; return s.length

//// doubling by concat
// expect: limit
let s = 'a'; let i = 0; do { s = s.concat(s) } while (i++ < 30); return s.length

//// doubling by a function
// expect: limit
const twice = (s, n) => n === 0 ? s.length : twice(s + s, n - 1); return twice('a', 30)

//// doubling by a named function
// expect: limit
function twice(s, n) { if (n === 0) return s.length; return twice(s + s, n - 1) } return twice('ab', 29)

//// doubling by reduce
// expect: limit
return Array.from({ length: 30 }).reduce((s) => s + s, 'a').length

//// two texts in turn
// expect: limit
let a = 'a', b = 'b'; for (let i = 0; i < 45; i++) { const c = a + b; a = b; b = c } return b.length

//// long steps
// expect: limit
let s = ''; const step = 'x'.repeat(1e6); for (let i = 0; i < 100; i++) s += step; return s.length

//// caught
// expect: limit
let s = 'a'; for (let i = 0; i < 30; i++) { try { s = s + s } catch { s = 'a' } } return 'free'

//// in an async function
// expect: limit
const grow = async (s) => { for (let i = 0; i < 30; i++) { await null; s += s } return s.length }; return await grow('a')

//// in a generator
// expect: limit
function* grow() { let s = 'a'; while (true) { s += s; yield s.length } } let n = 0; for (const l of grow()) { if (n++ > 30) return l }

//// kept in arrays
// expect: limit
const kept = []; let s = 'a'; for (let i = 0; i < 40; i++) { s += s; kept.push(s) } return kept.length

//// in a field
// expect: safe
const o = { s: 'a' }; for (let i = 0; i < 40; i++) o.s += o.s; return o.s.length

//// used after it grew
// expect: limit
const o = { s: 'a' }; for (let i = 0; i < 29; i++) o.s += o.s; return o.s.indexOf('b')

//// repeat of a repeat
// expect: limit
return 'x'.repeat(1e4).repeat(1e4).length

//// padding
// expect: limit
return ''.padEnd(2 ** 28, 'ab').length

//// join of a long array
// expect: limit
return new Array(1e5).fill('x'.repeat(1000)).join('').length

//// split of a long text
// expect: limit
return 'x'.repeat(1e7).split('').length

//// set of numbers
// expect: limit
const s = new Set(); for (let i = 0; ; i++) s.add(i)

//// map of objects
// expect: limit
const m = new Map(); for (;;) m.set({}, [])

//// nested arrays
// expect: limit
let a = []; for (;;) a = [a, a, a]

//// spread doubling
// expect: limit
let a = [1]; for (let i = 0; i < 40; i++) a = [...a, ...a]; return a.length

//// push of itself
// expect: runtime RangeError
const a = [1]; for (let i = 0; i < 40; i++) a.push(...a); return a.length

//// concat doubling
// expect: limit
let a = [1]; for (let i = 0; i < 40; i++) a = a.concat(a); return a.length

//// object keys
// expect: limit
const o = {}; for (let i = 0; ; i++) o['k' + i] = i

//// bigint doubling
// expect: safe
let n = 2n; for (;;) n = n * n

//// typed arrays
// expect: limit
const a = []; for (;;) a.push(new Uint8Array(65536))

//// blocks of one size freed, then another
// expect: safe
for (let size = 1; size < 500; size++) { let a = []; for (let i = 0; i < 150; i++) a.push(new Array(size).fill(i)); a = null } return 1

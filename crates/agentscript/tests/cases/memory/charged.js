//// member growth unused
// expect: memory
const o = { s: 'aaaa' }; for (let i = 0; i < 28; i++) { o.s += o.s } return 1

//// element growth unused
// expect: memory
const a = ['aaaa']; for (let i = 0; i < 28; i++) { a[0] += a[0] } return 1

//// member plus member
// expect: memory
const o = { s: 'aaaa' }; for (let i = 0; i < 28; i++) { o.s = o.s + o.s } return 1

//// concat member
// expect: memory
const o = { s: 'aaaa' }; for (let i = 0; i < 28; i++) { o.s = o.s.concat(o.s) } return 1

//// template member
// expect: memory
const o = { s: 'aaaa' }; for (let i = 0; i < 28; i++) { o.s = `${o.s}${o.s}` } return 1

//// spread doubling
// expect: limit
let x = [1]; while (true) { x = [...x, ...x] }

//// repeat
// expect: memory
const s = 'x'.repeat(2 ** 29); return s.length

//// padEnd
// expect: memory
return 'x'.padEnd(2 ** 29, 'ab').length

//// padStart ladder
// expect: memory
let s = 'x'; for (;;) { s = s.padStart(s.length * 3, s) }

//// join
// expect: limit
return Array(100000).join('x'.repeat(10000)).length

//// join growth
// expect: limit
let a = ['x']; for (let i = 0; i < 40; i++) { a = [a.join('yy') + a.join('zz')]; a.push(a[0]) } return a.length

//// stringify growth
// expect: limit
let s = '"'; for (let i = 0; i < 40; i++) s = JSON.stringify(s); return s.length

//// stringify member growth
// expect: limit
const o = { s: '"' }; for (let i = 0; i < 40; i++) o.s = JSON.stringify([o.s, o.s]); return 1

//// set growth
// expect: limit
const m = new Set(); for (let i = 0; ; i++) m.add('k'.padEnd(1000, String(i)))

//// class field
// expect: memory
class A { s = 'ab'; grow() { this.s += this.s; return this } } const a = new A(); for (let i = 0; i < 28; i++) a.grow(); return 1

//// private field
// expect: memory
class A { #s = 'ab'; grow() { this.#s += this.#s; return this } } const a = new A(); for (let i = 0; i < 28; i++) a.grow(); return 1

//// static field
// expect: memory
class A { static s = 'ab' } for (let i = 0; i < 28; i++) A.s += A.s; return 1

//// destructuring default
// expect: memory
let s = 'ab'; for (let i = 0; i < 28; i++) { const { t = s + s } = {}; s = t } return 1

//// destructuring default member
// expect: memory
const o = { s: 'ab' }; for (let i = 0; i < 28; i++) { ({ t: o.s = o.s + o.s } = {}) } return 1

//// array destructuring swap
// expect: memory
let [a, b] = ['ab', 'cd']; for (let i = 0; i < 40; i++) { [a, b] = [a + b, b + a] } return 1

//// param default
// expect: memory
const f = (n, s = 'ab', t = s + s) => n ? f(n - 1, t) : 1; return f(28)

//// straight line
// expect: memory
let s = 'ab'; s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s; return 1

//// straight line catch
// expect: memory
let s = 'ab'; try { s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s;s+=s; } catch (e) { return 'caught ' + e.message } return 1

//// getter growth
// expect: memory
const o = { v: 'ab', get s() { return this.v }, set s(x) { this.v = x } }; for (let i = 0; i < 28; i++) o.s += o.s; return 1

//// reduce growth
// expect: memory
return [...Array(28).keys()].reduce((o) => ({ s: o.s + o.s }), { s: 'ab' }) ? 1 : 0

//// map entry growth
// expect: memory
const m = new Map([['k', 'ab']]); for (let i = 0; i < 28; i++) m.set('k', m.get('k') + m.get('k')); return 1

//// generator growth
// expect: memory
function* g() { let s = 'ab'; while (true) { yield s; s = s + s } } let n = 0; for (const s of g()) { if (n++ > 28) return 1 }

//// generator growth via box
// expect: memory
function* g(o) { while (true) { yield o; o.s = o.s + o.s } } let n = 0; for (const s of g({ s: 'ab' })) { if (n++ > 28) return 1 }

//// logical assign
// expect: memory
const o = { s: 'ab' }; for (let i = 0; i < 28; i++) { o.s &&= o.s + o.s } return 1

//// closure growth
// expect: memory
const box = (() => { let s = 'ab'; return { grow: () => { s += s }, } })(); for (let i = 0; i < 28; i++) box.grow(); return 1

//// typed array
// expect: memory
const a = []; for (;;) a.push(new Uint8Array(1000000))

//// fill of computed
// expect: limit
const n = 1e5 * 1e4; return Array(n).fill(0).length

//// split
// expect: limit
return 'x'.repeat(8e6).split('').length

//// spread string
// expect: limit
return [...'x'.repeat(8e6)].length

//// flat
// expect: limit
let a = [1, 2]; for (;;) a = [a, a].flat(Infinity)

//// encodeURIComponent doubling
// expect: limit
let s = '\u4e2d'; for (;;) s = encodeURIComponent(s) + s

//// normalize
// expect: limit
let s = '\ufdfa'; for (;;) { s = s.normalize('NFKD') + s }

//// toUpperCase
// expect: limit
let s = '\u0390'; for (;;) { s = s.toUpperCase() + s + s }

//// object from entries
// expect: limit
const o = {}; for (let i = 0; ; i++) o['k' + i] = 'v'.repeat(1000)

//// catch memory
// expect: limit
for (;;) { try { const a = []; for (;;) a.push('x'.repeat(1e6)) } catch (e) { } }

//// finally memory
// expect: memory
try { 'x'.repeat(2 ** 28) } finally { return 'escaped' }

//// catch memory once
// expect: memory
try { let s = 'x'.repeat(2 ** 28) } catch (e) { return 'caught ' + e }

//// promise catch memory
// expect: memory
return Promise.resolve().then(() => 'x'.repeat(2 ** 28)).catch((e) => 'caught ' + e)

//// concat many args
// expect: memory
const s = 'x'.repeat(4e6); return ''.concat(s, s, s, s, s, s, s, s, s, s).length

//// optional chain growth by concat, unused
// expect: memory
const o = { s: 'aaaa' }; for (let i = 0; i < 28; i++) { o.s = o?.s.concat(o.s) } return 1

//// optional call growth by concat, unused
// expect: memory
const o = { s: 'aaaa' }; for (let i = 0; i < 28; i++) { o.s = o.s.concat?.(o.s) } return 1

//// optional chain growth by concat behind another call, unused
// expect: memory
const o = { s: 'aaaa' }; for (let i = 0; i < 28; i++) { o.s = o?.s.concat(o.s).toString() } return 1

//// optional chain with concat that finds nothing
// expect: ok [null, "ab", 3]
const a = null, b = { t: 'a' }; return [a?.t.concat('b') ?? null, b?.t.concat('b'), b?.t.concat('bc').length]

//// optional chain with concat that ends in a member keeps no text
// expect: ok 8388608
const o = { s: 'aaaa'.repeat(1048576) }; let n = 0; for (let i = 0; i < 1; i++) { n = o?.s.concat(o.s).length } return n

//// growth by concat that was taken out
// expect: memory
const f = ''.concat; const o = { s: 'aaaa' }; for (let i = 0; i < 40; i++) { o.s = f.call(o.s, o.s) } return 1

//// growth by concat under a computed key
// expect: memory
const k = ['con', 'cat'].join(''); const o = { s: 'aaaa' }; for (let i = 0; i < 40; i++) { o.s = o.s[k](o.s) } return 1

//// growth by a tag
// expect: memory
const t = (s, ...v) => String.raw(s, ...v); let s = 'aaaa'; for (let i = 0; i < 40; i++) { s = t`${s}${s}` } return 1

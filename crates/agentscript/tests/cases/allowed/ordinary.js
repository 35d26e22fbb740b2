//// nested destructuring with defaults
// expect: ok [2,{"x":1,"y":2},1,9]
const { a: { b = 2, ...rest } = {}, c: [d, , e = 9] } = { a: { x: 1, y: 2 }, c: [1, 2] }; return [b, rest, d, e]

//// swap by destructuring
// expect: ok [2,1]
let a = 1, b = 2; [a, b] = [b, a]; return [a, b]

//// parameters destructured
// expect: ok ["1none","2x"]
const f = ({ id, tags: [first = 'none'] = [] }) => id + first; return [f({ id: 1 }), f({ id: 2, tags: ['x'] })]

//// destructuring in a loop
// expect: ok ["a1","b2"]
const out = []; for (const [k, { v }] of Object.entries({ a: { v: 1 }, b: { v: 2 } })) out.push(k + v); return out

//// computed keys
// expect: ok {"status":1,"statusCode":2}
const field = 'status'; const o = { [field]: 1, [field + 'Code']: 2 }; return o

//// rest of an object
// expect: ok {"a":2,"b":3}
const { secret, ...open } = { secret: 1, a: 2, b: 3 }; return open

//// spread merge
// expect: ok {"a":1,"b":3}
return { ...{ a: 1, b: 2 }, b: 3, ...null, ...undefined }

//// optional chaining
// expect: ok ["x",null,7,null,1]
const u = { p: { n: ['x'] }, f() { return 7 } }; return [u?.p?.n?.[0], u.q?.r.s, u.f?.(), u.g?.(), u?.['p']?.n.length]

//// nullish
// expect: ok [0,"",1,1]
const v = { z: 0, e: '' }; return [v.z ?? 1, v.e ?? 1, v.n ?? 1, v.z || 1]

//// logical assignment
// expect: ok {"a":5,"b":6,"c":7}
const o = { a: null, b: 1, c: 0 }; o.a ??= 5; o.b &&= 6; o.c ||= 7; return o

//// template literals
// expect: ok "n is 3, twice 6, big 3"
const n = 3; return `n is ${n}, twice ${n * 2}, ${n > 2 ? `big ${n}` : 'small'}`

//// tagged template
// expect: ok "a|b|c1,2"
const tag = (s, ...v) => s.raw.join('|') + v.join(','); return tag`a${1}b${2}c`

//// sort with comparator
// expect: ok [1,2,5,10]
return [5, 1, 10, 2].sort((a, b) => a - b)

//// sort objects by two keys
// expect: ok ["c","a","b"]
return [{ n: 'b', v: 1 }, { n: 'a', v: 1 }, { n: 'c', v: 0 }].sort((x, y) => x.v - y.v || x.n.localeCompare(y.n)).map((x) => x.n)

//// sort is stable
// expect: ok "bdac"
return [[1, 'a'], [0, 'b'], [1, 'c'], [0, 'd']].sort((x, y) => x[0] - y[0]).map((x) => x[1]).join('')

//// toSorted leaves the original
// expect: ok [[1,2,3],[3,1,2]]
const a = [3, 1, 2]; return [a.toSorted(), a]

//// reverse and slice
// expect: ok [[4,3,2,1],[3,4],[2,3]]
const a = [1, 2, 3, 4]; return [a.slice().reverse(), a.slice(-2), a.slice(1, -1)]

//// map filter reduce
// expect: ok 35
return [1, 2, 3, 4, 5].filter((n) => n % 2).map((n) => n * n).reduce((s, n) => s + n, 0)

//// reduce to an index
// expect: ok {"a":1,"b":2}
return [{ id: 'a', v: 1 }, { id: 'b', v: 2 }].reduce((o, r) => ({ ...o, [r.id]: r.v }), {})

//// group by hand
// expect: ok {"x":[1,3],"y":[2]}
const g = {}; for (const r of [{ k: 'x', v: 1 }, { k: 'y', v: 2 }, { k: 'x', v: 3 }]) (g[r.k] ??= []).push(r.v); return g

//// find and findLast
// expect: ok [3,2,2,true,true]
const a = [1, 2, 3, 4]; return [a.find((n) => n > 2), a.findIndex((n) => n > 2), a.findLast((n) => n < 3), a.some((n) => n > 3), a.every((n) => n > 0)]

//// flat and flatMap
// expect: ok [[1,2,3],[1,10,2,20]]
return [[1, [2, [3]]].flat(Infinity), [1, 2].flatMap((n) => [n, n * 10])]

//// array from
// expect: ok [[0,1,4],["a","b","c"],[1,2]]
return [Array.from({ length: 3 }, (_, i) => i * i), Array.from('abc'), Array.from(new Set([1, 1, 2]))]

//// array of and fill
// expect: ok [[1,2],["x","x","x"],[0,0]]
return [Array.of(1, 2), new Array(3).fill('x'), Array(2).fill(0)]

//// includes and at
// expect: ok [true,3,"c",true]
return [[1, NaN].includes(NaN), [1, 2, 3].at(-1), 'abc'.at(-1), 'abc'.includes('b')]

//// splice and copyWithin
// expect: ok [[1,"x",4,5],[3,4,3,4]]
const a = [1, 2, 3, 4, 5]; a.splice(1, 2, 'x'); return [a, [1, 2, 3, 4].copyWithin(0, 2)]

//// entries of an array
// expect: ok ["0a","1b"]
const out = []; for (const [i, v] of ['a', 'b'].entries()) out.push(i + v); return out

//// join and split
// expect: ok [["a","b","c"],"a-b",["a","b","c"]]
return ['a,b;c'.split(/[,;]/), ['a', 'b'].join('-'), 'abc'.split('')]

//// map counts
// expect: ok [["a",3],["b",1],["c",1]]
const m = new Map(); for (const w of 'a b a c a'.split(' ')) m.set(w, (m.get(w) ?? 0) + 1); return [...m.entries()].sort((x, y) => y[1] - x[1])

//// map with object keys
// expect: ok [1,false,1]
const k = {}; const m = new Map([[k, 1]]); return [m.get(k), m.has({}), m.size]

//// set operations
// expect: ok [[2,3],4]
const a = new Set([1, 2, 3]), b = new Set([2, 3, 4]); return [[...a].filter((x) => b.has(x)), [...new Set([...a, ...b])].length]

//// weak map cache
// expect: ok [5,false]
const cache = new WeakMap(); const k = {}; cache.set(k, 5); return [cache.get(k), cache.has({})]

//// regex named groups
// expect: ok ["2024","05","06",0]
const m = '2024-05-06'.match(/(?<y>\d{4})-(?<m>\d\d)-(?<d>\d\d)/); return [m.groups.y, m.groups.m, m[3], m.index]

//// regex replace with function
// expect: ok "a<2>b<44>"
return 'a1b22'.replace(/\d+/g, (n) => '<' + n * 2 + '>')

//// regex matchAll
// expect: ok [["k",1],["j",2]]
return [...'k=1&j=2'.matchAll(/(\w)=(\d)/g)].map((m) => [m[1], Number(m[2])])

//// regex sticky and unicode
// expect: ok [2,false,true]
return ['\u{1F600}x'.match(/./u)[0].length, /b/y.test('ab'), /^\p{Lu}/u.test('Éa')]

//// regex lookbehind
// expect: ok ["42","7"]
return 'price: $42, cost: $7'.match(/(?<=\$)\d+/g)

//// regex exec in a loop
// expect: ok [1,2,5,6]
const r = /o/g; const at = []; let m; while ((m = r.exec('foo boo')) !== null) at.push(m.index); return at

//// string padding and trimming
// expect: ok ["007","a..|","x","a-b-"]
return ['7'.padStart(3, '0'), 'a'.padEnd(3, '.') + '|', '  x '.trim(), 'aXbX'.replaceAll('X', '-')]

//// string code points
// expect: ok [3,97,"😀","SS","xxx"]
return [[...'a\u{1F600}b'].length, 'a'.codePointAt(0), String.fromCodePoint(128512), 'ß'.toUpperCase(), 'x'.repeat(3)]

//// number formats
// expect: ok ["1234.57","ff",255,31,3.5,"0.300"]
return [(1234.5678).toFixed(2), (255).toString(16), parseInt('ff', 16), Number('0x1f'), parseFloat('3.5kg'), (0.1 + 0.2).toPrecision(3)]

//// number checks
// expect: ok [true,false,true,true,9007199254740991]
return [Number.isInteger(5.0), Number.isSafeInteger(2 ** 53), isNaN('x'), Number.EPSILON > 0, Number.MAX_SAFE_INTEGER]

//// math
// expect: ok [5,3,-2,5,-1,31,3]
return [Math.max(...[1, 5, 3]), Math.round(2.5), Math.trunc(-2.5), Math.hypot(3, 4), Math.sign(-3), Math.clz32(1), Math.cbrt(27)]

//// bigint
// expect: ok "184467440737095516162"
return String(2n ** 64n) + (5n / 2n)

//// bit operations
// expect: ok [1,7,6,-6,16,-4,15]
return [5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 4, -8 >> 1, -8 >>> 28]

//// date arithmetic
// expect: ok ["2024-03-01T00:00:00.000Z",5]
const d = new Date(Date.UTC(2024, 1, 28)); d.setUTCDate(d.getUTCDate() + 2); return [d.toISOString(), d.getUTCDay()]

//// date parsing
// expect: ok [1704164645000,1704067200000,null]
return [new Date('2024-01-02T03:04:05Z').getTime(), Date.parse('2024-01-01T00:00:00.000Z'), new Date('no').getTime()]

//// date difference in days
// expect: ok 29
const ms = new Date('2024-03-01T00:00:00Z') - new Date('2024-02-01T00:00:00Z'); return ms / 86400000

//// date json
// expect: ok "{\"at\":\"1970-01-01T00:00:00.000Z\"}"
return JSON.stringify({ at: new Date(0) })

//// json round trip
// expect: ok {"a":[1,{"b":null}],"s":"é\"\n"}
const o = { a: [1, { b: null }], s: 'é"\n' }; return JSON.parse(JSON.stringify(o))

//// json indent
// expect: ok "{\n  \"a\": 1,\n  \"b\": [\n    2\n  ]\n}"
return JSON.stringify({ a: 1, b: [2] }, null, 2)

//// json parse error
// expect: ok true
try { JSON.parse('{') } catch (e) { return e instanceof SyntaxError }

//// closure counter
// expect: ok 2
const counter = () => { let n = 0; return { up: () => ++n, get value() { return n } } }; const c = counter(); c.up(); c.up(); return c.value

//// currying
// expect: ok 6
const add = (a) => (b) => (c) => a + b + c; return add(1)(2)(3)

//// memoized recursion
// expect: ok 12586269025
const memo = {}; const fib = (n) => n < 2 ? n : memo[n] ??= fib(n - 1) + fib(n - 2); return fib(50)

//// compose
// expect: ok 11
const compose = (...fs) => (x) => fs.reduceRight((v, f) => f(v), x); return compose((x) => x + 1, (x) => x * 2)(5)

//// default and rest parameters
// expect: ok [[1,2,[]],[1,5,[6,7]]]
const f = (a, b = a * 2, ...rest) => [a, b, rest]; return [f(1), f(1, 5, 6, 7)]

//// hoisted function
// expect: ok 8
return twice(4); function twice(n) { return n * 2 }

//// immediately called
// expect: ok 1024
return (() => { const x = 2; return x ** 10 })()

//// generator
// expect: ok [2,3,4]
function* range(a, b) { while (a < b) yield a++ } return [...range(2, 5)]

//// generator with return
// expect: ok [42,true]
function* g() { const got = yield 1; yield got * 2 } const it = g(); it.next(); return [it.next(21).value, it.next().done]

//// async generator
// expect: ok 3
async function* g() { yield 1; yield 2 } let s = 0; for await (const n of g()) s += n; return s

//// async helper
// expect: ok [2,4,6]
const later = async (v) => v * 2; return await Promise.all([1, 2, 3].map(later))

//// allSettled
// expect: ok ["fulfilled","rejected"]
const r = await Promise.allSettled([Promise.resolve(1), Promise.reject(new Error('no'))]); return r.map((x) => x.status)

//// any and race
// expect: ok [2,3]
return [await Promise.any([Promise.reject(1), Promise.resolve(2)]), await Promise.race([Promise.resolve(3), new Promise(() => {})])]

//// then chain
// expect: ok 20
return Promise.resolve(1).then((v) => v + 1).catch(() => 0).finally(() => {}).then((v) => v * 10)

//// try catch finally
// expect: ok ["t","x","f"]
const log = []; const f = () => { try { log.push('t'); throw new Error('x') } catch (e) { log.push(e.message); return 1 } finally { log.push('f') } }; f(); return log

//// error cause
// expect: ok ["outer","inner"]
try { try { throw new Error('inner') } catch (e) { throw new Error('outer', { cause: e }) } } catch (e) { return [e.message, e.cause.message] }

//// error subclass
// expect: ok [true,true,"NotFound","no 7",7]
class NotFound extends Error { constructor(id) { super('no ' + id); this.name = 'NotFound'; this.id = id } } try { throw new NotFound(7) } catch (e) { return [e instanceof NotFound, e instanceof Error, e.name, e.message, e.id] }

//// aggregate error
// expect: ok ["a","b"]
try { await Promise.any([Promise.reject(new Error('a')), Promise.reject(new Error('b'))]) } catch (e) { return e.errors.map((x) => x.message) }

//// class with private state
// expect: ok 3
class Stack { #a = []; push(x) { this.#a.push(x); return this } get size() { return this.#a.length } static of(...x) { const s = new Stack(); x.forEach((v) => s.push(v)); return s } } return Stack.of(1, 2, 3).size

//// class inheritance
// expect: ok "A1B"
class A { constructor(n) { this.n = n } hi() { return 'A' + this.n } } class B extends A { hi() { return super.hi() + 'B' } } return new B(1).hi()

//// class iterator
// expect: ok [0,1,2]
class R { constructor(n) { this.n = n } *[Symbol.iterator]() { for (let i = 0; i < this.n; i++) yield i } } return [...new R(3)]

//// getter and setter
// expect: ok [100,212]
const t = { c: 0, get f() { return this.c * 9 / 5 + 32 }, set f(v) { this.c = (v - 32) * 5 / 9 } }; t.f = 212; return [t.c, t.f]

//// method this
// expect: ok [4,2]
const o = { n: 2, twice() { return this.n * 2 }, later() { return [1].map(() => this.n)[0] } }; return [o.twice(), o.later()]

//// object keys values entries
// expect: ok [["3","b","a"],["x",1,2],[["3","x"],["b",1],["a",2]]]
const o = { b: 1, a: 2, 3: 'x' }; return [Object.keys(o), Object.values(o), Object.entries(o)]

//// object fromEntries
// expect: ok {"A":10,"B":20}
return Object.fromEntries(Object.entries({ a: 1, b: 2 }).map(([k, v]) => [k.toUpperCase(), v * 10]))

//// object assign and freeze
// expect: ok [{"a":1,"b":2},true]
const o = Object.freeze({ a: 1 }); return [Object.assign({}, o, { b: 2 }), Object.isFrozen(o)]

//// hasOwn and in
// expect: ok [true,true,false,true]
const o = { a: undefined }; return [Object.hasOwn(o, 'a'), 'a' in o, 'b' in o, o.hasOwnProperty('a')]

//// delete a field
// expect: ok {"b":2}
const o = { a: 1, b: 2 }; delete o.a; return o

//// for in over own keys
// expect: ok ["x","y"]
const out = []; for (const k in { x: 1, y: 2 }) out.push(k); return out

//// labelled loops
// expect: ok [[0,0],[0,1],[1,0],[1,1]]
const out = []; outer: for (let i = 0; i < 3; i++) { for (let j = 0; j < 3; j++) { if (j === 2) continue outer; if (i === 2) break outer; out.push([i, j]) } } return out

//// switch with fall through
// expect: ok ["low","low","three","other"]
const f = (x) => { switch (x) { case 1: case 2: return 'low'; case 3: { return 'three' } default: return 'other' } }; return [f(1), f(2), f(3), f(9)]

//// do while
// expect: ok 12
let n = 0; do { n += 3 } while (n < 10); return n

//// while with break
// expect: ok 5
let i = 0; while (true) { if (++i > 4) break } return i

//// loop closures
// expect: ok [0,1,2]
const fs = []; for (let i = 0; i < 3; i++) fs.push(() => i); return fs.map((f) => f())

//// comma and void
// expect: ok [2,true,"number","object"]
let a = (1, 2); return [a, void 0 === undefined, typeof a, typeof null]

//// typed array
// expect: ok [1,2,44,3]
const t = new Uint8Array([1, 2, 300]); return [...t, t.length]

//// data view
// expect: ok 1.5
const v = new DataView(new ArrayBuffer(8)); v.setFloat32(0, 1.5); return v.getFloat32(0)

//// uri encoding
// expect: ok ["a%20b%26c","é","http://x/a%20b"]
return [encodeURIComponent('a b&c'), decodeURIComponent('%C3%A9'), encodeURI('http://x/a b')]

//// symbol iterator by hand
// expect: ok [0,1]
const o = { [Symbol.iterator]() { let i = 0; return { next: () => ({ value: i, done: i++ >= 2 }) } } }; return [...o]

//// unicode identifiers
// expect: ok [3,"x"]
const größe = 3, 名前 = 'x'; return [größe, 名前]

//// words that look dangerous
// expect: ok 9
const row = { process: 1, eval: 2, window: 3, require: 4, global: 5 }; return row.process + row.window + row.global

//// keys named like methods
// expect: ok ["a",1,2,"n"]
const o = { toString: 'a', valueOf: 1, length: 2, name: 'n' }; return [o.toString, o.valueOf, o.length, o.name]

//// comments everywhere
// expect: ok 1
/* a */ const /* b */ x = 1 // c
/* d */ return /* e */ x /* f */

//// no semicolons
// expect: ok [2,3]
const a = 1
const b = [a, 2]
const c = b
  .map((n) => n + 1)
return c

//// numeric separators
// expect: ok 1001280
return 1_000_000 + 0b1010 + 0o17 + 0xff + 1e3

//// exponent and remainder
// expect: ok [0.5,-1,1,512]
return [2 ** -1, -7 % 3, 7 % -3, 2 ** 3 ** 2]

//// string comparison and sort
// expect: ok "Cabz"
return ['b', 'a', 'C'].sort().concat(['z']).join('')

//// text built in a loop
// expect: ok "1,2\n3,4\n"
let csv = ''; for (const r of [[1, 2], [3, 4]]) csv += r.join(',') + '\n'; return csv

//// long text below the limit
// expect: ok 65536
let s = 'ab'; for (let i = 0; i < 15; i++) s += s; return s.length

//// text with a number counter
// expect: ok "01234"
let out = ''; let i = 0; while (i < 5) { out += i; i = i + 1 } return out

//// text passed down a recursion
// expect: ok "54321"
const build = (n, s) => n === 0 ? s : build(n - 1, s + n); return build(5, '')

//// reduce to a text
// expect: ok "a-b-c"
return ['a', 'b', 'c'].reduce((s, x, i) => s + (i ? '-' : '') + x, '')

//// variable shadowed in a loop body
// expect: ok "x"
let s = 'x'; for (let i = 0; i < 2; i++) { let s = 'y'; s += s } return s

//// variable declared after a loop uses it in a closure
// expect: ok ["l0","l1"]
const fs = []; for (let i = 0; i < 2; i++) fs.push(() => late + i); const late = 'l'; return fs.map((f) => f())

//// function called before its variables exist elsewhere
// expect: ok ["none","t1"]
const f = (n) => { if (n) { return tail + n } return 'none' }; const first = f(0); const tail = 't'; return [first, f(1)]

//// structured recursion over a tree
// expect: ok 3
const depth = (t) => 1 + Math.max(0, ...(t.kids ?? []).map(depth)); return depth({ kids: [{ kids: [{}] }, {}] })

//// binary search
// expect: ok 50
const a = Array.from({ length: 100 }, (_, i) => i * 3); let lo = 0, hi = 99; while (lo < hi) { const mid = (lo + hi) >> 1; if (a[mid] < 150) lo = mid + 1; else hi = mid } return lo

//// matrix
// expect: ok [[1,3],[2,4]]
const m = [[1, 2], [3, 4]]; return m[0].map((_, c) => m.map((r) => r[c]))

//// prime sieve
// expect: ok 25
const n = 100, s = new Array(n + 1).fill(true); for (let i = 2; i * i <= n; i++) if (s[i]) for (let j = i * i; j <= n; j += i) s[j] = false; let c = 0; for (let i = 2; i <= n; i++) if (s[i]) c++; return c

//// chunks
// expect: ok [[1,2],[3,4],[5]]
const chunk = (a, n) => a.length ? [a.slice(0, n), ...chunk(a.slice(n), n)] : []; return chunk([1, 2, 3, 4, 5], 2)

//// pagination loop
// expect: ok [1,2,2,3,3,4]
const page = async (n) => ({ items: [n, n + 1], next: n < 3 ? n + 1 : null }); const all = []; let at = 1; while (at !== null) { const p = await page(at); all.push(...p.items); at = p.next } return all

//// no Intl is needed
// expect: ok "1,234,567.9"
return (1234567.891).toFixed(1).replace(/\B(?=(\d{3})+(?!\d))/g, ',')


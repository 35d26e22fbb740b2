//// bigint
// expect: ok ["18446744073709551616","3",true,"bigint",5,"1"]
return [String(2n ** 64n), (10n / 3n).toString(), BigInt('123') + 1n === 124n, typeof 1n, Number(5n), BigInt.asUintN(8, 257n).toString()]

//// bitwise
// expect: ok [1,7,6,-6,16,-4,15,5,15,255,1000000]
return [5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 4, -16 >> 2, -16 >>> 28, 0b101, 0o17, 0xff, 1_000_000]

//// memo fib
// expect: ok 12586269025
const memo = {}; const fib = (n) => n < 2 ? n : memo[n] ??= fib(n - 1) + fib(n - 2); return fib(50)

//// bfs
// expect: ok ["a","b","c","d"]
const g = { a: ['b', 'c'], b: ['d'], c: ['d'], d: [] }; const seen = new Set(['a']), q = ['a'], order = []; while (q.length) { const n = q.shift(); order.push(n); for (const m of g[n]) if (!seen.has(m)) { seen.add(m); q.push(m) } } return order

//// switch
// expect: ok ["low","low","mid","high"]
const f = (x) => { switch (x) { case 1: case 2: return 'low'; case 3: { const y = 'mid'; return y } default: return 'high' } }; return [1, 2, 3, 4].map(f)

//// labels
// expect: ok [[0,0],[0,1],[1,0],[1,1]]
const out = []; outer: for (let i = 0; i < 3; i++) { for (let j = 0; j < 3; j++) { if (j === 2) continue outer; if (i === 2) break outer; out.push([i, j]) } } return out

//// for in
// expect: ok ["a","b"]
const o = { a: 1, b: 2 }; const ks = []; for (const k in o) { if (o.hasOwnProperty(k)) ks.push(k) } return ks

//// closures
// expect: ok [0,1,2]
const fs = []; for (let i = 0; i < 3; i++) fs.push(() => i); return fs.map((f) => f())

//// curry
// expect: ok 6
const add = (a) => (b) => (c) => a + b + c; return add(1)(2)(3)

//// compose
// expect: ok 8
const pipe = (...fs) => (x) => fs.reduce((v, f) => f(v), x); return pipe((x) => x + 1, (x) => x * 2)(3)

//// debounce-less counter
// expect: ok 2
const counter = (() => { let c = 0; return { inc: () => ++c, get value() { return c } } })(); counter.inc(); counter.inc(); return counter.value

//// default params
// expect: ok [[1,2,3],[1,5,9]]
const f = (a, b = a * 2, { c = 3 } = {}) => [a, b, c]; return [f(1), f(1, 5, { c: 9 })]

//// arguments
// expect: ok 6
function sum() { return Array.from(arguments).reduce((a, b) => a + b, 0) } return sum(1, 2, 3)

//// hoisting
// expect: ok "undefined"
return f(); function f() { return typeof g } var g = 1;

//// var in loop
// expect: ok 3
for (var i = 0; i < 3; i++) { } return i

//// comma void
// expect: ok [2,null,"object","undefined","function"]
return [(1, 2), void 0, typeof null, typeof undefined, typeof (() => 1)]

//// iife
// expect: ok 10
return (() => { const x = 5; return x * 2 })()

//// async iife
// expect: ok "x"
return await (async () => { await null; return 'x' })()

//// throw string
// expect: ok "str"
try { throw 'str' } catch (e) { return e }

//// catch no binding
// expect: ok "c"
try { null.x } catch { return 'c' }

//// error message type
// expect: ok [true,"TypeError","string"]
try { null.foo } catch (e) { return [e instanceof TypeError, e.name, typeof e.message] }

//// not a function
// expect: ok ["TypeError"]
try { const o = {}; o.foo() } catch (e) { return [e.name] }

//// ref error
// expect: ok ["ReferenceError"]
try { nope } catch (e) { return [e.name] }

//// typeof undeclared
// expect: ok 1
return typeof structuredClone === 'function' ? 1 : 1

//// symbols
// expect: ok ["d","Symbol(d)",["a"],1]
const s = Symbol('d'); const o = { [s]: 1, a: 2 }; return [s.description, s.toString(), Object.keys(o), o[s]]

//// weakmap cache
// expect: ok [1,false]
const c = new WeakMap(); const k = {}; c.set(k, 1); return [c.get(k), c.has({})]

//// typed arrays
// expect: ok [3,[2,4,6],[0,0],4,6]
const b = new Uint8Array([1, 2, 3]); return [b.length, [...b.map((x) => x * 2)], Array.from(new Float64Array(2)), new Uint8Array(new ArrayBuffer(4)).length, b.reduce((a, x) => a + x)]

//// encode uri
// expect: ok ["a%20b%26c%2F%C3%A9"," ","http://x/a%20b"]
return [encodeURIComponent('a b&c/\u00e9'), decodeURIComponent('%20'), encodeURI('http://x/a b')]

//// csv parse
// expect: ok [{"name":"Bob","age":30},{"name":"Ann","age":25}]
const csv = 'name,age\nBob,30\nAnn,25'; const [h, ...rows] = csv.split('\n').map((l) => l.split(',')); return rows.map((r) => Object.fromEntries(h.map((k, i) => [k, isNaN(r[i]) ? r[i] : +r[i]])))

//// stats
// expect: ok {"mean":4.25,"median":4,"sd":2.5860201081971503}
const xs = [5, 3, 8, 1]; const mean = xs.reduce((a, b) => a + b) / xs.length; const sorted = [...xs].sort((a, b) => a - b); return { mean, median: (sorted[1] + sorted[2]) / 2, sd: Math.sqrt(xs.reduce((s, x) => s + (x - mean) ** 2, 0) / xs.length) }

//// top n
// expect: ok [["the",3],["cat",1]]
const words = 'the cat the dog the end'.split(' '); const c = {}; for (const w of words) c[w] = (c[w] || 0) + 1; return Object.entries(c).sort(([, a], [, b]) => b - a).slice(0, 2)

//// dedupe by key
// expect: ok [{"id":1,"a":2},{"id":2,"a":3}]
return [...new Map([{ id: 1, a: 1 }, { id: 1, a: 2 }, { id: 2, a: 3 }].map((x) => [x.id, x])).values()]

//// constructor key named
// expect: ok 7
const o = { construct: 1, proto: 2, process: 3, window: 4, require: 5 }; return o.process + o.window

//// word constructor as data
// expect: ok ["eval","process"]
const words = ['constructor', 'eval', 'process']; return words.filter((w) => w.includes('e'))

//// has instanceof
// expect: ok [true,true,true,true,true]
return [[] instanceof Array, new Date() instanceof Date, Array.isArray([]), /x/ instanceof RegExp, (() => 1) instanceof Object]

//// number format manual
// expect: ok "1,234,567.50"
return (1234567.5).toFixed(2).replace(/\B(?=(\d{3})+(?!\d))/g, ',')

//// uuid like
// expect: ok 9
return 'xxxx-4xxx'.replace(/[xy]/g, () => 'a').length

//// object property order
// expect: ok ["1","2","b","a"]
return Object.keys({ b: 1, 2: 1, a: 1, 1: 1 })

//// set methods
// expect: ok "function"
return typeof new Set([1]).union

//// date setters
// expect: ok "2024-03-02T00:00:00.000Z"
const d = new Date(Date.UTC(2024, 0, 31)); d.setUTCMonth(1); return d.toISOString()

//// date compare
// expect: ok [true,null,true]
return [new Date('2024-01-02') > new Date('2024-01-01'), new Date(NaN).getTime(), isNaN(new Date('x'))]

//// string compare
// expect: ok [true,true,false,true,true,true,"","[object Object]","1,2",2]
return ['a' < 'b', '10' < '9', 10 < 9, 'a' == 'a', null == undefined, '1' == 1, [] + [], {} + [], [1, 2] + '', true + 1]

//// string split limit
// expect: ok [["a","b"],["a","b","c"],[""],["a","b"]]
return ['a,b,c'.split(',', 2), 'abc'.split(''), ''.split(','), 'a\tb'.split('\t')]

//// is array like
// expect: ok [97,98,99]
return Array.from('abc', (c) => c.charCodeAt(0))

//// iterator protocol
// expect: ok [2,3]
const it = [1, 2, 3][Symbol.iterator](); it.next(); return [...it]

//// iterator helpers
// expect: ok "function"
return typeof [1].values().map

//// map ops
// expect: ok [[["b",3]],1,["b",3]]
const m = new Map(Object.entries({ a: 1, b: 2 })); m.delete('a'); m.forEach((v, k) => m.set(k, v + 1)); return [[...m], m.size, [...m.entries()][0]]

//// array destructure swap in loop
// expect: ok [3,2,1]
const a = [1, 2, 3]; for (let i = 0, j = 2; i < j; i++, j--) [a[i], a[j]] = [a[j], a[i]]; return a

//// exponent chains
// expect: ok 512
return 2 ** 3 ** 2

//// well formed
// expect: ok [false,"a"]
return ['\ud800'.isWellFormed(), 'a'.toWellFormed()]

//// array fromAsync
// expect: ok "function"
return typeof Array.fromAsync

//// structured throw in promise
// expect: ok "x"
return await Promise.reject(new Error('x')).catch((e) => e.message).finally(() => 1)

//// nested functions this
// expect: ok [2,4]
const o = { n: 2, f() { return [1, 2].map((x) => x * this.n) } }; return o.f()

//// array slice call
// expect: ok [2,3]
return (function () { return [].slice.call(arguments, 1) })(1, 2, 3)

//// bind call apply
// expect: ok [3,7,11]
function f(a, b) { return a + b } return [f.call(null, 1, 2), f.apply(null, [3, 4]), f.bind(null, 5)(6)]

//// tagged template
// expect: ok "x|y|z1p,2"
const tag = (p, ...v) => p.raw.join('|') + v.join(','); const o = { a: 1, b: 2 }; return tag`x${o.a + 'p'}y${`${o.b}`}z`

//// nested tagged
// expect: ok ["q",["q1"]]
const tag = (p, ...v) => v; const o = { f: tag, a: 'q' }; return o.f`a${o.a}b${tag`c${o.a + 1}`}`

//// optional concat
// expect: ok [null,null,2,null]
const o = { a: null }; return [o.a?.b.concat([1]).length, o.a?.concat([2]), [1].concat([2])?.length, o?.a?.x.y.concat(1).z]

//// return template
// expect: ok "1stringx1"
const o = { a: 1 }; const f = () => { return`${o.a}` }; return f() + typeof`${o.a}` + (()=>`x${o.a}`)()

//// case strings
// expect: ok 1
const o = { a: 'x' }; switch ('ax') { case'a'+o.a: return 1; default: return 2 }

//// asi
// expect: ok "xyx"
const o = { a: 'x', b: 'y' }
let r = o.a
o.b += o.a
r += o.b
return r

//// no braces
// expect: ok ["012z",5]
const o = { s: '', n: 0 }; for (let i = 0; i < 3; i++) o.s += i; if (o.s) o.s += 'z'; else o.s += 'w'; do o.n += 1; while (o.n < 5)
return [o.s, o.n]

//// arrow rhs
// expect: ok "string"
const o = { f: '' }; o.f += (x) => x.y; return typeof o.f

//// sum
// expect: ok 8
const rows = [{ n: 1 }, { n: 2 }]; let t = 0; for (const r of rows) t += r.n; return t + rows[0].n + rows.at(-1).n * 2

//// date plus
// expect: ok 6
const d = new Date(0); return d.getTime() + 5 + new Date(1).getTime()

//// await inside
// expect: ok "bcd"
return (await callTool('echo', { a: 'b' })).a + 'c' + `${(await callTool('echo', { a: 'd' })).a}`

//// yield inside
// expect: ok "az"
function* g() { const x = 'a' + (yield 1).v; return x } const i = g(); i.next(); return i.next({ v: 'z' }).value

//// class
// expect: ok ["a1","2","function"]
class A { x = 'a' + 1; ['k' + this_()]() { return super.toString === undefined } static s = `${1 + 1}` } function this_() { return 1 } return [new A().x, A.s, typeof new A().k1]

//// heritage
// expect: ok "ff"
const m = { B: class { f() { return 'f' } } }; class C extends m.B { f() { return super.f() + super.f() } } return new C().f()

//// in operator
// expect: ok true
const o = { ab: 1 }, k = { a: 'a' }; return (k.a + 'b') in o

//// types
// expect: ok "xyx"
type R = { a: string }; const o: R = { a: 'x' }; const f = <T,>(x: T): T => x; const s: string = o.a + f<string>('y') as string; return s! + `${o.a}`

//// non null
// expect: ok "abc"
const o: any = { s: 'a' }; o!.s! += 'b'; (o as any).s += 'c'; return o.s

//// comments
// expect: ok "xyx"
const o = { a: 'x' }; return /* c */ o.a // d
 + 'y' /* e */ + `${/* f */ o.a}`

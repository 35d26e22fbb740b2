//// sort numbers
// expect: ok [1,2,3]
return [3, 1, 2].sort((a, b) => a - b)

//// sort default
// expect: ok [1,10,9,"a","b",null,null]
return [10, 9, 1, 'b', 'a', undefined, null].sort()

//// sort objects multi
// expect: ok [{"a":0,"b":3},{"a":1,"b":1},{"a":1,"b":2}]
return [{ a: 1, b: 2 }, { a: 1, b: 1 }, { a: 0, b: 3 }].sort((x, y) => x.a - y.a || x.b - y.b)

//// group reduce
// expect: ok {"a":[1,3],"b":[2]}
return [{ k: 'a', v: 1 }, { k: 'b', v: 2 }, { k: 'a', v: 3 }].reduce((acc, { k, v }) => { (acc[k] ||= []).push(v); return acc }, {})

//// group map
// expect: ok {"a":[1,3],"b":[2]}
const m = new Map(); for (const [k, v] of [['a', 1], ['b', 2], ['a', 3]]) { if (!m.has(k)) m.set(k, []); m.get(k).push(v) } return Object.fromEntries(m)

//// set ops
// expect: ok [[2,3],[1,2,3,4]]
const a = new Set([1, 2, 3]), b = new Set([2, 3, 4]); return [[...a].filter((x) => b.has(x)), [...new Set([...a, ...b])]]

//// date iso
// expect: ok "2024-03-10T12:00:00.000Z"
return new Date('2024-03-10T12:00:00Z').toISOString()

//// date add days
// expect: ok "2024-03-01"
const d = new Date('2024-02-28T00:00:00Z'); d.setUTCDate(d.getUTCDate() + 2); return d.toISOString().slice(0, 10)

//// date diff
// expect: ok 29
return Math.round((new Date('2024-03-01') - new Date('2024-02-01')) / 86400000)

//// date parts
// expect: ok [1,0,1705314030000,"2024-01-15T10:20:30.000Z","{\"d\":\"2024-01-15T10:20:30.000Z\"}"]
const d = new Date(Date.UTC(2024, 0, 15, 10, 20, 30)); return [d.getUTCDay(), d.getUTCMonth(), d.getTime(), d.toJSON(), JSON.stringify({ d })]

//// date parse forms
// expect: ok [1704067200000,1704096000000,1704448800000,1704412800000,null,1704448800000,1704103200123,1709769600000]
return ['2024-01-01', '2024-01-01T10:00:00+02:00', 'Jan 5, 2024 10:00 GMT', '2024/01/05', 'nonsense', 'Fri, 05 Jan 2024 10:00:00 GMT', '2024-01-01T10:00:00.123Z', 'March 7, 2024'].map((s) => new Date(s).getTime())

//// date strings
// expect: ok ["Fri, 05 Jan 2024 09:03:07 GMT","Fri Jan 05 2024","Fri Jan 05 2024 09:03:07",0]
const d = new Date(Date.UTC(2024, 0, 5, 9, 3, 7)); return [d.toUTCString(), d.toDateString(), String(d).slice(0, 24), d.getTimezoneOffset()]

//// to fixed
// expect: ok ["1.00","0.3000000000","0.00","123.5","ff","0.1","1e+21","-2","p","1.23e+3"]
return [(1.005).toFixed(2), (0.1 + 0.2).toFixed(10), (1e-7).toFixed(2), (123.456).toPrecision(4), (255).toString(16), (0.5).toString(2), (1e21).toString(), (-1.5).toFixed(0), (25).toString(36), (1234.5678).toExponential(2)]

//// parse
// expect: ok [12,3.14,0,12,31,null,1,31,5]
return [parseInt('12px'), parseFloat('3.14abc'), Number(''), Number(' 12 '), Number('0x1f'), Number('abc'), +true, parseInt('0x1f'), parseInt('101', 2)]

//// regex extract
// expect: ok ["123","bob@example.com","2024"]
const s = 'Order #123 from bob@example.com on 2024-01-02'; return [s.match(/#(\d+)/)[1], s.match(/[\w.]+@[\w.]+/)[0], s.match(/(?<y>\d{4})-(?<m>\d\d)/).groups.y]

//// regex matchAll
// expect: ok [["a","1",0],["b","22",2],["c","333",5]]
return [...'a1b22c333'.matchAll(/([a-z])(\d+)/g)].map((m) => [m[1], m[2], m.index])

//// regex replace fn
// expect: ok "Hello World"
return 'hello world'.replace(/\b\w/g, (c) => c.toUpperCase())

//// regex named replace
// expect: ok "02.01.2024"
return '2024-01-02'.replace(/(?<y>\d+)-(?<m>\d+)-(?<d>\d+)/, '$<d>.$<m>.$<y>')

//// regex split
// expect: ok ["a","b","c","d"]
return 'a, b;c  d'.split(/[,;\s]+/)

//// regex unicode
// expect: ok [["héllo","wörld"],2,true]
return ['h\u00e9llo w\u00f6rld'.match(/\p{L}+/gu), '\ud83d\ude00x'.match(/./gu).length, /^[\w\s]+$/.test('abc d')]

//// regex sticky lookbehind
// expect: ok [["10","20"],"fooB"]
return ['$10 and $20'.match(/(?<=\$)\d+/g), 'foobar'.replace(/(?<!x)bar/, 'B')]

//// regex exec loop
// expect: ok {"a":1,"b":2}
const r = /(\w)=(\d)/g; const o = {}; let m; while ((m = r.exec('a=1,b=2')) !== null) o[m[1]] = +m[2]; return o

//// regex new
// expect: ok true
return new RegExp('^' + 'a.b'.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '$', 'i').test('A.B')

//// string methods
// expect: ok ["c","**abc","x",["a","b","c"],true,"aXcaXc",98,"aaa","bc","bc","abc",2,-1,true]
return ['abc'.at(-1), 'abc'.padStart(5, '*'), ' x '.trim(), 'a-b-c'.split('-'), 'abc'.includes('b'), 'abcabc'.replaceAll('b', 'X'), 'abc'.codePointAt(1), 'a'.repeat(3), 'abc'.substring(1), 'abc'.slice(-2), 'ABC'.toLowerCase(), 'abc'.indexOf('c'), 'x'.localeCompare('y'), 'ab'.endsWith('b')]

//// string raw
// expect: ok "a\\n1"
return String.raw`a\n${1}`

//// template multi
// expect: ok "Hi Bob, you have 2 items\nand #1, #2"
const o = { n: 'Bob', items: [1, 2] }; return `Hi ${o.n}, you have ${o.items.length} item${o.items.length === 1 ? '' : 's'}
and ${o.items.map((i) => `#${i}`).join(', ')}`

//// slugify
// expect: ok "hello-world-2"
return 'H\u00e9llo, W\u00f6rld! 2'.normalize('NFD').replace(/[\u0300-\u036f]/g, '').toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '')

//// camel
// expect: ok "someSnakeCase"
return 'some_snake_case'.replace(/_([a-z])/g, (_, c) => c.toUpperCase())

//// optional chaining
// expect: ok [1,null,null,null,1]
const o = { a: { b: [{ c: 1 }] } }; return [o?.a?.b?.[0]?.c, o.x?.y.z, o.x?.[1], o.f?.(), o.a?.b?.length ?? 0]

//// nullish
// expect: ok [5,7,9,"d",0]
let a = null; a ??= 5; let b = 0; b ||= 7; let c = 1; c &&= 9; return [a, b, c, null ?? 'd', 0 ?? 'e']

//// destructuring
// expect: ok [1,3,{"x":1,"y":2},{"z":9},1,8,[4,5]]
const { a, b: { c = 3, ...r } = {}, ...rest } = { a: 1, b: { x: 1, y: 2 }, z: 9 }; const [p, , q = 8, ...t] = [1, 2, undefined, 4, 5]; return [a, c, r, rest, p, q, t]

//// swap
// expect: ok [2,1]
let x = 1, y = 2; [x, y] = [y, x]; return [x, y]

//// spread
// expect: ok [1,2,"a","b",1,1,5]
return [...[1, 2], ...'ab', ...new Set([1, 1]), ...new Map([[1, 2]]).keys(), Math.max(...[1, 5, 3])]

//// object entries
// expect: ok "a=1&b=2"
return Object.entries({ a: 1, b: 2 }).map(([k, v]) => `${k}=${v}`).join('&')

//// object fromEntries filter
// expect: ok {"a":1,"c":3}
return Object.fromEntries(Object.entries({ a: 1, b: null, c: 3 }).filter(([, v]) => v != null))

//// object groupBy
// expect: ok {"odd":[1,3],"even":[2,4]}
return Object.groupBy([1, 2, 3, 4], (n) => n % 2 ? 'odd' : 'even')

//// map groupBy
// expect: ok [[1,[1,3]],[0,[2]]]
return [...Map.groupBy([1, 2, 3], (n) => n % 2)]

//// object misc
// expect: ok [true,["a"],[1],true,true,true,true]
const o = Object.freeze({ a: 1 }); return [Object.isFrozen(o), Object.keys(o), Object.values(o), Object.hasOwn(o, 'a'), 'a' in o, o.hasOwnProperty('a'), Object.is(NaN, NaN)]

//// object create null
// expect: ok [{"a":1},["a"]]
const o = Object.create(null); o.a = 1; return [o, Object.keys(o)]

//// object assign
// expect: ok {"a":1,"b":2}
return Object.assign({}, { a: 1 }, null, { b: 2 })

//// delete
// expect: ok {"b":2}
const o = { a: 1, b: 2 }; delete o.a; return o

//// computed keys
// expect: ok {"dyn":1,"dyn2":2,"x1":3}
const k = 'dyn'; return { [k]: 1, [`${k}2`]: 2, ['x' + 1]: 3 }

//// getter setter
// expect: ok [10,{"_v":5,"v":10}]
const o = { _v: 1, get v() { return this._v * 2 }, set v(x) { this._v = x } }; o.v = 5; return [o.v, o]

//// class
// expect: ok 2
class Stack { #items = []; push(x) { this.#items.push(x); return this } pop() { return this.#items.pop() } get size() { return this.#items.length } static of(...xs) { const s = new Stack(); xs.forEach((x) => s.push(x)); return s } } const s = Stack.of(1, 2, 3); s.pop(); return s.size

//// class inherit
// expect: ok ["BA1",true,{"n":1,"m":2}]
class A { constructor(n) { this.n = n } hi() { return 'A' + this.n } } class B extends A { constructor(n) { super(n); this.m = n + 1 } hi() { return 'B' + super.hi() } } const b = new B(1); return [b.hi(), b instanceof A, b]

//// custom error
// expect: ok ["AppError","bad",42,true,true,"AppError: bad"]
class AppError extends Error { constructor(msg, code) { super(msg); this.name = 'AppError'; this.code = code } } try { throw new AppError('bad', 42) } catch (e) { return [e.name, e.message, e.code, e instanceof AppError, e instanceof Error, String(e)] }

//// error cause
// expect: ok ["inner","TypeError"]
try { throw new Error('outer', { cause: new TypeError('inner') }) } catch (e) { return [e.cause.message, e.cause.name] }

//// try finally
// expect: ok ["r",[1,2]]
const log = []; const f = () => { try { log.push(1); return 'r' } finally { log.push(2) } }; return [f(), log]

//// retries
// expect: ok ["ok",3]
let n = 0; const flaky = async () => { if (++n < 3) throw new Error('try ' + n); return 'ok' }; const retry = async (f, times) => { let last; for (let i = 0; i < times; i++) { try { return await f() } catch (e) { last = e } } throw last }; return [await retry(flaky, 5), n]

//// promise all
// expect: ok [1,2,3]
return Promise.all([1, Promise.resolve(2), (async () => 3)()])

//// all settled
// expect: ok ["fulfilled:1","rejected:x"]
return (await Promise.allSettled([Promise.resolve(1), Promise.reject(new Error('x'))])).map((r) => r.status + ':' + (r.value ?? r.reason.message))

//// promise any race
// expect: ok [2,"a"]
return [await Promise.any([Promise.reject(1), Promise.resolve(2)]), await Promise.race([Promise.resolve('a'), new Promise(() => {})])]

//// aggregate error
// expect: ok ["AggregateError",1,"a"]
try { await Promise.any([Promise.reject(new Error('a'))]) } catch (e) { return [e.name, e.errors.length, e.errors[0].message] }

//// promise order
// expect: ok ["sync","then"]
const out = []; const p = Promise.resolve().then(() => out.push('then')); out.push('sync'); await p; await null; return out

//// chunk
// expect: ok [[1,2],[3,4],[5]]
const chunk = (a, n) => Array.from({ length: Math.ceil(a.length / n) }, (_, i) => a.slice(i * n, i * n + n)); return chunk([1, 2, 3, 4, 5], 2)

//// pages
// expect: ok [1,2,3]
const pages = [[1, 2], [3], []]; let cursor = 0; const all = []; do { const page = pages[cursor++]; all.push(...page); if (!page.length) break } while (true); return all

//// generator
// expect: ok [0,3,6,9]
function* range(a, b, s = 1) { for (let i = a; i < b; i += s) yield i } return [...range(0, 10, 3)]

//// async generator
// expect: ok [0,1,2]
async function* pages() { for (let i = 0; i < 3; i++) yield await Promise.resolve(i) } const out = []; for await (const p of pages()) out.push(p); return out

//// iterator helper like
// expect: ok [1,2,[2,4]]
const it = { *[Symbol.iterator]() { yield 1; yield 2 } }; return [...it, Array.from(it, (x) => x * 2)]

//// array methods
// expect: ok [[1,2,3,[4]],[1,10,2,20],2,[1,3],[3,2,1],[1,9,3],[1,4],3,[2,3,3],[7],2,[0,1]]
return [[1, [2, [3, [4]]]].flat(2), [1, 2].flatMap((x) => [x, x * 10]), [1, 2, 3].findLast((x) => x < 3), [3, 1].toSorted(), [1, 2, 3].toReversed(), [1, 2, 3].with(1, 9), [1, 2, 3, 4].toSpliced(1, 2), [1, 2, 3].at(-1), [1, 2, 3].copyWithin(0, 1), Array.of(7), [1, 2, 3].lastIndexOf(3), [1, 2].entries().next().value]

//// array methods 2
// expect: ok [[0,"y","x",5],true,true,0,-1,"4|y|x|5",[0,"y","x",5],true,{"value":0,"done":false},"321"]
const a = [5, 1, 4]; a.splice(1, 1, 'x', 'y'); a.unshift(0); a.shift(); a.reverse(); return [a, a.some((x) => x === 'x'), a.every(Boolean), a.findIndex((x) => x === 4), a.indexOf('q'), a.join('|'), a.fill(0, 0, 1), a.includes('y'), [..."ab"].keys().next(), [1, 2, 3].reduceRight((s, x) => s + x, '')]

//// array holes
// expect: ok [[1,null,3],[2,null,6],[null,null,null],[null,null],[null,null],[0,1,2]]
return [[1, , 3], [1, , 3].map((x) => x * 2), Array(3), [...Array(2)], Array.from(Array(2)), Array(3).fill().map((_, i) => i)]

//// matrix
// expect: ok [[0,3,6],[1,4,7],[2,5,8]]
const m = Array.from({ length: 3 }, (_, i) => Array.from({ length: 3 }, (_, j) => i * 3 + j)); return m[0].map((_, c) => m.map((r) => r[c]))

//// json
// expect: ok ["{\"a\":[1,{\"b\":2}],\"d\":null}",[1,2],"{\n  \"a\": 1,\n  \"b\": [\n    1,\n    2\n  ]\n}","\" \\\"\\n\""]
return [JSON.stringify({ a: [1, { b: 2 }], u: undefined, f() { }, d: null }), JSON.parse('{"a":[1,2]}').a, JSON.stringify({ a: 1, b: [1, 2] }, null, 2), JSON.stringify('\u2028"\n')]

//// json bad
// expect: ok "SyntaxError"
try { JSON.parse('{bad') } catch (e) { return e.name }

//// json replacer list
// expect: ok "{\"a\":1,\"c\":{\"a\":3}}"
return JSON.stringify({ a: 1, b: 2, c: { a: 3, d: 4 } }, ['a', 'c'])

//// deep clone json
// expect: ok [{"a":{"b":[1,2]}},{"a":{"b":[1,2,3]}}]
const o = { a: { b: [1, 2] } }; const c = JSON.parse(JSON.stringify(o)); c.a.b.push(3); return [o, c]

//// structured clone
// expect: ok [[1,2],[1,2,3],0,1,true,true]
const o = { a: { b: [1, 2] }, d: new Date(0), m: new Map([[1, { x: 1 }]]), s: new Set([1]) }; const c = structuredClone(o); c.a.b.push(3); return [o.a.b, c.a.b, c.d.getTime(), c.m.get(1).x, c.s.has(1), c.m !== o.m]

//// structured clone cycle
// expect: ok [true,true]
const o = { a: 1 }; o.self = o; const c = structuredClone(o); return [c.self === c, c !== o]

//// structured clone function
// expect: ok "DataCloneError"
try { structuredClone({ f() { } }); return 'no' } catch (e) { return e.name }

//// math
// expect: ok [null,1,5,-1,-1,3,3,0,3,31,5.5,1,-1,1024,null,0.3333333333333333]
return [Math.max(), Math.min(1, 2), Math.hypot(3, 4), Math.sign(-3), Math.trunc(-1.5), Math.cbrt(27), Math.log2(8), Math.round(-0.5), Math.round(2.5), Math.clz32(1), Math.fround(5.5), 7 % -3, (-7) % 3, 2 ** 10, 5 / 0, 1 / 3]

//// number checks
// expect: ok [true,false,true,9007199254740991,true,false,true,0.30000000000000004]
return [Number.isInteger(5), Number.isSafeInteger(2 ** 53), Number.EPSILON > 0, Number.MAX_SAFE_INTEGER, isNaN('x'), Number.isNaN('x'), isFinite('5'), 0.1 + 0.2]

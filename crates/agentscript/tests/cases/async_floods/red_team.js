//// map over forbidden names
// expect: stopped IllegalPrototypeAccess
return ['constructor', '__proto__', 'prototype'].map((k) => { try { return typeof (function () {})[k] } catch (e) { return 'E' } })

//// for in names
// expect: ok []
const out = []; for (const k in (function () {})) out.push(k); return out

//// array callback this
// expect: ok ["undefined"]
return [1].map(function () { return typeof this })

//// async fn ctor
// expect: illegal IllegalPrototypeAccess
const A = (async () => {})['constructor']; return A('return 1')()

//// catch timeout by finally
// expect: limit
try { while (true) {} } finally { return 'escaped' }

//// catch iteration by catch
// expect: limit
try { for (;;) {} } catch (e) { return 'caught' }

//// finally loop
// expect: limit
const f = () => { try { for (;;) {} } finally { f() } }; f()

//// finally label loop
// expect: limit
a: for (;;) { try { for (;;) {} } finally { continue a } }

//// finally continue ring
// expect: limit
for (;;) { try { throw 1 } finally { continue } }

//// race limit
// expect: limit
return Promise.race([new Promise(() => {}), (async () => { for (;;) {} })()]).catch(() => 'caught')

//// any limit
// expect: limit
return Promise.any([(async () => { for (;;) {} })(), 'won'])

//// allSettled limit
// expect: limit
return Promise.allSettled([(async () => { for (;;) {} })()])

//// allSettled tool limit
// expect: limit
return (await Promise.allSettled(Array.from({ length: 150 }, (_, i) => callTool('echo', { i })))).length

//// catch tool limit
// expect: limit
let n = 0; for (let i = 0; i < 150; i++) { try { await callTool('echo', {}); n++ } catch { } } return n

//// async generator flood
// expect: limit
async function* g() { let i = 0; for (;;) yield i++ } for await (const x of g()) { } return 1

//// async generator return trap
// expect: limit
async function* g() { try { for (;;) yield 1 } finally { for (;;) await 1 } } for await (const x of g()) break; return 1

//// for await over sync promises
// expect: runtime DeadlockError
for await (const x of [new Promise(() => {})]) { } return 1

//// for await custom
// expect: limit
const it = { [Symbol.asyncIterator]: () => ({ next: async () => ({ value: 1, done: false }) }) }; for await (const x of it) { } return 1

//// for of custom
// expect: limit
const it = { [Symbol.iterator]: () => ({ next: () => ({ value: 1, done: false }) }) }; return [...it].length

//// array from custom iterator
// expect: limit
const it = { [Symbol.iterator]: () => ({ next: () => ({ value: 1, done: false }) }) }; return Array.from(it).length

//// map from custom iterator native
// expect: ok 0
const it = { [Symbol.iterator]() { return [].values() } }; return new Set(it).size

//// native next
// expect: limit
const a = [1]; const it = { [Symbol.iterator]: () => a.values() }; for (const x of it) a.push(x); return 1

//// thenable loop
// expect: limit
const t = { then(r) { r(t) } }; return await t

//// thenable two
// expect: limit
const a = { then(r) { r(b) } }, b = { then(r) { r(a) } }; return await a

//// thenable getter
// expect: limit
const t = { get then() { return (r) => r(t) } }; return t

//// timeout after tool
// expect: limit
const p = callTool('never', {}); while (true) { }

//// timeout then host
// expect: limit
callTool('never', {}).finally(() => callTool('echo', {})); await callTool('never', {}); return 1

//// unawaited calls
// expect: ok "done"
for (let i = 0; i < 10; i++) callTool('echo', { i }); return 'done'

//// unawaited loop
// expect: ok "done"
(async () => { for (;;) await null })(); return 'done'

//// unawaited call chain
// expect: ok "done"
const f = () => callTool('echo', {}).then(f); f(); return 'done'

//// iterator close trap
// expect: limit
const it = { [Symbol.iterator]: () => ({ next: () => ({ value: 1, done: false }), return() { for (;;) {} } }) }; const [a] = it; return a

//// await in finally
// expect: limit
try { await callTool('nope', {}) } finally { await callTool('never', {}) }

//// yield star self
// expect: limit
function* g() { yield* g() } return [...g()]

//// async recursion
// expect: limit
const f = async () => { await f() }; await f()

//// async recursion 2
// expect: limit
const f = async () => { await null; await Promise.all([f(), f()]) }; await f()

//// microtask ring
// expect: limit
const p = () => Promise.resolve().then(p); await p()

//// reject ring
// expect: limit
const p = () => Promise.reject(1).catch(p); await p()

//// finally ring
// expect: limit
const p = () => Promise.resolve().finally(p); await p()

//// promise subclass
// expect: ok 1
class P extends Promise { then(a, b) { return super.then(a, b) } } return await new P((r) => r(1))

//// promise species
// expect: illegal IllegalBuiltinAccess
class P extends Promise { static get [Symbol.species]() { return Array } } return 1

//// promise executor leak
// expect: ok "function"
let r; new Promise((a) => { r = a }); r(r); return typeof r

//// withResolvers
// expect: runtime TypeError
const { promise, resolve } = Promise.withResolvers(); resolve(promise); return promise

//// array species
// expect: ok 3
class A extends Array { } return new A(1, 2, 3).map((x) => x).length

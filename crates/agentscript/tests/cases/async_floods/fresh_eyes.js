//// delegating generator that never ends
// expect: limit
async function* g() { while (true) yield* [1, 2] } const i = g(); for (;;) await i.next()

//// helper of an endless generator: drop
// expect: limit
function* g() { while (true) yield 1 } return g().drop(1e9).next()

//// helper of an endless generator: toArray
// expect: limit
function* g() { while (true) yield 1 } return g().take(1e9).toArray().length

//// helper of an endless generator: flatMap to nothing
// expect: limit
function* g() { while (true) yield 1 } return g().flatMap(() => []).next()

//// list of an endless length
// expect: limit
return await Array.fromAsync({ length: 1e9 })

//// list of an endless async generator
// expect: limit
async function* g() { while (true) yield 1 } return (await Array.fromAsync(g())).length

//// thenable that resolves to itself
// expect: limit
const t = { then(resolve) { resolve(t) } }; await t

//// thenable by getter
// expect: limit
const t = { get then() { return (resolve) => resolve({ then: (again) => again(t) }) } }; await t

//// endless iterable for race
// expect: limit
const it = { [Symbol.iterator]: () => it, next: () => ({ done: false, value: Promise.resolve(1) }) }; await Promise.race(it)

//// set operations on a set that is none
// expect: limit
return new Set([1]).union({ size: Infinity, has: () => true, keys: () => ({ next: () => ({ done: false, value: Math.random() }) }) }).size

//// return method that does not end
// expect: limit
const it = { [Symbol.iterator]: () => ({ next: () => ({ done: false, value: 1 }), return() { for (;;) {} } }) }; const [a] = it; return a

//// finally that starts over
// expect: limit
const f = () => { try { f() } finally { f() } }; f()

//// operations that wait for ever
// expect: runtime DeadlockError
return await __safe_parallel(Array.from({ length: 20 }, () => () => new Promise(() => {})))

//// buffer that shrinks while it is sorted
// expect: ok 0
const b = new ArrayBuffer(100, { maxByteLength: 200 }); const u = new Uint8Array(b); u.sort(() => { b.resize(0); return 0 }); return u.length

//// buffer that shrinks while it is filled
// expect: runtime TypeError
const b = new ArrayBuffer(1000, { maxByteLength: 2000 }); new Uint8Array(b, 500).fill({ valueOf() { b.resize(10); return 7 } }); return 1

//// buffer that shrinks while it is written
// expect: runtime RangeError
const b = new ArrayBuffer(1000, { maxByteLength: 2000 }); new DataView(b).setInt8({ valueOf() { b.resize(1); return 900 } }, 1); return 1

//// turns of an async generator that nobody waits for
// expect: limit
async function* g() { while (true) yield 1 } const i = g(); for (;;) i.next()

//// finally of a generator that does not end
// expect: limit
function* g() { try { yield 1 } finally { for (;;) {} } } for (const x of g()) break

//// generator that delegates to itself
// expect: limit
function* g() { yield* g() } return [...g()]

//// promises of promises
// expect: memory
let p = Promise.resolve(); for (;;) p = Promise.all([p, p])

//// function bound to itself
// expect: memory
let f = () => 1; for (;;) f = f.bind(f)

//// loop whose condition is a function
// expect: limit
for (let i = 0; (() => true)();) {}

//// switch that goes on with the loop around it
// expect: limit
for (;;) switch (1) { case 1: continue }

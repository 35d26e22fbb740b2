//// a chain that feeds itself
// expect: limit
const again = () => Promise.resolve().then(again); await again()

//// two that wake each other
// expect: limit
const a = async () => { await null; return b() }; const b = async () => { await null; return a() }; await a()

//// a thenable without end
// expect: limit
const t = { then(ok) { ok(t) } }; await t

//// thenables one in another
// expect: limit
const make = () => ({ then(ok) { ok(make()) } }); await make()

//// a loop of awaits
// expect: limit
for (;;) await null

//// a flood nobody waits for
// expect: limit
const flood = async () => { for (;;) await 0 }; flood(); flood(); await new Promise(() => {})

//// many promises that never settle
// expect: runtime DeadlockError
await Promise.all(Array.from({ length: 1000 }, () => new Promise(() => {})))

//// an async generator without end
// expect: limit
async function* g() { for (;;) yield 1 } for await (const x of g()) {}

//// rejections that nobody handles
// expect: safe
for (let i = 0; i < 1000; i++) Promise.reject(new Error('x')); return 1

//// recursion through await
// expect: limit
async function f() { await f() } await f()

//// a finally that begins again
// expect: limit
const f = () => Promise.reject(1).finally(f); await f()

//// calls without end
// expect: limit
for (;;) callTool('echo', {})

//// parallel in parallel
// expect: limit
const f = () => __safe_parallel([f, f]); await f()

//// a race that is lost
// expect: ok 1
return await Promise.race([1, new Promise(() => {})])

//// microtask chain
// expect: safe
const f = () => Promise.resolve().then(f); f(); return 1

//// awaited chain
// expect: safe
const f = () => Promise.resolve().then(f); await f()

//// await forever
// expect: safe
while (true) await null

//// never settles
// expect: safe
await new Promise(() => {})

//// many promises
// expect: safe
return (await Promise.all(Array.from({ length: 10000 }, (_, i) => Promise.resolve(i)))).length

//// recursion by await
// expect: safe
const f = async () => { await f() }; await f()

//// thenable loop
// expect: safe
const t = { then(r) { r(t) } }; await t

//// race of never
// expect: safe
await Promise.race([])

//// any of none
// expect: safe
await Promise.any([])

//// async generator forever
// expect: safe
async function* g() { while (true) yield 1 }
for await (const x of g()) ;

//// generator forever
// expect: safe
function* g() { while (true) yield 1 }
for (const x of g()) ;

//// spread of a generator
// expect: safe
function* g() { while (true) yield 1 }
return [...g()]

//// two generators
// expect: safe
function* a() { yield* b() }
function* b() { yield* a() }
return [...a()]

//// calls without await
// expect: safe
for (let i = 0; i < 1000; i++) callTool('echo', {}); return 1

//// calls that never answer
// expect: safe
await Promise.all([callTool('never', {}), callTool('never', {})])

//// parallel of parallel
// expect: safe
return __safe_parallel(Array.from({ length: 10 }, () => () => __safe_parallel(Array.from({ length: 10 }, () => async () => 1))))

//// parallel of too many
// expect: safe
return __safe_parallel(Array.from({ length: 101 }, () => async () => 1))

//// parallel of endless
// expect: safe
return __safe_parallel([async () => { while (true) ; }])

//// finally loop
// expect: safe
const f = () => Promise.resolve().finally(f); await f()

//// catch loop
// expect: safe
const f = () => Promise.reject(1).catch(f); await f()

//// resolve in executor loop
// expect: safe
const f = n => new Promise(r => r(f(n + 1))); await f(0)

//// allSettled of many
// expect: safe
return (await Promise.allSettled(Array.from({ length: 1000 }, () => callTool('fail', {})))).length

//// map of async
// expect: safe
return (await Promise.all([1, 2, 3].map(async x => x))).length


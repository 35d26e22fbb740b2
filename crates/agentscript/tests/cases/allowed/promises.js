//// all
// expect: ok [1, 2]
return Promise.all([1, Promise.resolve(2)])

//// allSettled
// expect: ok ["fulfilled", "rejected"]
return (await Promise.allSettled([1, Promise.reject(2)])).map(r => r.status)

//// race
// expect: ok 1
return Promise.race([Promise.resolve(1), new Promise(() => {})])

//// any
// expect: ok 2
return Promise.any([Promise.reject(1), Promise.resolve(2)])

//// then
// expect: ok 2
return Promise.resolve(1).then(x => x + 1)

//// catch
// expect: ok 1
return Promise.reject(1).catch(x => x)

//// finally
// expect: ok 1
return Promise.resolve(1).finally(() => 2)

//// await in a loop
// expect: ok 3
let n = 0; for (const p of [Promise.resolve(1), Promise.resolve(2)]) n += await p; return n

//// await in an expression
// expect: ok 3
return (await Promise.resolve(1)) + (await Promise.resolve(2))

//// new promise
// expect: ok 4
return new Promise(r => r(4))

//// parallel
// expect: ok [1, 2]
return __safe_parallel([async () => 1, async () => 2])

//// parallel with a limit
// expect: ok [1, 2]
return __safe_parallel([async () => 1, async () => 2], { maxConcurrency: 1 })

//// tool call
// expect: ok {"a": 1}
return await callTool('echo', { a: 1 })

//// tool calls together
// expect: ok [{"a": 1}, {"a": 2}]
return Promise.all([1, 2].map(a => callTool('echo', { a })))

//// tool call that fails quietly
// expect: ok false
return (await callTool('fail', {}, { throwOnError: false })).success

//// tool metadata
// expect: ok "echo"
return (await getTool('echo')).name

//// tool error caught
// expect: ok "NOT_FOUND"
try { await callTool('fail', {}) } catch (e) { return e.code }


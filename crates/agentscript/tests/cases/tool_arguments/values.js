//// values without JSON of their own go out as in results
// expect: ok {"error":{"name":"RangeError","message":"m"},"pattern":"/x/g","bytes":[1,2],"when":"2026-01-02T00:00:00.000Z"}
return callTool('echo', { error: new RangeError('m'), pattern: /x/g, bytes: new Uint8Array([1, 2]), when: new Date('2026-01-02') })

//// a BigInt in an input
// expect: runtime TypeError
await callTool('echo', { n: 1n })

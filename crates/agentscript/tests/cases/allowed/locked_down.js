//// for of
// expect: ok 3
// preset: locked_down
let n = 0; for (const x of [1, 2]) n += x; return n

//// bounded for
// expect: ok 3
// preset: locked_down
let n = 0; for (let i = 0; i < 3; i++) n++; return n

//// array methods
// expect: ok [2]
// preset: locked_down
return [1].map(x => x + 1)

//// text
// expect: ok true
// preset: locked_down
return 'abc'.includes('b')

//// tool call
// expect: ok {"a": 1}
// preset: locked_down
return callTool('echo', { a: 1 })

//// division
// expect: ok 2
// preset: locked_down
const a = 4; return a / 2


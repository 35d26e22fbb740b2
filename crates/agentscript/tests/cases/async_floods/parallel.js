//// parallel non array
// expect: runtime TypeError
return __safe_parallel({ length: 2, 0: () => 1, 1: () => 2 })

//// parallel sparse
// expect: runtime TypeError
return __safe_parallel(new Array(3))

//// parallel 101
// expect: runtime RangeError
return __safe_parallel(Array.from({ length: 101 }, () => async () => 1))

//// parallel getter
// expect: runtime TypeError
const a = [() => 1]; const fns = [() => 1]; fns.length = 2; return __safe_parallel(fns)

//// parallel grows itself
// expect: ok [1]
const fns = [async () => { for (let i = 0; i < 50; i++) fns.push(async () => 1); return 1 }]; return __safe_parallel(fns)

//// parallel recursion
// expect: limit
const f = () => __safe_parallel([f, f]); return f()

//// parallel concurrency negative
// expect: runtime RangeError
return __safe_parallel([async () => 1], { maxConcurrency: -1 })

//// parallel concurrency nan
// expect: runtime RangeError
return __safe_parallel([async () => 1], { maxConcurrency: NaN })

//// parallel concurrency inf
// expect: ok [1]
return __safe_parallel([async () => 1], { maxConcurrency: Infinity })

//// parallel concurrency valueOf
// expect: runtime RangeError
return __safe_parallel([async () => 1], { maxConcurrency: { valueOf: () => 1e9 } })

//// parallel concurrency getter
// expect: ok [[1],1]
let n = 0; return [await __safe_parallel([async () => 1], { get maxConcurrency() { n++; return 1 } }), n]

//// parallel message getter
// expect: limit
return __safe_parallel([async () => { throw { get message() { for (;;) {} } } }])

//// parallel message toString
// expect: runtime Error
return __safe_parallel([async () => { throw { message: { toString() { throw 1 } } } }])

//// parallel throw null
// expect: runtime Error
return __safe_parallel([async () => { throw null }, async () => { throw undefined }, async () => { throw Symbol('x') }])

//// parallel thenable
// expect: ok ["t"]
return __safe_parallel([() => ({ then(r) { r('t') } })])

//// parallel then never
// expect: runtime DeadlockError
return __safe_parallel([() => ({ then() { } })])

//// parallel shadow
// expect: illegal IllegalIdentifier
const __safe_parallel = 1; return 1

//// parallel reassigned
// expect: illegal IllegalIdentifier
__safe_parallel = null; return 1

//// parallel property
// expect: runtime TypeError
__safe_parallel.x = 1; return __safe_parallel.x

//// other safe name
// expect: illegal IllegalIdentifier
return __safe_callTool('x')

//// lastIndexOf on a sparse array
// expect: limit
const a = { length: 2 ** 53 - 1 }; return Array.from({ length: 1 }).lastIndexOf.call(a, 1)

//// includes on an array-like
// expect: limit
return [].includes.call({ length: 2 ** 53 - 1 }, 1)

//// fill on an array-like
// expect: limit
[].fill.call({ length: 2 ** 53 - 1 }, 1)

//// reverse of a sparse array
// expect: limit
const a = []; a[2 ** 32 - 3] = 1; a.reverse(); return 1

//// sort of a sparse array
// expect: limit
const a = []; a[2 ** 32 - 3] = 1; a.sort(); return 1

//// join of a sparse array
// expect: limit
const a = []; a[2 ** 32 - 3] = 1; return a.join('').length

//// from an array-like
// expect: runtime RangeError
return Array.from({ length: 2 ** 40 }).length

//// spread of a sparse array
// expect: limit
const a = []; a.length = 2 ** 31; return [...a].length

//// flat of a deep array
// expect: safe
let a = [1]; for (let i = 0; i < 50000; i++) a = [a]; return a.flat(Infinity)

//// replaceAll of nothing
// expect: limit
return 'x'.repeat(1e6).replaceAll('', 'y'.repeat(1000)).length

//// a split by every character, many times
// expect: limit
const s = 'ab'.repeat(1e5); for (;;) s.split('')

//// a comparator that never agrees
// expect: safe
return [...Array(1000).keys()].sort(() => 1).length

//// a comparator that adds
// expect: limit
const a = [3, 2, 1]; a.sort(() => { for (;;) {} })

//// bigint power
// expect: safe
return String(7n ** 10000000n).length

//// bigint shift
// expect: safe
return 1n << 1000000000n

//// stringify without end
// expect: safe
let o = {}; for (let i = 0; i < 1e4; i++) o = { o }; return JSON.stringify(o).length

//// slice of an array-like
// expect: safe
return [].slice.call({ length: 2 ** 53 - 1 }).length

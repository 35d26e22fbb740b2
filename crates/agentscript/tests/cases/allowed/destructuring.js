//// object
// expect: ok 3
const { a, b: c } = { a: 1, b: 2 }; return a + c

//// array
// expect: ok [2, 1]
let [a, b] = [1, 2]; [a, b] = [b, a]; return [a, b]

//// nested
// expect: ok 1
const { a: [{ b }] } = { a: [{ b: 1 }] }; return b

//// defaults
// expect: ok 5
const { a = 5 } = {}; return a

//// rest
// expect: ok {"b": 2}
const { a, ...r } = { a: 1, b: 2 }; return r

//// computed
// expect: ok 1
const k = 'a'; const { [k]: v } = { a: 1 }; return v

//// in a loop
// expect: ok 3
let n = 0; for (const { v } of [{ v: 1 }, { v: 2 }]) n += v; return n

//// entries
// expect: ok [["a", 1]]
const r = []; for (const [k, v] of Object.entries({ a: 1 })) r.push([k, v]); return r

//// assignment to members
// expect: ok 1
const o = {}; ({ a: o.b } = { a: 1 }); return o.b

//// skipped elements
// expect: ok 2
const [, b] = [1, 2]; return b


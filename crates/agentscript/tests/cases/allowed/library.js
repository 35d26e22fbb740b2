//// array methods
// expect: ok [2, 4]
return [1, 2, 3, 4].filter(x => x % 2 === 0)

//// reduce
// expect: ok 6
return [1, 2, 3].reduce((a, b) => a + b, 0)

//// sort
// expect: ok [1, 2, 3]
return [3, 1, 2].sort((a, b) => a - b)

//// find
// expect: ok 2
return [1, 2].find(x => x > 1)

//// flatMap
// expect: ok [1, 1, 2, 2]
return [1, 2].flatMap(x => [x, x])

//// some and every
// expect: ok [true, false]
return [[1].some(x => x), [0].every(x => x)]

//// object keys
// expect: ok ["a"]
return Object.keys({ a: 1 })

//// entries
// expect: ok {"A": 1}
return Object.fromEntries(Object.entries({ a: 1 }).map(([k, v]) => [k.toUpperCase(), v]))

//// assign
// expect: ok {"a": 1, "b": 2}
return Object.assign({}, { a: 1 }, { b: 2 })

//// text methods
// expect: ok "b-a"
return 'a-b'.split('-').reverse().join('-')

//// padding
// expect: ok "007"
return '7'.padStart(3, '0')

//// JSON
// expect: ok {"a": [1]}
return JSON.parse(JSON.stringify({ a: [1] }))

//// map
// expect: ok 1
const m = new Map([['a', 1]]); return m.get('a')

//// set
// expect: ok 2
return new Set([1, 1, 2]).size

//// math
// expect: ok 3
return Math.floor(3.7)

//// number
// expect: ok true
return Number.isInteger(3)

//// parseInt
// expect: ok 12
return parseInt('12px', 10)

//// date
// expect: ok "1970-01-01T00:00:00.000Z"
return new Date(0).toISOString()

//// encode
// expect: ok "a%20b"
return encodeURIComponent('a b')

//// at
// expect: ok 2
return [1, 2].at(-1)

//// includes
// expect: ok true
return 'abc'.includes('b')

//// group
// expect: ok {"a": 2}
const g = {}; for (const k of ['a', 'a']) g[k] = (g[k] ?? 0) + 1; return g

//// own property
// expect: ok true
return Object.hasOwn({ a: 1 }, 'a')

//// freeze
// expect: ok true
return Object.isFrozen(Object.freeze({}))

//// array from
// expect: ok [0, 1]
return Array.from({ length: 2 }, (_, i) => i)

//// console
// expect: ok 1
console.log('a', { b: 1 }); return 1

//// hasOwnProperty
// expect: ok true
return ({ a: 1 }).hasOwnProperty('a')

//// a date that is set to no number is invalid
// expect: ok [true,true,true,"2024-01-31T05:00:00.000Z",4]
const day = () => new Date('2024-01-31T00:00:00Z');
const bad = (set) => { const date = day(); set(date); return Number.isNaN(date.getTime()) };
const five = day(); five.setUTCHours(5);
return [bad((d) => d.setDate(undefined)), bad((d) => d.setUTCMonth(NaN)), bad((d) => d.setHours(1, 'x')), five.toISOString(), five.setHours.length]

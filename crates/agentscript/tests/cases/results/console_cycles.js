//// a cycle on the console
// expect: runtime TypeError
const o = { name: 'test' }; o.self = o; console.log(o); return 'success'

//// a cycle through an array
// expect: runtime TypeError
const a = []; a.push([a]); console.warn(a)

//// a cycle that is caught
// expect: ok "TypeError"
const o = {}; o.o = { o }; try { console.error(o) } catch (e) { return e.name }

//// a cycle that is thrown
// expect: runtime Error
const o = {}; o.o = o; throw o

//// a value twice is no cycle
// expect: ok 1
const v = { a: 1 }; console.log({ x: v, y: [v, v] }); return 1

//// a map on the console
// expect: ok 1
console.log(new Map([['a', new Set([1])]]), new Date(0), /x/, 1n, Symbol('s'), () => 1, undefined, null, NaN); return 1

//// an error on the console
// expect: ok 1
console.log(new TypeError('x')); return 1

//// a cycle through a map
// expect: safe
const m = new Map(); m.set('m', m); console.log(m); return 1

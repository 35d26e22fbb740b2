//// entries of error
// expect: ok ["message"]
return Object.getOwnPropertyNames(new Error('x'))

//// this in nested function
// expect: ok null
return (function () { return (() => this)() })()

//// this in method detached
// expect: ok true
const o = { f() { return this } }; const f = o.f; return f() === undefined

//// getter this global
// expect: ok ["g"]
const o = { get g() { return this } }; const { g } = o; return Object.keys(g)

//// sort compare this
// expect: ok [1,2]
return [2, 1].sort(function (a, b) { if (this) return 1; return a - b })

//// caller
// expect: runtime TypeError
function f() { return f.caller } return f()

//// arguments length computed
// expect: ok 2
function f() { return arguments['len' + 'gth'] } return f(1, 2)

//// require computed
// expect: ok "undefined"
const r = 'require'; return typeof codecallContext[r]

//// spoof tool error
// expect: runtime Error
throw Object.assign(new Error('x'), { toolName: 'y', code: 'SELF_REFERENCE_BLOCKED' })

//// sort mutates
// expect: ok [1,null,3]
const a = [3, 2, 1]; return a.sort((x, y) => { a.length = 0; return x - y })

//// sort grows
// expect: ok 6
const a = [3, 2, 1]; a.sort((x, y) => { a.push(1); return x - y }); return a.length

//// toSorted
// expect: runtime RangeError
const a = []; a.length = 4294967295; return a.toSorted().length

//// slice call arraylike
// expect: runtime RangeError
return [].slice.call({ length: 2 ** 53 - 1 }).length

//// bigint parse
// expect: runtime RangeError
return BigInt('9'.repeat(4e6)).toString().length

//// bigint shift
// expect: runtime RangeError
return (1n << 2n ** 31n) > 1n

//// toFixed
// expect: ok "1e+210.010101010101010101010101010101010101010101010101010101"
return (1e21).toFixed(100) + (1 / 3).toString(2)

//// private in
// expect: ok false
class A { #x; static h(o) { return #x in o } } return A.h({})

//// static block this
// expect: ok "function"
class A { static { this.x = this } } return typeof A.x

//// json proto
// expect: ok [null,["__proto__"]]
const o = JSON.parse('{"__proto__":{"a":1}}'); return [o.a, Object.keys(o)]

//// spread proto
// expect: ok [null,["__proto__"]]
const o = { ...JSON.parse('{"__proto__":{"a":1}}') }; return [o.a, Object.keys(o)]

//// fromEntries proto
// expect: ok true
return Object.fromEntries([['__proto__', { a: 1 }]]).a === undefined

//// groupBy proto
// expect: ok ["__proto__"]
const g = Object.groupBy([1], () => '__proto__'); return Object.keys(g)

//// freeze intrinsics
// expect: runtime TypeError
Object.freeze(Math); Math.x = 1; return 1

//// override builtin method
// expect: runtime TypeError
[].push = () => 1; Array.isArray = () => true; return 1

//// override JSON
// expect: runtime TypeError
JSON.stringify = () => 'x'; return { a: 1 }

//// delete builtin
// expect: runtime TypeError
delete Object.keys; return typeof Object.keys

//// nan shadow
// expect: ok 1
const NaN = 1; return NaN

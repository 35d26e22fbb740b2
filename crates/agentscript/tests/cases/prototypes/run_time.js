//// key from a parameter
// expect: stopped IllegalPrototypeAccess
const f = (o, k) => o[k]; return f([], ['c','o','n','s'].concat(['tructor']).map(x => x).join(''))

//// key from a loop
// expect: stopped IllegalPrototypeAccess
let k = ''; for (const c of ['con', 'struc', 'tor']) k += c; return [][k]

//// key from JSON
// expect: stopped IllegalPrototypeAccess
return [][JSON.parse('"const' + 'ructor"')]

//// key from the data
// expect: stopped IllegalPrototypeAccess
const row = { k: 'constructor' }; return [][row.k]

//// proto from a loop
// expect: stopped IllegalPrototypeAccess
let k = ''; for (const c of '__proto__') k += c; return ({})[k]

//// key from codes
// expect: stopped IllegalPrototypeAccess
return [][[99, 111, 110, 115, 116, 114, 117, 99, 116, 111, 114].reduce((a, c) => a + String.fromCharCode(c), '')]

//// key changed later
// expect: stopped IllegalPrototypeAccess
let k = 'con'; k += 'structor'; return (() => 1)[k]

//// proto write by key
// expect: stopped IllegalPrototypeAccess
let k = '__pro'; k += 'to__'; const o = {}; o[k] = { a: 1 }; return o.a

//// function constructor by key
// expect: stopped IllegalPrototypeAccess
let k = 'con'; k += 'structor'; return (async () => 1)[k]('return 1')()

//// error constructor by key
// expect: stopped IllegalPrototypeAccess
let k = 'con'; k += 'structor'; try { null.x } catch (e) { return e[k][k]('return 1')() }


//// defineProperty by key
// expect: runtime TypeError
let k = 'defineProp'; k += 'erty'; return Object[k]({}, 'a', { value: 1 })

//// descriptors by key
// expect: ok ["undefined", "undefined", "undefined", "undefined"]
return ['Property', 'Properties'].map((end) => typeof Object['define' + end]).concat(['', 's'].map((end) => typeof Object['getOwnPropertyDescriptor' + end]))

//// prototype of a built-in by key is frozen
// expect: runtime TypeError
let k = 'proto'; k += 'type'; Array[k].map = () => 1; return 1

//// prototype of a class of the script's own by key
// expect: ok 5
class A { }
let k = 'proto'; k += 'type'; A[k].five = () => 5; return new A().five()

//// methods of built-ins are frozen
// expect: runtime TypeError
Math.max.call.x = 1

//// prototypes that only values lead to are frozen
// expect: runtime TypeError
const o = [1].values().map((x) => x); o.next.x = 1

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


//// key from a tool
// expect: stopped IllegalPrototypeAccess
const k = await callTool('echo', 'constructor'); return [][k]

//// key from entries
// expect: stopped IllegalPrototypeAccess
const [k] = Object.keys({ xconstructor: 1 }).map((s) => s.slice(1)); return Array[k][k]

//// key from code points
// expect: stopped IllegalPrototypeAccess
const cs = [99, 111, 110, 115, 116, 114, 117, 99, 116, 111, 114]; let k = ''; for (const c of cs) k += String.fromCharCode(c); return (() => 1)[k]

//// key from mapped parts
// expect: illegal IllegalPrototypeAccess
const word = (n) => n.toString(36); const k = ['con', 'struct', 'or'].map((x) => x).join(''); return word[k]

//// key reversed
// expect: stopped IllegalPrototypeAccess
const flip = (s) => [...s].reverse().join(''); return ({})[flip('rotcurtsnoc')]

//// key from an object's name
// expect: stopped IllegalPrototypeAccess
const get = (o, k) => o[k]; return get(get('', JSON.parse('"constructor"')), 'x')

//// proto by parts
// expect: stopped IllegalPrototypeAccess
const u = '_'.repeat(2); const k = u + ['p', 'r', 'o', 't', 'o'].join('') + u; return ({})[k]

//// destructured by a computed key
// expect: stopped IllegalPrototypeAccess
const pick = (k) => { const { [k]: v } = []; return v }; return pick(atobless('constructor')); function atobless(s) { return s.split('').join('') }

//// through optional chaining
// expect: stopped IllegalPrototypeAccess
const k = (x) => x.trim(); return (async () => {})?.[k(' constructor ')]

//// through a callback
// expect: stopped IllegalPrototypeAccess
return ['constructor'].map((k) => (0)[k])

//// through reduce
// expect: stopped IllegalPrototypeAccess
return ['constructor', 'constructor'].reduce((o, k) => o[k], 'x')

//// a tool's proto key is data
// expect: ok 1
const o = await callTool('echo', JSON.parse('{"__proto__x": 1}')); return o.__proto__x

//// parsed proto key pollutes nothing
// expect: ok true
const o = JSON.parse('{"__pro' + 'to__": {"polluted": 1}}'); return ({}).polluted === undefined

//// merge pollutes nothing
// expect: safe
const merge = (a, b) => { for (const k in b) a[k] = typeof b[k] === 'object' ? merge(a[k] ?? {}, b[k]) : b[k]; return a }; merge({}, JSON.parse('{"__pro' + 'to__": {"p": 1}}')); return ({}).p

//// built-in objects stay frozen
// expect: runtime TypeError
Array.x = 1

//// nothing is written on a function of the language
// expect: runtime TypeError
const before = Array.isArray.x; Array.isArray.x = 1; return before ?? null

//// a method of every array
// expect: runtime TypeError
const home = Object; home.keys = () => []

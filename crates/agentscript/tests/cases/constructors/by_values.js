//// defineProperty on Object
// expect: safe
Object.defineProperty(Object, 'x', { value: 1 }); return Object.x

//// class species
// expect: safe
class A extends Array { static get [Symbol.species]() { return Map } }; return new A(1, 2).map(x => x).length

//// species getter
// expect: safe
const a = []; Object.defineProperty(a, 'constructor', { value: { [Symbol.species]: class { constructor(n) { return { n } } } } }); return a.map(x => x)

//// promise species
// expect: safe
class P extends Promise {}; return await new P(r => r(1)).then(x => x)

//// thenable
// expect: safe
return await { then(r) { r(1) } }

//// nested thenable
// expect: safe
return await { then(r) { r({ then(q) { q(2) } }) } }

//// toPrimitive
// expect: safe
return +{ [Symbol.toPrimitive](hint) { return 7 } }

//// iterator
// expect: safe
return [...{ [Symbol.iterator]: function* () { yield 1 } }]

//// hasInstance
// expect: safe
return 1 instanceof { [Symbol.hasInstance]: () => true }

//// unscopables
// expect: safe
return Array.isArray(Symbol.unscopables)

//// bound chain
// expect: safe
return (() => 1).bind().bind().name

//// function text
// expect: safe
return (() => 1).toString()

//// native text
// expect: safe
return callTool.toString()

//// descriptor of a tool
// expect: safe
return Object.getOwnPropertyDescriptors(callTool)

//// names of a tool
// expect: safe
return Object.getOwnPropertyNames(callTool)

//// descriptor of constructor
// expect: safe
return Object.getOwnPropertyDescriptor(Object, 'constr' + 'uctor') === undefined

//// create with null
// expect: safe
return Object.create(null) instanceof Object

//// create with properties
// expect: safe
return Object.create({}, { a: { get() { return 1 }, enumerable: true } }).a

//// assign to a tool
// expect: safe
try { Object.assign(callTool, { a: 1 }) } catch (e) { return e.name }

//// fromEntries
// expect: safe
return Object.fromEntries([['__pro' + 'to__', 1]])

//// groupBy
// expect: safe
return Object.groupBy([1, 2], n => n)


//// eval via unicode
// expect: illegal IllegalBuiltinAccess
return \u0065val('1')

//// names of function prototype at run time
// expect: illegal IllegalPrototypeAccess
const p = 'proto' + 'type'; return Object.getOwnPropertyNames((function () {})[p])

//// reflect
// expect: illegal IllegalBuiltinAccess
return Reflect.ownKeys({})

//// reflect aliased by comma
// expect: illegal IllegalBuiltinAccess
return (0, Reflect).get({}, 'x')

//// globalThis optional
// expect: illegal IllegalGlobalAccess
return globalThis?.process

//// globalThis in typeof
// expect: illegal IllegalGlobalAccess
return typeof globalThis

//// this in arrow
// expect: illegal IllegalGlobalAccess
return (() => this)()

//// call with null this
// expect: illegal IllegalGlobalAccess
function f() { return this } return f.call(null) === null

//// bind undefined
// expect: illegal IllegalGlobalAccess
function f() { return this } return f.bind()() === undefined

//// generator ctor computed late
// expect: stopped IllegalPrototypeAccess
const n = (x) => x; return function* () {}[n('constructor')]

//// callee
// expect: illegal IllegalPrototypeAccess
function f() { return arguments.callee } return f()

//// callee via key
// expect: illegal IllegalPrototypeAccess
function f() { const k = ['cal', 'lee']; return arguments[k.join('')] } return typeof f()

//// dynamic import comment
// expect: illegal IllegalModuleAccess
return import/**/('fs')

//// import meta
// expect: illegal IllegalModuleAccess
return import.meta.url

//// import source phase
// expect: illegal IllegalModuleAccess
import fs from 'fs'; return 1

//// export
// expect: illegal IllegalModuleAccess
export const x = 1

//// with
// expect: illegal IllegalSyntax
with ({}) { return 1 }

//// html comment
// expect: safe
return 1 <!-- x

//// hashbang
// expect: illegal IllegalSyntax
#!/usr/bin/env node
return 1

//// tick by name
// expect: illegal IllegalIdentifier
__ag_tick = () => {}; return 1

//// made by name
// expect: illegal IllegalIdentifier
return __ag_made('x')

//// tick by escape
// expect: illegal IllegalIdentifier
return __a\u0067_tick()

//// new target
// expect: illegal IllegalSyntax
function F() { return new.target } return new F()

//// super property escape
// expect: illegal IllegalPrototypeAccess
const o = { f() { return super['constr' + 'uctor'] } }; return o.f()

//// super late
// expect: stopped IllegalPrototypeAccess
const k = Object.keys({ constructor: 0 })[0]; const o = { f() { return super[k] } }; return o.f()

//// class name trick
// expect: illegal IllegalPrototypeAccess
const o = { ['__pro' + 'to__']: { a: 1 } }; return o.a

//// assign proto
// expect: stopped IllegalPrototypeAccess
const o = Object.assign({}, JSON.parse('{"__proto__":{"a":1}}')); return o.a

//// pollute array
// expect: illegal IllegalPrototypeAccess
Array.prototype.x = 1; return 1

//// pollute late
// expect: illegal IllegalPrototypeAccess
const k = ['proto', 'type'].join(''); Array[k].x = 1; return [].x

//// pollute via instance
// expect: stopped IllegalPrototypeAccess
const k = Object.keys({ __proto_: 1 })[0] + '_'; ({})[k].x = 1; return ({}).x

//// undefined assign
// expect: illegal IllegalIdentifier
undefined = 1; return 1

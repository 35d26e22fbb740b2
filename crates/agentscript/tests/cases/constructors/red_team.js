//// ctor via template
// expect: illegal IllegalPrototypeAccess
return (() => {})[`con${'struct'}or`]('return 1')()

//// ctor via array join
// expect: illegal IllegalPrototypeAccess
return (() => {})[['con','structor'].join('')]('return process')()

//// ctor via reverse
// expect: illegal IllegalPrototypeAccess
return ({})['rotcurtsnoc'.split('').reverse().join('')]

//// ctor via replace
// expect: illegal IllegalPrototypeAccess
return ({})['conXstructor'.replace('X','')]

//// ctor via charcode
// expect: illegal IllegalPrototypeAccess
return ({})[String.fromCharCode(...[99,111,110,115,116,114,117,99,116,111,114])]

//// ctor via at chars
// expect: stopped IllegalPrototypeAccess
const k = Object.keys({ constructor: 1 })[0]; return typeof (() => {})[k]

//// ctor via json
// expect: stopped IllegalPrototypeAccess
const k = JSON.parse('"\\u0063onstructor"'); return typeof ({})[k]

//// ctor via tool answer
// expect: stopped IllegalPrototypeAccess
const { k } = await callTool('echo', { k: 'constructor' }); return typeof (async () => {})[k]

//// ctor via spread destructure
// expect: illegal IllegalPrototypeAccess
const { ['constr' + 'uctor']: c } = () => {}; return c

//// ctor rest
// expect: ok []
const { ...rest } = (() => {}); return Object.keys(rest)

//// ctor via computed class
// expect: illegal IllegalPrototypeAccess
class A { static ['constr' + 'uctor2']() {} } return typeof A['constr' + 'uctor']

//// ctor via getOwnPropertyNames
// expect: illegal IllegalPrototypeAccess
return Object.getOwnPropertyNames(Object.prototype ?? {})

//// proto
// expect: illegal IllegalPrototypeAccess
return { __proto__: { a: 1 } }

//// quoted proto
// expect: illegal IllegalPrototypeAccess
return { '__proto__': null }

//// computed proto
// expect: illegal IllegalPrototypeAccess
return { ['__proto__']: 1 }

//// concatenated proto
// expect: illegal IllegalPrototypeAccess
return { ['__pro' + 'to__']: 1 }

//// proto method
// expect: illegal IllegalPrototypeAccess
return { __proto__() {} }

//// proto getter
// expect: illegal IllegalPrototypeAccess
return { get __proto__() { return 1 } }

//// proto setter
// expect: illegal IllegalPrototypeAccess
return { set __proto__(v) {} }

//// shorthand proto
// expect: illegal IllegalPrototypeAccess
const __proto__ = {}; return { __proto__ }

//// proto in an argument
// expect: illegal IllegalPrototypeAccess
return callTool('echo', { __proto__: { admin: true } })

//// class field
// expect: illegal IllegalPrototypeAccess
class A { __proto__ = 1 }

//// class method
// expect: illegal IllegalPrototypeAccess
class A { __proto__() {} }

//// static
// expect: illegal IllegalPrototypeAccess
class A { static __proto__ = null }

//// nested
// expect: illegal IllegalPrototypeAccess
return { a: { b: { __proto__: 1 } } }

//// escaped
// expect: illegal IllegalPrototypeAccess
return { __pr\u006fto__: 1 }


//// species
// expect: illegal IllegalBuiltinAccess
return typeof Array[Symbol.species]

//// unscopables
// expect: illegal IllegalBuiltinAccess
return typeof Array[Symbol.unscopables]

//// toPrimitive
// expect: illegal IllegalBuiltinAccess
return typeof Array[Symbol.toPrimitive]

//// hasInstance
// expect: illegal IllegalBuiltinAccess
return typeof Array[Symbol.hasInstance]

//// isConcatSpreadable
// expect: illegal IllegalBuiltinAccess
return typeof Array[Symbol.isConcatSpreadable]

//// matchAll
// expect: illegal IllegalBuiltinAccess
return typeof Array[Symbol.matchAll]

//// replace
// expect: illegal IllegalBuiltinAccess
return typeof Array[Symbol.replace]

//// for
// expect: illegal IllegalBuiltinAccess
return Symbol.for('nodejs.util.inspect.custom')

//// keyFor
// expect: illegal IllegalBuiltinAccess
return Symbol.keyFor(Symbol.iterator)

//// computed
// expect: illegal IllegalBuiltinAccess
return Symbol['spe' + 'cies']

//// computed for
// expect: illegal IllegalBuiltinAccess
return Symbol['for']('a')


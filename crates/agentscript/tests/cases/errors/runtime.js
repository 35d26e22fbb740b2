//// type error
// expect: runtime TypeError
return null.x

//// reference error
// expect: runtime ReferenceError
return missing

//// range error
// expect: runtime RangeError
return new Array(-1)

//// own error
// expect: runtime Error
throw new Error('mine')


//// redos email
// expect: limit
return /^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$/.test('a'.repeat(50) + '!')

//// redos split
// expect: limit
return ('x'.repeat(40) + 'y').split(/(x+x+)+z/).length

//// redos backref
// expect: limit
return /(a*)*\1c/.test('a'.repeat(60))

//// redos replace fn
// expect: limit
return 'a'.repeat(30).replace(/(a|a)*b/g, () => 'x')

//// redos dynamic
// expect: limit
return new RegExp('(a' + '+)+$').test('a'.repeat(60) + 'b')

//// regexp exec override
// expect: runtime TypeError
const r = /x/; r.exec = () => { for (;;) {} }; return 'x'.replace(r, 'y')

//// regexp symbol
// expect: illegal IllegalBuiltinAccess
const r = /x/; r[Symbol.replace] = () => 'z'; return 1

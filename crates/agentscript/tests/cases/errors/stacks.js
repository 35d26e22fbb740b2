//// caught
// expect: illegal IllegalBuiltinAccess
try { null.x } catch (e) { return e.stack }

//// new error
// expect: illegal IllegalBuiltinAccess
return new Error('x').stack

//// variable
// expect: illegal IllegalBuiltinAccess
const e = new Error('x'); return e.stack

//// typeof
// expect: illegal IllegalBuiltinAccess
try { throw new Error() } catch (e) { return typeof e.stack }

//// type error
// expect: illegal IllegalBuiltinAccess
return new TypeError('x').stack

//// optional
// expect: illegal IllegalBuiltinAccess
try { null.x } catch (e) { return e?.stack }


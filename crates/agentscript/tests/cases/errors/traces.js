//// captureStackTrace
// expect: illegal IllegalBuiltinAccess
const o = {}; Error.captureStackTrace(o); return o.stack

//// prepareStackTrace
// expect: illegal IllegalBuiltinAccess
Error.prepareStackTrace = (e, s) => s; return new Error('x').stack

//// computed prepareStackTrace
// expect: illegal IllegalBuiltinAccess
Error['prepare' + 'StackTrace'] = (e, s) => s

//// captureStackTrace alias
// expect: illegal IllegalBuiltinAccess
const { captureStackTrace: c } = Error; c({})

//// caught constructor
// expect: illegal IllegalPrototypeAccess
try { null.x } catch (e) { return e.constructor.constructor('return 1')() }

//// tool error constructor
// expect: illegal IllegalPrototypeAccess
try { await callTool('fail', {}) } catch (e) { return e.constructor }


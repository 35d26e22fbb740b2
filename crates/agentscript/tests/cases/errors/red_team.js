//// error name spoof
// expect: runtime Error
throw Object.assign(new Error('x'), { name: 'MemoryLimitError' })

//// error name getter
// expect: limit
throw { get name() { for (;;) {} }, message: 'x' }

//// error message object
// expect: runtime Error
throw { message: { toString() { return '/etc/passwd' } } }

//// throw function
// expect: runtime Error
throw () => 1

//// throw huge
// expect: runtime Error
throw new Error('x'.repeat(5e6))

//// throw promise
// expect: runtime Error
throw Promise.reject(new Error('x'))

//// throw symbol
// expect: runtime Error
throw Symbol('/home/u/x.js')

//// throw undefined
// expect: runtime Error
throw undefined

//// throw cyclic
// expect: runtime Error
const e = new Error('x'); e.cause = e; throw e

//// error stack
// expect: illegal IllegalBuiltinAccess
try { null.x } catch (e) { return [e.stack, e['st' + 'ack']] }

//// error stack late
// expect: ok ""
try { null.x } catch (e) { const k = Object.keys({ stack: 1 })[0]; return e[k] }

//// error lineNumber
// expect: ok [null,null,["message"]]
try { null.x } catch (e) { return [e.fileName, e.lineNumber, Object.getOwnPropertyNames(e)] }

//// error subclass with toString
// expect: runtime Error
class E extends Error { toString() { for (;;) {} } } throw new E('x')

//// error subclass message getter
// expect: runtime Error
class E extends Error { get message() { for (;;) {} } } throw new E('x')

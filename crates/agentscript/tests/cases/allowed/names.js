//// process as a key
// expect: ok 1
return { process: 1 }.process

//// process as a parameter
// expect: ok 2
return [1].map(process => process + 1)[0]

//// process as a variable
// expect: ok 1
const process = 1; return process

//// window in data
// expect: ok [3]
const row = { window: [3] }; return row.window

//// fetch as a function
// expect: ok 1
const fetch = () => 1; return fetch()

//// require as a key
// expect: ok true
return { require: true }.require

//// eval as a key
// expect: ok 1
return { eval: 1 }.eval

//// self as a variable
// expect: ok 1
const self = { a: 1 }; return self.a

//// module as a parameter
// expect: ok "m"
return ((module) => module)('m')

//// document in a loop
// expect: ok ["d"]
const r = []; for (const document of ['d']) r.push(document); return r

//// global as a field
// expect: ok 1
class A { global = 1 } return new A().global

//// constructor as a key
// expect: ok 1
return Object.keys({ constructor: 1 }).length

//// constructor in text
// expect: ok "constructor"
return 'constructor'

//// eval in text
// expect: ok "eval(1)"
return 'eval(1)'

//// proto in text
// expect: ok "__proto__"
return ['__proto__'][0]

//// import in text
// expect: ok "import x"
return 'import x'

//// names in a comment
// expect: ok 1
// eval, process, __proto__
return 1

//// caller in data
// expect: ok "Ann"
return { caller: 'Ann' }.caller

//// callee in data
// expect: ok "Bob"
const call = { callee: 'Bob' }; return call.callee

//// fetch as a method
// expect: ok 1
const api = { fetch() { return 1 } }; return api.fetch()

//// setTimeout as a key
// expect: ok 1
return { setTimeout: 1 }.setTimeout

//// timeout in text
// expect: ok "setTimeout"
return 'set' + 'Timeout'

//// name with underscores
// expect: ok 1
const __private = 1; return __private

//// dollar
// expect: ok 1
const $ = 1; return $

//// location as a variable
// expect: ok "x"
const location = 'x'; return location

//// top and parent
// expect: ok [1, 2]
const top = 1, parent = 2; return [top, parent]

//// alias of callTool
// expect: ok "function"
const f = callTool; return typeof f

//// exports in destructuring
// expect: ok 4
const { exports } = { exports: 4 }; return exports

//// Function in a type
// expect: ok 1
const f: Function = () => 1; return f()

//// process in a type
// expect: ok 1
type process = number; const a: process = 1; return a


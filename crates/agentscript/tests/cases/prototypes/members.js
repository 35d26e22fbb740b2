//// constructor
// expect: illegal IllegalPrototypeAccess
return ({}).constructor

//// __proto__
// expect: illegal IllegalPrototypeAccess
return ({}).__proto__

//// __defineGetter__
// expect: illegal IllegalPrototypeAccess
return ({}).__defineGetter__

//// __defineSetter__
// expect: illegal IllegalPrototypeAccess
return ({}).__defineSetter__

//// __lookupGetter__
// expect: illegal IllegalPrototypeAccess
return ({}).__lookupGetter__

//// __lookupSetter__
// expect: illegal IllegalPrototypeAccess
return ({}).__lookupSetter__

//// Array prototype
// expect: illegal IllegalPrototypeAccess
return Array.prototype.map.call('ab', x => x)

//// Object prototype write
// expect: illegal IllegalPrototypeAccess
Object.prototype.polluted = 1; return ({}).polluted

//// Array prototype write
// expect: illegal IllegalPrototypeAccess
Array.prototype.push = () => 0

//// getPrototypeOf
// expect: illegal IllegalPrototypeAccess
return Object.getPrototypeOf([])

//// setPrototypeOf
// expect: illegal IllegalPrototypeAccess
return Object.setPrototypeOf({}, null)

//// optional constructor
// expect: illegal IllegalPrototypeAccess
return [].constructor?.name

//// optional chain
// expect: illegal IllegalPrototypeAccess
return ({})?.constructor

//// constructor of a string
// expect: illegal IllegalPrototypeAccess
return ''.constructor

//// constructor twice
// expect: illegal IllegalPrototypeAccess
return [].constructor.constructor('return 1')()

//// constructor of a function
// expect: illegal IllegalPrototypeAccess
return (() => 1).constructor('return 1')()

//// async function constructor
// expect: illegal IllegalPrototypeAccess
return (async () => 1).constructor('return 1')()

//// generator constructor
// expect: illegal IllegalPrototypeAccess
return (function* () {}).constructor('yield 1')()

//// constructor of a tool
// expect: illegal IllegalPrototypeAccess
return callTool.constructor('return 1')()

//// constructor of the context
// expect: illegal IllegalPrototypeAccess
return codecallContext.constructor

//// proto write
// expect: illegal IllegalPrototypeAccess
const o = {}; o.__proto__ = { a: 1 }; return o.a

//// proto delete
// expect: illegal IllegalPrototypeAccess
const o = {}; delete o.__proto__

//// escaped constructor
// expect: illegal IllegalPrototypeAccess
return [].c\u006fnstructor

//// braced escape
// expect: illegal IllegalPrototypeAccess
return [].\u{63}onstructor

//// typescript cast
// expect: illegal IllegalPrototypeAccess
return ([] as any).constructor

//// typescript non-null
// expect: illegal IllegalPrototypeAccess
return []!.constructor

//// class prototype
// expect: illegal IllegalPrototypeAccess
class A {}; A.prototype.m = () => 1

//// arguments callee
// expect: illegal IllegalPrototypeAccess
return (function () { return arguments.callee })()

//// arguments caller
// expect: illegal IllegalPrototypeAccess
return (function () { return arguments.caller })()

//// arguments callee computed
// expect: illegal IllegalPrototypeAccess
return (function () { return arguments['cal' + 'lee'] })()

//// in a tagged template
// expect: illegal IllegalPrototypeAccess
return [].constructor``

//// this constructor in a class
// expect: illegal IllegalPrototypeAccess
class A { m() { return this.constructor } }; return new A().m()

//// super constructor
// expect: illegal IllegalPrototypeAccess
class A { m() { return super.constructor } }; return new A().m()

//// constructor in a getter
// expect: illegal IllegalPrototypeAccess
const o = { get c() { return [].constructor } }; return o.c

//// sequence
// expect: illegal IllegalPrototypeAccess
return (0, [].constructor)('return 1')

//// isolated Promise
// expect: illegal IllegalPrototypeAccess
return callTool('echo', {}).constructor


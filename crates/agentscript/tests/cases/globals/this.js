//// this
// expect: illegal IllegalGlobalAccess
return this

//// this member
// expect: illegal IllegalGlobalAccess
return this.process

//// this in an arrow
// expect: illegal IllegalGlobalAccess
return (() => this)()

//// this computed
// expect: illegal IllegalGlobalAccess
return this['eval']

//// this spread
// expect: illegal IllegalGlobalAccess
return { ...this }

//// this destructured
// expect: illegal IllegalGlobalAccess
const { process: p } = this; return p

//// this in a template
// expect: illegal IllegalGlobalAccess
return `${this}`

//// this in a default
// expect: illegal IllegalGlobalAccess
const f = (a = this) => a; return f()

//// this in a nested arrow
// expect: illegal IllegalGlobalAccess
return [1].map(() => (() => this)())

//// this as an argument
// expect: illegal IllegalGlobalAccess
return Object.keys(this)

//// this in a block
// expect: illegal IllegalGlobalAccess
{ return this }

//// escaped process
// expect: illegal IllegalGlobalAccess
return proc\u0065ss.env

//// process in a callback
// expect: illegal IllegalGlobalAccess
return [1].map(() => process.exit())

//// globalThis computed
// expect: illegal IllegalGlobalAccess
return globalThis['ev' + 'al']('1')

//// global destructured
// expect: illegal IllegalGlobalAccess
const { Array: a } = globalThis


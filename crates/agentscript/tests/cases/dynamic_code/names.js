//// eval called
// expect: illegal IllegalBuiltinAccess
return eval('return 1')

//// eval as a value
// expect: illegal IllegalBuiltinAccess
const f = eval; return typeof f

//// Function called
// expect: illegal IllegalBuiltinAccess
return Function('return 1')

//// Function as a value
// expect: illegal IllegalBuiltinAccess
const f = Function; return typeof f

//// AsyncFunction called
// expect: illegal IllegalBuiltinAccess
return AsyncFunction('return 1')

//// AsyncFunction as a value
// expect: illegal IllegalBuiltinAccess
const f = AsyncFunction; return typeof f

//// GeneratorFunction called
// expect: illegal IllegalBuiltinAccess
return GeneratorFunction('return 1')

//// GeneratorFunction as a value
// expect: illegal IllegalBuiltinAccess
const f = GeneratorFunction; return typeof f

//// WebAssembly called
// expect: illegal IllegalBuiltinAccess
return WebAssembly('return 1')

//// WebAssembly as a value
// expect: illegal IllegalBuiltinAccess
const f = WebAssembly; return typeof f

//// Proxy called
// expect: illegal IllegalBuiltinAccess
return Proxy('return 1')

//// Proxy as a value
// expect: illegal IllegalBuiltinAccess
const f = Proxy; return typeof f

//// Reflect called
// expect: illegal IllegalBuiltinAccess
return Reflect('return 1')

//// Reflect as a value
// expect: illegal IllegalBuiltinAccess
const f = Reflect; return typeof f

//// SharedArrayBuffer called
// expect: illegal IllegalBuiltinAccess
return SharedArrayBuffer('return 1')

//// SharedArrayBuffer as a value
// expect: illegal IllegalBuiltinAccess
const f = SharedArrayBuffer; return typeof f

//// Atomics called
// expect: illegal IllegalBuiltinAccess
return Atomics('return 1')

//// Atomics as a value
// expect: illegal IllegalBuiltinAccess
const f = Atomics; return typeof f

//// FinalizationRegistry called
// expect: illegal IllegalBuiltinAccess
return FinalizationRegistry('return 1')

//// FinalizationRegistry as a value
// expect: illegal IllegalBuiltinAccess
const f = FinalizationRegistry; return typeof f

//// WeakRef called
// expect: illegal IllegalBuiltinAccess
return WeakRef('return 1')

//// WeakRef as a value
// expect: illegal IllegalBuiltinAccess
const f = WeakRef; return typeof f

//// ShadowRealm called
// expect: illegal IllegalBuiltinAccess
return ShadowRealm('return 1')

//// ShadowRealm as a value
// expect: illegal IllegalBuiltinAccess
const f = ShadowRealm; return typeof f

//// Worker called
// expect: illegal IllegalBuiltinAccess
return Worker('return 1')

//// Worker as a value
// expect: illegal IllegalBuiltinAccess
const f = Worker; return typeof f


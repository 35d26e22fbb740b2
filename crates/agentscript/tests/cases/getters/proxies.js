//// proxy of the context
// expect: illegal IllegalBuiltinAccess
return new Proxy(codecallContext, {})

//// revocable
// expect: illegal IllegalBuiltinAccess
return Proxy.revocable({}, {})

//// reflect apply
// expect: illegal IllegalBuiltinAccess
return Reflect.apply(callTool, null, ['a', {}])

//// reflect construct
// expect: illegal IllegalBuiltinAccess
return Reflect.construct(Array, [])

//// reflect get
// expect: illegal IllegalBuiltinAccess
return Reflect.get([], 'constructor')

//// reflect own keys
// expect: illegal IllegalBuiltinAccess
return Reflect.ownKeys({})

//// proxy as an argument
// expect: illegal IllegalBuiltinAccess
return callTool('echo', new Proxy({}, { get: () => 1 }))

//// escaped proxy
// expect: illegal IllegalBuiltinAccess
return new Pr\u006fxy({}, {})


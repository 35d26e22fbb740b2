//// args toJSON
// expect: ok {"stolen":1}
return callTool('echo', { toJSON() { return { stolen: 1 } } })

//// args toJSON loop
// expect: limit
return callTool('echo', { toJSON() { for (;;) {} } })

//// args getter
// expect: ok {"a":"g"}
return callTool('echo', { get a() { return 'g' } })

//// args getter reenters
// expect: ok {"a":2}
const o = { get a() { callTool('echo', { inner: 1 }); return 2 } }; return callTool('echo', o)

//// args changes while serialised
// expect: ok {"a":1,"b":"late"}
const o = { get a() { o.b = 'late'; return 1 }, b: 'early' }; return callTool('echo', o)

//// args name object
// expect: illegal SelfReferenceBlocked
return callTool({ toString: () => 'codecall:execute' }, {})

//// args name array
// expect: illegal SelfReferenceBlocked
return callTool(['codecall:execute'], {})

//// args name boxed
// expect: runtime TypeError
return callTool(Object('codecall:execute'), {})

//// args proto
// expect: ok {"__proto__":{"admin":true}}
return callTool('echo', JSON.parse('{"__proto__": {"admin": true}}'))

//// args bigint
// expect: ok "TypeError"
return callTool('echo', { a: 1n }).catch((e) => e.name)

//// args cycle
// expect: ok "TypeError"
const a = {}; a.a = a; return callTool('echo', a).catch((e) => e.name)

//// args deep
// expect: limit
let a = {}; for (let i = 0; i < 50000; i++) a = { a }; return callTool('echo', a)

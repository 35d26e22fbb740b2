//// constant name
// expect: illegal SelfReferenceBlocked
const n = 'codecall:execute'; return callTool(n, {})

//// alias
// expect: illegal SelfReferenceBlocked
const f = callTool; return f('codecall:execute', {})

//// alias of an alias
// expect: illegal SelfReferenceBlocked
const f = callTool, g = f; return g('codecall:execute', {})

//// alias and constant
// expect: illegal SelfReferenceBlocked
const f = callTool; const n = 'codecall' + ':search'; return f(n, {})

//// conditional alias
// expect: illegal SelfReferenceBlocked
const f = true ? callTool : null; return f('codecall:execute', {})

//// alias called
// expect: illegal SelfReferenceBlocked
const f = callTool; return f.call(null, 'codecall:execute', {})


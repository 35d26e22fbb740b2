//// self by case
// expect: illegal SelfReferenceBlocked
return callTool('CodeCall:Execute', {})

//// self by space
// expect: illegal SelfReferenceBlocked
return callTool(' codecall:execute', {})

//// self by fullwidth
// expect: runtime ToolError
return callTool('codecall\uff1aexecute', {})

//// self by alias in object
// expect: stopped SelfReferenceBlocked
const o = { c: callTool }; return o.c('codecall:execute', {})

//// self by bind
// expect: illegal SelfReferenceBlocked
return callTool.bind(null, 'codecall:execute')({})

//// self by apply
// expect: illegal SelfReferenceBlocked
return callTool.apply(undefined, ['codecall:invoke', {}])

//// self by call
// expect: illegal SelfReferenceBlocked
return callTool.call(null, 'codecall:search', {})

//// self by map
// expect: stopped SelfReferenceBlocked
return Promise.all(['codecall:search'].map((n) => callTool(n, {})))

//// self by parallel
// expect: illegal SelfReferenceBlocked
return __safe_parallel([() => callTool('codecall:execute', {})])

//// self by getTool
// expect: illegal SelfReferenceBlocked
return getTool('codecall:execute')

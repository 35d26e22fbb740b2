//// spelling 1
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool('codecall:execute', {})

//// spelling 2
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool("codecall:search", {})

//// spelling 3
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool(`codecall:invoke`, {})

//// spelling 4
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool('codecall' + ':' + 'execute', {})

//// spelling 5
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool(`codecall:${'execute'}`, {})

//// spelling 6
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool(['codecall', 'execute'].join(':'), {})

//// spelling 7
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool('CodeCall:execute', {})

//// spelling 8
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool(' codecall:execute', {})

//// spelling 9
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool('codecall_execute', {})

//// spelling 10
// expect: illegal SelfReferenceBlocked
const x = 0; return await (0, callTool)('codecall:execute', {})

//// spelling 11
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool?.('codecall:execute', {})

//// spelling 12
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool.call(null, 'codecall:execute', {})

//// spelling 13
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool.apply(null, ['codecall:execute', {}])

//// spelling 14
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool.bind(null, 'codecall:execute')({})

//// spelling 15
// expect: illegal SelfReferenceBlocked
const x = 0; return await getTool('codecall:execute')

//// spelling 16
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool(x ? 'a' : 'codecall:execute', {})

//// spelling 17
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool('\x63odecall:execute', {})

//// spelling 18
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool(String.fromCharCode(99,111,100,101,99,97,108,108,58,120), {})

//// spelling 19
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool('etucexe:llacedoc'.split('').reverse().join(''), {})

//// spelling 20
// expect: illegal SelfReferenceBlocked
const x = 0; return await (callTool)('codecall:execute', {})

//// spelling 21
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool('codecall:execute' as string, {})

//// spelling 22
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool!('codecall:describe', {})

//// spelling 23
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool<any>('codecall:describe', {})

//// spelling 24
// expect: illegal SelfReferenceBlocked
const x = 0; return await __safe_parallel([() => callTool('codecall:execute', {})])

//// spelling 25
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool(('a', 'codecall:execute'), {})

//// spelling 26
// expect: illegal SelfReferenceBlocked
const x = 0; return await c\u0061llTool('codecall:execute', {})

//// spelling 27
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool('CODECALL:EXECUTE'.toLowerCase(), {})

//// spelling 28
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool('codecall' .concat(':execute'), {})

//// spelling 29
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool(String.raw`codecall:execute`, {})

//// spelling 30
// expect: illegal SelfReferenceBlocked
const x = 0; return await callTool(x || 'codecall:search', {})


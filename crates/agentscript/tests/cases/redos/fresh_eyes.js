//// counted groups in counted groups
// expect: limit
return new RegExp('((a{0,255}){0,255}){0,255}b').test('a'.repeat(1000))

//// classes in classes in classes
// expect: runtime SyntaxError
return new RegExp('['.repeat(20000) + 'a' + ']'.repeat(20000), 'v').test('a')

//// lookbehinds in lookbehinds
// expect: runtime SyntaxError
return new RegExp('(?<='.repeat(20000) + 'a' + ')'.repeat(20000)).test('a')

//// many large classes
// expect: limit
return new RegExp('[^\\p{L}\\p{N}\\p{S}]'.repeat(30000), 'iu').test('a')

//// place to start at that does not end
// expect: limit
const r = /a/g; r.lastIndex = { valueOf() { for (;;) {} } }; return r.test('a')

//// nested plus
// expect: safe
return /^(a+)+$/.test('a'.repeat(40) + 'b')

//// alternation
// expect: safe
return /^(a|a)*$/.test('a'.repeat(40) + 'b')

//// nested star
// expect: safe
return /^(a*)*b$/.test('a'.repeat(40))

//// overlapping
// expect: safe
return /^(\w+\s?)*$/.test('word '.repeat(30) + '!')

//// back reference
// expect: safe
return /(a*)\1b/.test('a'.repeat(5000))

//// lookahead
// expect: safe
return /(?=(a+))+b/.test('a'.repeat(5000))

//// lookbehind
// expect: safe
return /(?<=(a+)+)b/.test('a'.repeat(40) + 'b')

//// email
// expect: safe
return /^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}$/.test('a'.repeat(50))

//// built
// expect: safe
return new RegExp('^(a+)+$').test('a'.repeat(40) + 'b')

//// replace
// expect: safe
return 'a'.repeat(40).replace(/(a+)+$/g, 'x')

//// split
// expect: safe
return ('a'.repeat(40) + 'b').split(/(a+)+$/).length

//// match all
// expect: safe
return [...('a'.repeat(40) + 'b').matchAll(/(a+)+$/g)].length

//// many groups
// expect: safe
return new RegExp('('.repeat(1000) + ')'.repeat(1000)).test('a')

//// deep groups
// expect: safe
return new RegExp('('.repeat(100000))

//// large count
// expect: safe
return /a{1000000}/.test('a')

//// large range
// expect: safe
return new RegExp('(a{1,1000}){1,1000}').test('a'.repeat(100))

//// replace with a function
// expect: safe
return 'aaa'.replace(/a/g, () => 'a'.repeat(1e6)).length

//// sticky loop
// expect: safe
const r = /a/y; while (true) { r.lastIndex = 0; r.test('a') }


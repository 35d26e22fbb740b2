//// escape in a name
// expect: safe
const \u0061bc = 1; return abc

//// unicode name
// expect: safe
const größe = 1; return größe

//// emoji in a string
// expect: safe
return '👨‍👩‍👧'

//// comment that looks like code
// expect: safe
/* eval('1') */ return 1

//// string that looks like code
// expect: safe
return "eval('1')"

//// regular expression with quotes
// expect: safe
return /['"`]/.test('x')

//// division after a parenthesis
// expect: safe
const a = 4; return (a) / 2 / 1

//// regular expression after if
// expect: safe
if (true) /x'/.test('x')
return 1

//// goes to
// expect: safe
let n = 3; while (n --> 0) ; return n

//// asi with brackets
// expect: safe
let a = 1
;[a] = [2]
return a

//// template in a template
// expect: safe
return `a${`b${1}`}c`

//// optional chain and a number
// expect: safe
return true?.5:1

//// line continuation
// expect: safe
return 'a\
b'

//// carriage returns
// expect: safe
const a = 1
return a

//// label and loop
// expect: safe
a: for (const x of [1]) { continue a }

//// regexp class with a slash
// expect: safe
return /[/]/.test('/')


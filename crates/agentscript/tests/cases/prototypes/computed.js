//// concatenated
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['con' + 'structor']

//// three parts
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['c' + 'onstruct' + 'or']

//// template
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][`constructor`]

//// template with a part
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][`${'con'}structor`]

//// nested templates
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][`${`con${'struct'}`}or`]

//// joined
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][['con', 'structor'].join('')]

//// joined letters
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][['c','o','n','s','t','r','u','c','t','o','r'].join('')]

//// reversed
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['rotcurtsnoc'.split('').reverse().join('')]

//// char codes
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][String.fromCharCode(99,111,110,115,116,114,117,99,116,111,114)]

//// code points
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][String.fromCodePoint(99,111,110,115,116,114,117,99,116,111,114)]

//// spread codes
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][String.fromCharCode(...[99,111,110,115,116,114,117,99,116,111,114])]

//// conditional
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][true ? 'constructor' : 'a']

//// other branch
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][x ? 'a' : 'constructor']

//// logical or
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['' || 'constructor']

//// nullish
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][null ?? 'constructor']

//// comma
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][('a', 'constructor')]

//// parentheses
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][((('constructor')))]

//// array
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][['constructor']]

//// array of array
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][[['constructor']]]

//// lower case
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['CONSTRUCTOR'.toLowerCase()]

//// trimmed
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][' constructor '.trim()]

//// sliced
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['xxconstructor'.slice(2)]

//// substring
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['constructorxx'.substring(0, 11)]

//// replaced
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['con-structor'.replace('-', '')]

//// replaceAll
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['c-o-n-s-t-r-u-c-t-o-r'.replaceAll('-', '')]

//// concat
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['con'.concat('structor')]

//// raw template
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][String.raw`constructor`]

//// object toString
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][{ toString: () => 'constructor' }]

//// object toString method
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][{ toString() { return 'constructor' } }]

//// object valueOf
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][{ [Symbol.toPrimitive]: () => 'constructor' }]

//// called arrow
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][(() => 'constructor')()]

//// called function
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][(function () { return 'constructor' })()]

//// string function
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][String('constructor')]

//// assigned
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][y = 'constructor']

//// escaped string
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['\x63onstructor']

//// unicode string
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['\u0063onstructor']

//// line continuation
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['con\
structor']

//// hex in a template
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][`\x63onstructor`]

//// typescript cast
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['constructor' as string]

//// awaited
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][await 'constructor']

//// split by a mark
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['con|structor'.split('|').join('')]

//// array concat
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][['con'].concat(['structor']).join('')]

//// spread array
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return [][[...['con'], 'structor'].join('')]

//// normalised
// expect: illegal IllegalPrototypeAccess
let x = 1, y; return []['constructor'.normalize()]


//// concatenated
// expect: illegal IllegalPrototypeAccess
let x = 1; return ({})['__pr' + 'oto__']

//// three parts
// expect: illegal IllegalPrototypeAccess
let x = 1; return ({})['__p' + 'rot' + 'o__']

//// template
// expect: illegal IllegalPrototypeAccess
let x = 1; return ({})[`__proto__`]

//// template with a part
// expect: illegal IllegalPrototypeAccess
let x = 1; return ({})[`${'__pr'}oto__`]

//// joined
// expect: illegal IllegalPrototypeAccess
let x = 1; return ({})[['__pr', 'oto__'].join('')]

//// joined letters
// expect: illegal IllegalPrototypeAccess
let x = 1; return ({})['__p' + 'rot' + 'o__']

//// reversed
// expect: illegal IllegalPrototypeAccess
let x = 1; return ({})['__otorp__'.split('').reverse().join('')]

//// char codes
// expect: illegal IllegalPrototypeAccess
let x = 1; return ({})[String.fromCharCode(95,95,112,114,111,116,111,95,95)]

//// code points
// expect: illegal IllegalPrototypeAccess
let x = 1; return ({})[String.fromCodePoint(95,95,112,114,111,116,111,95,95)]

//// spread codes
// expect: illegal IllegalPrototypeAccess
let x = 1; return ({})[String.fromCharCode(...[95,95,112,114,111,116,111,95,95])]

//// conditional
// expect: illegal IllegalPrototypeAccess
let x = 1; return ({})[true ? '__proto__' : 'a']


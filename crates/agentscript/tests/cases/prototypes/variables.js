//// constant
// expect: illegal IllegalPrototypeAccess
const k = 'constructor'; return [][k]

//// constant parts
// expect: illegal IllegalPrototypeAccess
const a = 'con', b = 'structor'; return [][a + b]

//// chain of constants
// expect: illegal IllegalPrototypeAccess
const a = 'con'; const b = a + 'structor'; const c = b; return [][c]

//// array constant
// expect: illegal IllegalPrototypeAccess
const p = ['con', 'structor']; return [][p.join('')]

//// let
// expect: illegal IllegalPrototypeAccess
let k = '__proto__'; return ({})[k]

//// var
// expect: illegal IllegalPrototypeAccess
var k = 'prototype'; return Array[k]

//// template of constants
// expect: illegal IllegalPrototypeAccess
const a = 'proto'; return ({})[`__${a}__`]


//// constructor
// expect: illegal IllegalPrototypeAccess
const { constructor } = []; return constructor

//// renamed
// expect: illegal IllegalPrototypeAccess
const { constructor: c } = []; return c('return 1')

//// quoted
// expect: illegal IllegalPrototypeAccess
const { 'constructor': c } = []

//// computed
// expect: illegal IllegalPrototypeAccess
const { ['constructor']: c } = []

//// concatenated
// expect: illegal IllegalPrototypeAccess
const { ['con' + 'structor']: c } = []

//// proto
// expect: illegal IllegalPrototypeAccess
const { __proto__: p } = {}

//// computed proto
// expect: illegal IllegalPrototypeAccess
const { ['__proto__']: p } = {}

//// nested
// expect: illegal IllegalPrototypeAccess
const { a: { constructor: c } } = { a: [] }

//// in a parameter
// expect: illegal IllegalPrototypeAccess
const f = ({ constructor: c }) => c; return f([])

//// in a default
// expect: illegal IllegalPrototypeAccess
const f = ({ constructor: c } = []) => c; return f()

//// in a catch
// expect: illegal IllegalPrototypeAccess
try { throw [] } catch ({ constructor: c }) { return c }

//// in for of
// expect: illegal IllegalPrototypeAccess
for (const { constructor: c } of [[]]) return c

//// assignment
// expect: illegal IllegalPrototypeAccess
let c; ({ constructor: c } = []); return c

//// assignment shorthand
// expect: illegal IllegalPrototypeAccess
let constructor; ({ constructor } = []); return constructor

//// assignment computed
// expect: illegal IllegalPrototypeAccess
let c; ({ ['constructor']: c } = [])

//// assignment proto
// expect: illegal IllegalPrototypeAccess
let p; ({ __proto__: p } = {})

//// in an array
// expect: illegal IllegalPrototypeAccess
const [{ constructor: c }] = [[]]

//// escaped
// expect: illegal IllegalPrototypeAccess
const { c\u006fnstructor: c } = []

//// template key
// expect: illegal IllegalPrototypeAccess
const { [`constructor`]: c } = []

//// prototype of a class
// expect: illegal IllegalPrototypeAccess
const { prototype: p } = Array

//// with a default value
// expect: illegal IllegalPrototypeAccess
const { constructor: c = 1 } = []

//// with rest
// expect: illegal IllegalPrototypeAccess
const { constructor: c, ...rest } = []

//// for assignment
// expect: illegal IllegalPrototypeAccess
let c; for ({ constructor: c } of [[]]) ;


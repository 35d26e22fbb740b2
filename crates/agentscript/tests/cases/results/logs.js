//// many lines
// expect: safe
for (;;) console.log('x')

//// one long line
// expect: safe
console.log('x'.repeat(1e6))

//// cycle
// expect: safe
const o = {}; o.o = o; console.log(o)

//// gadget
// expect: safe
console.log({ toString() { throw 1 }, toJSON() { throw 2 } })

//// control characters
// expect: safe
console.log('\u001b[2J')

//// many arguments
// expect: safe
console.log(...new Array(1e5).fill('x'))

//// huge object
// expect: safe
console.log(new Array(1e6).fill(1))

//// console method taken
// expect: safe
const l = console.log; l('a'); return 1

//// console frozen
// expect: safe
console.log = () => 1

//// missing method
// expect: safe
console.table([1])

//// symbol
// expect: safe
console.log(Symbol('a'))

//// line feeds
// expect: safe
console.log('a\nb')


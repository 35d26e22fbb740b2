//// a default that counts a parameter up
// expect: syntax 1:19
const f = (a, b = a++) => a; return f(1)

//// a default that assigns to a parameter
// expect: syntax 1:20
const f = (a, b = (a = 5)) => a; return f(1)

//// a default with a function that assigns to a parameter
// expect: syntax 1:29
const f = (n, inc = () => { n++ }) => { inc(); return n }; return f(1)

//// a default with a function that reads a parameter which changes
// expect: syntax 1:25
const f = (a, b = () => a) => { a = 9; return b() }; return f(1)

//// a pattern with a function that assigns to one of its names
// expect: syntax 1:30
const f = ({ a, set = v => { a = v } }) => { set(2); return a }; return f({ a: 1 })

//// a generator whose default changes a parameter
// expect: syntax 1:21
function* g(a, b = (a = 2)) { yield a }

//// defaults that read parameters
// expect: ok [1,2,3]
const f = (a, b = a + 1, c = () => b + 1) => [a, b, c()]; return f(1)

//// a variable of the body with the name of a parameter
// expect: ok [9,1]
const f = (a, b = () => a) => { var a = 9; return [a, b()] }; return f(1)

//// unclosed string
// expect: syntax 1:8
return 'abc

//// unclosed brace
// expect: syntax 1:9
if (a) {

//// unclosed template
// expect: syntax 1:8
return `abc

//// closing the wrapper
// expect: syntax 1:1
})(); (async () => {

//// closing the function
// expect: syntax 1:1
} ; {

//// await in a plain function
// expect: syntax 1:16
function f() { await x }

//// redeclared
// expect: syntax 2:5
let a = 1
let a = 2

//// octal
// expect: syntax 1:8
return 012

//// delete a name
// expect: syntax 1:15
let a; delete a

//// yield outside
// expect: syntax 1:1
yield 1

//// duplicate parameters
// expect: syntax 1:15
function f(a, a) {}

//// assignment to a literal
// expect: syntax 1:1
1 = 2

//// break outside
// expect: syntax 1:1
break

//// return with a break
// expect: syntax 2:1
return
)

//// jsx
// expect: syntax 1:12
return <div/>

//// private outside
// expect: syntax 1:10
return a.#b

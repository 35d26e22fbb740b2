//// two hundred brackets
// expect: illegal IllegalSyntax
return [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]

//// closing bracket in a regular expression behind a bracket
// expect: ok 9
const [a=()=>{ if(1) /[\]]/.test(""); return 9}]=[];return a()

//// quote in a regular expression behind a brace hides a default
// expect: ok 1
let y=1; function f({[(()=>{{}/"/.x;return "k"})()]:z}, b=()=>y){var y=2;return b()} return f({k:0})


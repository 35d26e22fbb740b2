//// this in a function is nothing
// expect: ok null
return (function () { return this })()

//// this in a method taken out
// expect: ok null
const o = { m() { return this } }; const m = o.m; return m()

//// called with null
// expect: ok null
return (function () { return this }).call(null)

//// nested function
// expect: ok null
return (() => (function () { return this })())()


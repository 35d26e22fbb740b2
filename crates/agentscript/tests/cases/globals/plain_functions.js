//// this in a function is nothing
// expect: illegal IllegalGlobalAccess
return (function () { return this })()

//// called with null
// expect: illegal IllegalGlobalAccess
return (function () { return this }).call(null)

//// nested function
// expect: illegal IllegalGlobalAccess
return (() => (function () { return this })())()


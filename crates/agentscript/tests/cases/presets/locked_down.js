//// while
// expect: illegal IllegalLoop
// preset: locked_down
while (false) ;

//// do
// expect: illegal IllegalLoop
// preset: locked_down
do ; while (false)

//// for in
// expect: illegal IllegalLoop
// preset: locked_down
for (const k in {}) ;

//// for without a test
// expect: illegal IllegalLoop
// preset: locked_down
for (;;) break

//// for with true
// expect: illegal IllegalLoop
// preset: locked_down
for (let i = 0; true; i++) break

//// for with one
// expect: illegal IllegalLoop
// preset: locked_down
for (let i = 0; 1; i++) break

//// for with a cast
// expect: illegal IllegalLoop
// preset: locked_down
for (let i = 0; (true); i++) break

//// nested while
// expect: illegal IllegalLoop
// preset: locked_down
for (const a of [1]) { while (true) ; }

//// while in a function
// expect: illegal IllegalLoop
// preset: locked_down
const f = () => { while (true) ; }; f()

//// regular expression
// expect: illegal IllegalSyntax
// preset: locked_down
return /a/.test('a')

//// RegExp
// expect: illegal IllegalBuiltinAccess
// preset: locked_down
return new RegExp('a')

//// match with text
// expect: illegal IllegalBuiltinAccess
// preset: locked_down
return 'a'.match('a')

//// console
// expect: illegal IllegalGlobalAccess
// preset: locked_down
console.log(1)

//// console by another name
// expect: illegal IllegalGlobalAccess
// preset: locked_down
const c = console


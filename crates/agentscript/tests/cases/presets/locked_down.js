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

//// array of a computed length
// expect: illegal IllegalBuiltinAccess
// preset: locked_down
const size = 100; return Array(size).fill(0)

//// new array of a member as length
// expect: illegal IllegalBuiltinAccess
// preset: locked_down
const cfg = { size: 100 }; return new Array(cfg.size)

//// array of a length behind a plus
// expect: illegal IllegalBuiltinAccess
// preset: locked_down
return Array(+'100').length

//// array of a length written out
// expect: ok 3
// preset: locked_down
return Array(3).fill(0).length

//// array of two computed elements
// expect: ok [1, 2]
// preset: locked_down
const a = 1; return Array(a, a + 1)

//// array from a computed list
// expect: ok [0, 2]
// preset: locked_down
const list = [0, 1]; return Array.from(list, (x) => x * 2)

//// own toString
// expect: illegal IllegalSyntax
// preset: locked_down
return { toString: () => 'A' }

//// own valueOf as a method
// expect: illegal IllegalSyntax
// preset: locked_down
return 1 + { valueOf() { return 1 } }

//// data named toString
// expect: ok {"toString": "a text"}
// preset: locked_down
return { toString: 'a text' }

//// while
// expect: safe
while (false) ;

//// do
// expect: safe
do ; while (false)

//// for in
// expect: safe
for (const k in {}) ;

//// for without a test
// expect: safe
for (;;) break

//// for with true
// expect: safe
for (let i = 0; true; i++) break

//// for with one
// expect: safe
for (let i = 0; 1; i++) break

//// for with a cast
// expect: safe
for (let i = 0; (true); i++) break

//// nested while
// expect: safe
for (const a of [1]) { while (true) ; }

//// while in a function
// expect: safe
const f = () => { while (true) ; }; f()


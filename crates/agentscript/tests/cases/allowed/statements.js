//// if
// expect: ok "a"
if (true) return 'a'; else return 'b'

//// else if
// expect: ok 2
const x = 2; if (x === 1) { return 1 } else if (x === 2) { return 2 }

//// for
// expect: ok 3
let n = 0; for (let i = 0; i < 3; i++) n++; return n

//// for of
// expect: ok 6
let n = 0; for (const x of [1, 2, 3]) n += x; return n

//// for in
// expect: ok ["a", "b"]
const ks = []; for (const k in { a: 1, b: 2 }) ks.push(k); return ks

//// while
// expect: ok 0
let n = 3; while (n > 0) n--; return n

//// do
// expect: ok 1
let n = 0; do n++; while (n < 1); return n

//// break and continue
// expect: ok [1, 3]
const r = []; for (const x of [1, 2, 3, 4]) { if (x === 2) continue; if (x === 4) break; r.push(x) } return r

//// labels
// expect: ok 2
let n = 0; outer: for (const a of [1, 2]) for (const b of [1, 2]) { n++; continue outer } return n

//// labelled block
// expect: ok 1
a: { break a } return 1

//// switch
// expect: ok "two"
switch (2) { case 1: return 'one'; case 2: return 'two'; default: return 'many' }

//// try
// expect: ok "x"
try { throw new Error('x') } catch (e) { return e.message }

//// catch without a name
// expect: ok 1
try { throw 1 } catch { return 1 }

//// finally
// expect: ok [1, 2]
const r = []; try { r.push(1) } finally { r.push(2) } return r

//// throw caught
// expect: ok 5
try { throw 5 } catch (e) { return e }

//// block scope
// expect: ok 1
let a = 1; { let a = 2; a++ } return a

//// var hoisting
// expect: ok 1
a = 1; var a; return a

//// empty statement
// expect: ok 1
;;; return 1

//// return without a value
// expect: ok null
return

//// nested loops
// expect: ok 4
let n = 0; for (let i = 0; i < 2; i++) for (let j = 0; j < 2; j++) n++; return n

//// semicolons left out
// expect: ok 3
const a = 1
const b = 2
return a + b

//// for with two variables
// expect: ok [2, 1]
let r; for (let i = 0, j = 3; i < j; i++, j--) r = [i + 1, j - 1]; return r

//// for await
// expect: ok [1, 2]
const r = []; for await (const x of [Promise.resolve(1), 2]) r.push(x); return r

//// use strict
// expect: ok 1
'use strict'; return 1

//// loop without a block
// expect: ok [0, 1]
const a = []; for (let i = 0; i < 2; i++) a.push(i)
return a


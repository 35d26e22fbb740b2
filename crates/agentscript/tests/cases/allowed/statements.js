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

//// an if without else in an if without braces
// expect: ok 4
if (1) if (0) return 3; return 4

//// an if without else in an if in a loop
// expect: ok [2]
const r = []; for (const x of [{ a: 1 }, { a: 1, b: 2 }, {}]) if (x.a) if (x.b) r.push(x.b); return r

//// an if without else behind an else
// expect: ok "c"
const f = (a, b, c) => { if (a) return 'a'; else if (b) if (c) return 'c'; return 'none' }; return f(0, 1, 1)

//// an else belongs to the nearest if
// expect: ok "inner"
if (1) if (0) return 'then'; else return 'inner'; return 'none'

//// a labelled if in an if
// expect: ok 2
let n = 1; if (n) lbl: if (n) { n = 2; break lbl } return n

//// for await waits for the iterator to close when its body throws
// expect: ok ["cleanup","caught 9"]
const wait = async (n) => { for (let i = 0; i < n; i++) await null }; const r = [];
async function* g() { try { yield 1; yield 2 } finally { await wait(5); r.push('cleanup') } }
try { for await (const x of g()) throw 9 } catch (e) { r.push('caught ' + e) } return r

//// the error of a body wins over that of the iterator that closes
// expect: ok [9]
const wait = async (n) => { for (let i = 0; i < n; i++) await null }; const r = [];
async function* g() { try { yield 1 } finally { await wait(5); throw 7 } }
try { for await (const x of g()) throw 9 } catch (e) { r.push(e) } return r

//// the error of an iterator that closes on break is thrown
// expect: ok [7]
const wait = async (n) => { for (let i = 0; i < n; i++) await null }; const r = [];
async function* g() { try { yield 1 } finally { await wait(5); throw 7 } }
try { for await (const x of g()) break } catch (e) { r.push(e) } return r

//// for await with labels
// expect: ok ["11","cleanup","21","cleanup","after"]
const r = [];
async function* g(n) { try { yield n; yield n + 1 } finally { await null; r.push('cleanup') } }
outer: for (const a of [1, 2]) { inner: for await (const b of g(1)) { for (const c of [1]) { if (b > 1) continue inner; r.push('' + a + b); continue outer } } }
r.push('after'); return r

//// for await of an iterator that throws
// expect: ok ["start","next"]
const r = [];
async function* g() { r.push('start'); throw 'next' }
try { for await (const x of g()) r.push(x) } catch (e) { r.push(e) } return r

//// nested for await, the error of the inner body
// expect: ok ["inner","outer","e"]
const r = [];
async function* g(name) { try { yield 1 } finally { await null; r.push(name) } }
try { for await (const a of g('outer')) for await (const b of g('inner')) throw 'e' } catch (e) { r.push(e) } return r

//// for await that continues, and an undefined error
// expect: ok [1,3,"undefined"]
const r = [];
async function* g() { yield 1; yield 2; yield 3; yield 4 }
try { for await (const x of g()) { if (x === 2) continue; if (x === 4) throw undefined; r.push(x) } } catch (e) { r.push(String(e)) } return r

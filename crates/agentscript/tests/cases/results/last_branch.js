//// try and its handler give a value
// expect: ok {"r": 1}
try { const r = await (async () => 1)(); ({ r }) } catch (e) { ({ error: e.message }) }

//// the value of the handler
// expect: ok {"error": "no"}
try { throw new Error('no'); 1 } catch (e) { ({ error: e.message }) }

//// errors of a call that try ends with are caught
// expect: ok "caught"
async function main() { await null; throw new Error('no') }
try { main() } catch (e) { 'caught' }

//// a finally has no value, and comes behind the call
// expect: ok ["a", "b"]
const log = [];
const main = async () => { await null; log.push('a'); return log };
try { main() } finally { log.push('b') }

//// if and else
// expect: ok "many"
const n = 3;
if (n > 2) { 'many' } else { 'few' }

//// else without braces
// expect: ok "few"
const n = 1;
if (n > 2) 'many'; else 'few'

//// an if without else
// expect: ok null
const n = 1;
if (n > 2) { 'many' }

//// else if
// expect: ok "one"
const n = 1;
if (n > 2) { 'many' } else if (n > 0) { 'one' } else { 'none' }

//// a block
// expect: ok [1, 2]
{ const rows = [1, 2]; rows; }

//// a block with a label
// expect: ok 4
a: { const n = 4; if (n > 5) break a; n }

//// a switch whose cases end
// expect: ok "two"
switch (2) { case 1: 'one'; break; case 2: { 'two'; break } default: 'more' }

//// a case that goes on has no value of its own
// expect: ok "end"
switch (1) { case 1: 'one'; case 2: 'end' }

//// functions in a branch are not called
// expect: ok null
if (true) { () => 1 }

//// branches that change something have no value
// expect: ok null
const out = []; if (true) { out.push(1) } else { out.pop }

//// loops have no value
// expect: ok null
for (const x of [1, 2]) { x }

//// a return in a branch says what the script returns
// expect: ok null
try { if (false) return 1; 2 } catch (e) { 3 }

//// an object that the grammar takes for a label
// expect: ok {"total": 5}
const rows = [1];
{ total: 5 }

//// with a semicolon behind it
// expect: ok {"total": 5}
const rows = [1];
{ total: 5 };

//// with a semicolon within it is a label
// expect: ok null
const rows = [1];
{ total: 5; }

//// names in braces
// expect: ok {"rows": [1], "n": 2}
const rows = [1], n = 2;
{ rows, n }

//// one name in braces
// expect: ok {"rows": [1]}
const rows = [1];
{ rows }

//// a value and names
// expect: ok {"total": 1, "rows": [1]}
const rows = [1];
{ total: rows.length, rows }

//// objects within
// expect: ok {"data": {"items": [1]}}
const rows = [1];
{ data: { items: rows } }

//// an object of several members, which is no statement
// expect: ok {"total": 1, "rows": [1], "more": false}
const rows = [1];
{
  total: rows.length,
  rows,
  "more": rows.length > 5,
}

//// with a method and a spread
// expect: ok {"a": 1, "n": 2}
const a = { a: 1 };
{ ...a, n: await Promise.resolve(2) };

//// the object alone
// expect: ok {"a": 1, "b": 2}
{ a: await Promise.resolve(1), b: await Promise.resolve(2) }

//// data is no script
// expect: syntax 1:6
{ "a": 1, "b": 2 }

//// behind a return it would have no effect
// expect: syntax 2:10
if (false) return 1
{ a: 1, b: 2 }

//// an error behind the object stays one
// expect: syntax 2:10
const rows = [1];
{ a: 1, b: 2 } + ;

//// parts of optional chains
// expect: ok 2
const r = { items: [{ n: 2 }] };
r?.items?.[0].n

//// sorted lists
// expect: ok [1, 2]
const rows = [2, 1];
rows.sort((a, b) => a - b)

//// try with only a finally
// expect: ok 5
try { 5 } finally { 6 }

//// tries within each other
// expect: ok "inner"
try { try { throw new Error('x') } catch (e) { 'inner' } } catch (e) { 'outer' }

//// a directive in front
// expect: ok 3
"use strict";
1 + 2

//// comments behind the value
// expect: ok 3
const n = 3;
n // the number
/* end */

//// a class that is declared last
// expect: ok null
1;
class A {}

//// an object made of a class with a getter
// expect: ok 7
class A { get n() { return 7 } }
new A().n

//// a template
// expect: ok "n is 3"
const n = 3;
`n is ${n}`

//// an async generator
// expect: ok [1, 2]
async function* numbers() { yield 1; yield 2 }
const out = [];
for await (const n of numbers()) out.push(n);
out

//// continue with a label
// expect: ok [1, 3]
const out = [];
rows: for (const n of [1, 2, 3]) { for (const m of [2]) if (n === m) continue rows; out.push(n) }
out

//// for is last
// expect: ok null
let n = 0;
for (let i = 0; i < 3; i++) n += i

//// functions within functions return for themselves
// expect: ok 6
const outer = () => { const inner = () => { return 6 }; return inner() };
try { outer() } catch { return }

//// a return of nothing in a branch
// expect: ok "rest"
const n = 3;
if (n > 5) { return }
'rest'

//// several semicolons
// expect: ok 2
2;;;

//// nothing at all
// expect: ok null

//// only a comment
// expect: ok null
// nothing

//// while is last
// expect: ok null
let n = 3; while (n) n--

//// throw is last
// expect: runtime Error
throw new Error('x')

//// a comma
// expect: ok null
let a = 1; a, a

//// an empty block
// expect: ok null
{}

//// in brackets
// expect: ok [1]
([1])

//// a tagged template
// expect: ok "a1"
const t = (p, x) => p[0] + x;
t`a${1}`

//// an iife that declares main
// expect: ok 3
(async function main() { return 3 })();

//// an iife in an await
// expect: ok 3
await (async () => 3)();

//// void and not
// expect: ok true
!0

//// delete is for its effect
// expect: ok null
const o = { a: 1 }; delete o.a

//// do is last
// expect: ok null
do { 1 } while (false)

//// a choice in a try
// expect: ok "caught"
const fail = async () => { throw new Error('x') };
try { true ? fail() : null } catch { 'caught' }

//// null and what comes in its place
// expect: ok 5
const f = async () => 5;
null ?? f()

//// an object with a prototype
// expect: illegal IllegalPrototypeAccess
const o = [];
{ __proto__: o }

//// names in an object are looked at
// expect: illegal IllegalModuleAccess
const o = [];
{ o, require }

//// also in one of several members
// expect: illegal IllegalBuiltinAccess
const o = [];
{
  o,
  run: () => eval('1'),
  n: 1
}

//// a text that grows in an object is charged
// expect: limit
let s = 'x'.repeat(1000);
for (let i = 0; i < 100; i++) s = s + s;
{ s }

//// an object of classes and generators
// expect: ok {"a": {"n": 1}, "b": [1, 2]}
class A { n = 1 }
function* two() { yield 1; yield 2 }
{
  a: new A(),
  b: [...two()],
}

//// braces in a text are no object
// expect: ok "\n{ a: 1 }"
const t = `
{ a: 1 }`;
t

//// windows line ends
// expect: ok {"a": 1, "b": 2}
const a = 1;
{ a, b: 2 };

//// a function without a body is no script, and what looks like its body no object
// expect: syntax 2:9
function cleanup(id)
{ gone: await callTool('echo', {}), done: true }

//// a method that the script ends with is waited for
// expect: ok 7
class Job { async run() { await null; return 7 } }
new Job().run()

//// errors of such a method end the run
// expect: runtime Error
const job = { async run() { await null; throw new Error('no') } };
job.run()

//// a method that is called for its effect has no value
// expect: ok null
const rows = [];
rows.push(1)

//// however the method is named
// expect: ok 7
const job = { run: async () => { await null; return 7 } };
1, job?.['run']()

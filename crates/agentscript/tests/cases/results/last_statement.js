//// the value of the last statement is the result
// expect: ok {"n": 3}
const n = 1 + 2;
({ n })

//// also of a name
// expect: ok [1, 2]
const out = [];
for (const x of [1, 2]) out.push(x);
out

//// also behind functions that are declared last
// expect: ok 4
twice(2);
function twice(x) { return 2 * x }

//// a function that is called last is waited for
// expect: ok "done"
async function main() { await null; return 'done' }
main();

//// one in brackets as well
// expect: ok 5
(async () => { await null; return 5 })();

//// and one whose errors are caught
// expect: ok "caught"
const main = async () => { throw new Error('x') };
main().catch(() => 'caught')

//// its error ends the script
// expect: runtime TypeError
async function main() { await null; throw new TypeError('no') }
main();

//// a script that is a function is called
// expect: ok 7
async () => { return 7 }

//// also with the keyword
// expect: ok 8
(function () { return 8 })

//// a method that is called for its value
// expect: ok [2, 4]
[1, 2].map((x) => x * 2)

//// what changes something has no value
// expect: ok null
const out = []; out.push(1)

//// nor has an assignment
// expect: ok null
let n = 0; n = 5

//// nor what the script throws away
// expect: ok null
void (async () => 5)()

//// a script that returns a value somewhere says what it returns
// expect: ok null
const n = 3;
if (n > 5) return 'many';
n

//// a return without a value is none
// expect: ok "few"
const n = 3;
if (n > 5) return;
'few' + ''

//// functions and their returns do not count
// expect: ok 9
const f = (x) => { return x * x };
f(3)

//// text in quotes
// expect: ok "a"
const x = 1;
'a'

//// a fence around the script is none of it
// expect: ok 6
```js
const x = 6;
return x
```

//// a choice between calls is waited for
// expect: ok 3
const f = async (n) => { await null; return n };
true ? f(3) : null

//// other methods and objects that are there for their value
// expect: ok ["aaa", "1970-01-01T00:00:00.000Z", 2]
Promise.all(['a'.repeat(3), new Date(0).toISOString(), Math.max(1, 2)])

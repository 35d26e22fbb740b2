//// stack limit
// expect: ok "RangeErrorMaximum call stack size exceeded"
const f = () => f(); try { f() } catch (e) { return e.name + e.message }

//// stack limit by json
// expect: limit
let s = '['.repeat(100000); return JSON.parse(s)

//// stack by regex
// expect: limit
return /(?:(?:(?:a?)*)*)*b/.test('a'.repeat(100))

//// stack by toString
// expect: limit
const o = { toString() { return '' + o } }; return '' + o

//// stack by getter
// expect: limit
const o = { get x() { return o.x } }; return o.x

//// stack by array toString
// expect: limit
const a = []; a[0] = a; return String(a)

//// deep array toString
// expect: limit
let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return String(a).length

//// deep flat
// expect: limit
let a = []; for (let i = 0; i < 9e4; i++) a = [a]; return a.flat(Infinity).length

//// deep stringify
// expect: limit
let a = []; for (let i = 0; i < 9e4; i++) a = [a]; return JSON.stringify(a).length

//// deep promise
// expect: limit
let p = Promise.resolve(); for (let i = 0; i < 9e4; i++) p = p.then(() => 1); return p

//// deep bind
// expect: limit
let f = () => 1; for (let i = 0; i < 9e4; i++) f = f.bind(null); return f()

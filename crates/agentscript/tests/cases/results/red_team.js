//// result thenable
// expect: ok 5
return { then: (r) => r(5) }

//// result thenable never
// expect: runtime DeadlockError
return { then() { } }

//// result thenable throws
// expect: runtime Error
return { then() { throw new Error('no') } }

//// result thenable twice
// expect: ok 1
return { then(r) { r(1); r(2); r(new Promise(() => {})) } }

//// result is promise
// expect: ok 7
return Promise.resolve(Promise.resolve(7))

//// result nested promise
// expect: runtime TypeError
return { p: Promise.resolve(1), q: [Promise.reject(1)] }

//// result getter loop
// expect: limit
return { get x() { for (;;) {} } }

//// result getter throws limitlike
// expect: limit
return { get x() { throw { name: 'TimeoutLimitError', message: 'x' } } }

//// result getter calls tool
// expect: ok {"x":1}
return { get x() { callTool('echo', {}); return 1 } }

//// result toJSON
// expect: runtime TypeError
return { toJSON() { return { a: 1 } } }

//// result toJSON own date
// expect: ok "x"
const d = new Date(0); d.toJSON = () => 'x'; return d

//// result toJSON getter
// expect: limit
return { get toJSON() { return () => { for (;;) {} } } }

//// result proto toJSON via class
// expect: runtime TypeError
class A { toJSON() { return 'gotcha' } } return new A()

//// result map toJSON
// expect: runtime TypeError
const m = new Map([['a', 1]]); m.toJSON = () => 1; return m

//// result cycles
// expect: runtime TypeError
const a = []; a.push(a); return a

//// result cycle map
// expect: limit
const m = new Map(); m.set('m', m); return m

//// result cycle through getter
// expect: runtime TypeError
const o = { get o() { return o } }; return o

//// result endless getter
// expect: limit
const mk = () => ({ get n() { return mk() } }); return mk()

//// result array length
// expect: limit
const a = []; a.length = 4294967295; return a

//// result symbol
// expect: ok null
return Symbol('x')

//// result symbol key
// expect: ok {"y":2}
return { [Symbol('x')]: 1, y: 2 }

//// result function
// expect: ok null
return () => 1

//// result class
// expect: ok null
return class A { }

//// result generator
// expect: ok {}
return (function* () { yield 1 })()

//// result bigint
// expect: ok {"a":"10","b":["1"]}
return { a: 10n, b: [1n] }

//// result nan
// expect: ok [null,null,null,0,null]
return [NaN, Infinity, -Infinity, -0, undefined]

//// result date invalid
// expect: ok null
return new Date(NaN)

//// result weakmap
// expect: ok [{},{}]
return [new WeakMap(), new WeakSet()]

//// result error cause
// expect: ok {"name":"Error","message":"at /etc/passwd"}
return new Error('at /etc/passwd', { cause: new Error('x') })

//// result arraybuffer
// expect: ok [{},[1,2],{}]
return [new ArrayBuffer(4), new Uint8Array([1, 2]), new DataView(new ArrayBuffer(2))]

//// result lone surrogate
// expect: ok "�x"
return '\ud800' + 'x'

//// result proto key
// expect: ok {"__proto__":{"a":1},"constructor":1}
return JSON.parse('{"__proto__": {"a": 1}, "constructor": 1}')

//// result boxed
// expect: runtime TypeError
return [Object('x'), Object(1), Object(true), Object(1n)]

//// result arguments
// expect: ok {"0":1,"1":2}
return (function () { return arguments })(1, 2)

//// result iterator
// expect: ok {}
return [1, 2].values()

//// result regexp
// expect: ok ["/x/g",["a","a"]]
return [/x/g, 'ab'.match(/(?<n>a)/)]

//// console flood
// expect: limit
for (;;) console.log('x'.repeat(1000))

//// console flood caught
// expect: limit
for (;;) { try { console.log('x'.repeat(10000)) } catch { } }

//// console huge line
// expect: ok 1
console.log('x'.repeat(5e6)); return 1

//// console getter loop
// expect: limit
console.log({ get a() { for (;;) {} } }); return 1

//// console toJSON
// expect: ok "the result holds an object with a 'toJSON' function: return plain data"
try { console.log({ toJSON() { return 'x' } }) } catch (e) { return e.message } return 1

//// console proxy methods
// expect: runtime TypeError
console.log = () => 1; return 1

//// console other
// expect: runtime TypeError
console.table([1]); return 1

//// console trace
// expect: runtime TypeError
console.trace('x'); return 1

//// console symbol
// expect: ok 1
console.log(Symbol('a'), 1n, () => 1, null, undefined, NaN); return 1

//// console bad surrogates
// expect: ok 1
console.log('\ud800\u0000\u001b[31m'); return 1

//// console many args
// expect: runtime RangeError
console.log(...Array(1e5).fill('x')); return 1

//// result then mutates
// expect: ok {"a":2}
const o = { a: 1 }; Promise.resolve().then(() => { o.a = 2 }); return o

//// half a pair in a key and in what a tool is given
// expect: ok [{"�":"�"},{"a":"�"}]
return [{ '\ud83d': '\udead' }, await callTool('echo', { a: '\ud800' })]

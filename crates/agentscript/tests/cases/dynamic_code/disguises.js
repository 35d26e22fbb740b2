//// escaped eval
// expect: illegal IllegalBuiltinAccess
return \u0065val('1')

//// braced escape
// expect: illegal IllegalBuiltinAccess
return e\u{76}al('1')

//// escape in the middle
// expect: illegal IllegalBuiltinAccess
return ev\u0061l('1')

//// escaped Function
// expect: illegal IllegalBuiltinAccess
return new F\u0075nction('return 1')()

//// indirect eval
// expect: illegal IllegalBuiltinAccess
return (0, eval)('1')

//// optional eval
// expect: illegal IllegalBuiltinAccess
return eval?.('1')

//// parenthesised
// expect: illegal IllegalBuiltinAccess
return ((eval))('1')

//// new Function
// expect: illegal IllegalBuiltinAccess
return new Function('return process')()

//// Function called
// expect: illegal IllegalBuiltinAccess
return Function('return 1')()

//// tagged
// expect: illegal IllegalBuiltinAccess
return eval`1`

//// Function tagged
// expect: illegal IllegalBuiltinAccess
return Function`return 1```

//// default parameter
// expect: illegal IllegalBuiltinAccess
const f = (e = eval) => e('1'); return f()

//// destructured default
// expect: illegal IllegalBuiltinAccess
const { a = eval } = {}; return a('1')

//// array default
// expect: illegal IllegalBuiltinAccess
const [a = eval] = []; return a('1')

//// in an array
// expect: illegal IllegalBuiltinAccess
return [eval][0]('1')

//// in an object
// expect: illegal IllegalBuiltinAccess
return { e: eval }.e('1')

//// shorthand
// expect: illegal IllegalBuiltinAccess
const o = { eval }; return o.eval('1')

//// spread argument
// expect: illegal IllegalBuiltinAccess
return eval(...['1'])

//// bind
// expect: illegal IllegalBuiltinAccess
return eval.bind(null, '1')()

//// call
// expect: illegal IllegalBuiltinAccess
return eval.call(null, '1')

//// apply
// expect: illegal IllegalBuiltinAccess
return Function.apply(null, ['return 1'])()

//// typeof
// expect: illegal IllegalBuiltinAccess
return typeof eval

//// conditional
// expect: illegal IllegalBuiltinAccess
return (true ? eval : 0)('1')

//// logical
// expect: illegal IllegalBuiltinAccess
return (null ?? eval)('1')

//// template
// expect: illegal IllegalBuiltinAccess
return `${eval('1')}`

//// in a getter
// expect: illegal IllegalBuiltinAccess
const o = { get x() { return eval('1') } }; return o.x

//// computed key
// expect: illegal IllegalBuiltinAccess
return { [eval('1')]: 1 }

//// class field
// expect: illegal IllegalBuiltinAccess
class A { x = eval('1') }; return new A().x

//// class heritage
// expect: illegal IllegalBuiltinAccess
class A extends Function {}; return new A('return 1')()

//// static block
// expect: illegal IllegalBuiltinAccess
class A { static { eval('1') } }

//// generator
// expect: illegal IllegalBuiltinAccess
function* g() { yield eval('1') }; return [...g()]

//// catch
// expect: illegal IllegalBuiltinAccess
try { throw 1 } catch { return eval('1') }

//// async arrow
// expect: illegal IllegalBuiltinAccess
return (async () => eval('1'))()

//// await
// expect: illegal IllegalBuiltinAccess
return await eval('1')

//// map callback
// expect: illegal IllegalBuiltinAccess
return ['1'].map(eval)

//// replace callback
// expect: illegal IllegalBuiltinAccess
return '1'.replace('1', eval)

//// toString gadget
// expect: illegal IllegalBuiltinAccess
return `${{ toString: eval }}`

//// comma in a loop
// expect: illegal IllegalBuiltinAccess
for (let i = 0, e = eval; i < 1; i++) e('1')

//// label
// expect: illegal IllegalBuiltinAccess
x: { eval('1') }

//// switch
// expect: illegal IllegalBuiltinAccess
switch (eval('1')) { default: return 1 }

//// typescript cast
// expect: illegal IllegalBuiltinAccess
return (eval as any)('1')

//// typescript non-null
// expect: illegal IllegalBuiltinAccess
return eval!('1')

//// typescript generic
// expect: illegal IllegalBuiltinAccess
return eval<string>('1')

//// typescript assertion
// expect: illegal IllegalBuiltinAccess
return (<any>eval)('1')

//// Promise then
// expect: illegal IllegalBuiltinAccess
return Promise.resolve('1').then(eval)

//// sort callback
// expect: illegal IllegalBuiltinAccess
return ['1', '2'].sort(Function)

//// JSON reviver
// expect: illegal IllegalBuiltinAccess
return JSON.parse('1', eval)

//// reviver
// expect: illegal IllegalBuiltinAccess
return JSON.parse('{}', (k, v) => v)

//// replacer
// expect: illegal IllegalBuiltinAccess
return JSON.stringify({}, function (k, v) { return v })

//// optional reviver
// expect: illegal IllegalBuiltinAccess
return JSON?.parse('{}', (k, v) => v)

//// long array
// expect: illegal IllegalBuiltinAccess
return Array(500000).fill(0).reduce((a, b) => a + b, 0)

//// long new array
// expect: illegal IllegalBuiltinAccess
return new Array(1e8).fill(0).length

//// long array by a constant
// expect: illegal IllegalBuiltinAccess
const n = 200000; return new Array(n).length

//// instanceof
// expect: illegal IllegalBuiltinAccess
return (() => 1) instanceof Function


//// number
// expect: ok 1
return 1

//// text
// expect: ok "a"
return 'a'

//// nothing
// expect: ok null
const a = 1

//// object
// expect: ok {"a": 1}
return { a: 1 }

//// array
// expect: ok [1, 2]
return [1, 2]

//// template
// expect: ok "a1b"
return `a${1}b`

//// arithmetic
// expect: ok 7
return 1 + 2 * 3

//// power
// expect: ok 8
return 2 ** 3

//// bitwise
// expect: ok 6
return (5 ^ 3) | 0

//// comparison
// expect: ok true
return 1 < 2 && 2 >= 2

//// nullish
// expect: ok 1
return null ?? 1

//// logical assignment
// expect: ok 3
let a = null; a ??= 3; return a

//// conditional
// expect: ok "b"
return false ? 'a' : 'b'

//// typeof
// expect: ok "number"
return typeof 1

//// void
// expect: ok null
return void 0

//// comma
// expect: ok 2
return (1, 2)

//// in
// expect: ok true
return 'a' in { a: 1 }

//// instanceof
// expect: ok true
return [] instanceof Array

//// delete
// expect: ok {}
const o = { a: 1 }; delete o.a; return o

//// optional chain
// expect: ok null
return ({}).a?.b?.[0]?.()

//// spread array
// expect: ok [1, 2, 3]
return [...[1, 2], 3]

//// spread object
// expect: ok {"a": 1, "b": 2}
return { ...{ a: 1 }, b: 2 }

//// spread call
// expect: ok 3
return Math.max(...[1, 3, 2])

//// number forms
// expect: ok [255, 5, 1000000]
return [0xff, 0b101, 1_000_000]

//// computed key
// expect: ok {"ab": 1}
return { ['a' + 'b']: 1 }

//// computed member
// expect: ok 2
const k = 'b'; return { a: 1, b: 2 }[k]

//// index by a variable
// expect: ok 20
const rows = [10, 20]; const i = 1; return rows[i]

//// tagged template
// expect: ok "a|b"
const t = (s, ...v) => s.join('|'); return t`a${1}b`

//// raw template
// expect: ok "a\\nb"
return String.raw`a\nb`

//// regular expression
// expect: ok true
return /^a+$/i.test('AAA')

//// named groups
// expect: ok "2024"
return '2024-01'.match(/(?<y>\d{4})/).groups.y

//// replace with a callback
// expect: ok "A-b"
return 'a-b'.replace(/a/, x => x.toUpperCase())

//// sequence of divisions
// expect: ok 2
const a = 8; return a / 2 / 2

//// big integers
// expect: ok "3"
return String(1n + 2n)

//// increment
// expect: ok [1, 1]
let i = 0; return [++i, i]

//// exponent assignment
// expect: ok 9
let a = 3; a **= 2; return a

//// symbols
// expect: ok 1
const s = Symbol('x'); return { [s]: 1 }[s]

//// new expression
// expect: ok 0
return new Date(0).getTime()

//// group
// expect: ok "c"
return (('c'))


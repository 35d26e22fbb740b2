//// reviver under another name
// expect: runtime TypeError
const read = JSON.parse; return read('[1]', (key, value) => value)

//// reviver through call
// expect: runtime TypeError
return JSON.parse.call(null, '[1]', (key, value) => value)

//// reviver through a list of arguments
// expect: runtime TypeError
const given = ['[1]', (key, value) => value]; return JSON.parse(...given)

//// reviver taken out by a pattern
// expect: runtime TypeError
const { parse } = JSON; return parse('[1]', (k, v) => v)

//// replacer under another name
// expect: runtime TypeError
const write = JSON.stringify; return write({ a: 1 }, (key, value) => value)

//// replacer through bind
// expect: runtime TypeError
const write = JSON.stringify.bind(JSON); return write({ a: 1 }, (key, value) => value)

//// list of keys and indent are no callback
// expect: ok "{\n  \"a\": 1\n}"
return JSON.stringify({ a: 1, b: 2 }, ['a'], 2)

//// JSON of what JSON cannot carry
// expect: ok [null, "[null]", "{}"]
return [JSON.stringify(undefined) ?? null, JSON.stringify([undefined]), JSON.stringify({ f() {} })]

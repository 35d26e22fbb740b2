//// sort sparse
// expect: limit
const a = []; a.length = 4e9; return a.sort().length

//// reverse sparse
// expect: limit
const a = []; a.length = 4294967295; a.reverse(); return 1

//// splice sparse
// expect: limit
const a = [1]; a.length = 4294967295; a.splice(0, 1); return 1

//// unshift sparse
// expect: limit
const a = [1]; a.length = 4294967294; a.unshift(1); return 1

//// lastIndexOf
// expect: limit
const a = []; a.length = 4294967295; return a.lastIndexOf(1)

//// includes
// expect: limit
const a = []; a.length = 4294967295; return a.includes(1)

//// indexOf arraylike
// expect: limit
return [].indexOf.call({ length: 2 ** 53 - 1 }, 1)

//// fill arraylike
// expect: limit
return [].fill.call({ length: 2 ** 40 }, 0)

//// copyWithin typed
// expect: limit
const a = new Uint8Array(1e7); for (let i = 0; i < 1e5; i++) a.copyWithin(1, 0); return 1

//// quadratic indexOf
// expect: limit
const s = 'a'.repeat(2e6); return s.indexOf('a'.repeat(1e6) + 'b')

//// localeCompare
// expect: runtime RangeError
const s = '\u0301'.repeat(3e6); return s.localeCompare(s + 'a')

//// normalize big
// expect: limit
return ('a' + '\u0301\u0323'.repeat(1e6)).normalize('NFC').length

//// json parse long
// expect: limit
return JSON.parse('[' + '1,'.repeat(2e6) + '1]').length

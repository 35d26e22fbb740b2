//// comparing long texts again and again
// expect: runtime RangeError
const s = 'a'.repeat(4000000); let n = 0; for (;;) n += s.localeCompare(s + 'b')

//// comparing texts of marks that come apart
// expect: limit
const s = '\u0344'.repeat(100000); for (;;) s.localeCompare(s + 'x')

//// comparing texts of signs that come apart into many
// expect: limit
const s = '\ufdfa'.repeat(100000); for (;;) s.localeCompare(s + 'x', undefined, { numeric: true })

//// comparing long numbers
// expect: limit
const s = '0'.repeat(400000) + '9'.repeat(100000); for (;;) s.localeCompare(s + '1', undefined, { numeric: true })

//// comparing punctuation that is ignored
// expect: limit
const s = '-'.repeat(500000); for (;;) s.localeCompare(s + '1', undefined, { ignorePunctuation: true })

//// option of a comparison that does not end
// expect: limit
return 'a'.localeCompare('b', 'en', { get sensitivity() { for (;;) {} } })

//// option of a number that does not end
// expect: limit
return (1).toLocaleString('en', { get style() { return { toString() { for (;;) {} } } } })

//// option of a date that does not end
// expect: limit
return new Date(0).toLocaleDateString('en', { get month() { for (;;) {} } })

//// very long option
// expect: runtime RangeError
return (1).toLocaleString('en', { style: 'x'.repeat(5000000) })

//// very long language
// expect: runtime RangeError
return (1).toLocaleString('x'.repeat(5000000))

//// language that holds itself
// expect: runtime TypeError
const list = ['en']; list[0] = list; return (1).toLocaleString(list)

//// long numbers written again and again
// expect: limit
for (;;) (10n ** 20000n).toLocaleString()

//// number of a text
// expect: runtime TypeError
return (1).toLocaleString.call('x')

//// date of a number
// expect: runtime TypeError
return new Date(0).toLocaleDateString.call(0)

//// property of a method for people
// expect: runtime TypeError
const f = (1).toLocaleString; f.x = 1; return 1

//// constructor behind a method for people
// expect: illegal IllegalPrototypeAccess
return ''.localeCompare.constructor

//// method for people as a constructor
// expect: runtime TypeError
return new (''.localeCompare)('x')

//// half surrogates in a comparison
// expect: ok [-1, 0, 1]
return ['\ud800'.localeCompare('a'), '\ud800'.localeCompare('\ud800'), 'a'.localeCompare('\udfff')]

//// raw template of endless parts
// expect: limit
return String.raw({ raw: { length: 2 ** 53 - 1 } }).length

//// lookahead that never moves
// expect: limit
return /(?:(?=(a+))\1)*b/.test('a'.repeat(1000000))

//// comparing_texts_of_full_length
// expect: limit
const long = '\ufdfa'.repeat(524287);
for (let i = 0; i < 1000; i++) (long + 'a').localeCompare(long + 'b', 'en', { numeric: true });

//// comparing_texts_of_more_than_full_length
// expect: runtime RangeError
return 'a'.repeat(524288).localeCompare('a'.repeat(524289));

//// a_list_without_end_for_people
// expect: limit
return ({ length: 2 ** 50, f: [].toLocaleString }).f();

//// a_sparse_list_for_people
// expect: limit
return Array(2 ** 32 - 2).toLocaleString();

//// a_list_in_itself_for_people
// expect: runtime RangeError
const a = [1]; a.push(a); return a.toLocaleString('en', {});

//// long_texts_in_a_list_for_people
// expect: memory
const long = 'x'.repeat(1 << 20), item = { toLocaleString: () => long };
return Array(64).fill(item).toLocaleString().length;

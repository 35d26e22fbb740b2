// Writes expected.jsonl: expressions and what Node's Intl makes of them. `TZ=UTC node generate.mjs > expected.jsonl`
const out = (script) => {
  let value;
  try { value = eval(script); } catch (error) { value = error.name; script = `(() => { try { return ${script} } catch (error) { return error.name } })()`; }
  console.log(JSON.stringify({ script, value }));
};
const q = JSON.stringify;

// ---- localeCompare ----
const words = ['', ' ', 'a', 'A', 'b', 'B', 'aa', 'Ab', 'aB', 'AB', 'ab', 'z', 'Z', 'é', 'e', 'É', 'E', 'ê', 'ë', 'è', 'f', 'ñ', 'n', 'Ñ', 'o', 'ö', 'Ö', 'ø',
  'œ', 'oe', 'æ', 'ae', 'Æ', 'ß', 'ss', 'SS', 'ü', 'u', 'ç', 'c', 'å', 'ä', 'résumé', 'resume', 'Resume', 'Résumé', 'resumé', 'cote', 'côte', 'coté', 'côté',
  'co-op', 'coop', 'co op', 'CO-OP', '1', '2', '10', '01', '1.5', '1,5', '-1', '$5', '€5', '_x', '__y', '#tag', '@me', 'x@y', 'x.y', 'x-y', 'x_y', 'x/y',
  'item 1', 'item 2', 'item 10', 'item 010', 'Item 2', 'v1.10.0', 'v1.9.3', 'file10.txt', 'file9.txt', 'naïve', 'naive', 'Zoë', 'Zoe', 'zoe', 'straße', 'strasse',
  'Łódź', 'Lodz', 'łódź', 'Čapek', 'Capek', 'İ', 'I', 'i', 'ﬁ', 'fi', '²', '½', '™', 'ª', 'ά', 'α', 'Α', 'β', 'ω', 'я', 'а', 'Б', 'б', 'ё', 'е', 'й', 'и', "O'Brien", 'OBrien', 'O’Brien',
  '(a)', '[a]', '{a}', 'a!', 'a?', 'a:', 'a;', 'a"', 'a&b', 'a+b', 'a=b', 'a<b', 'a|b', 'a~b', 'a^b', 'a`b', 'a%b', 'a*b', 'a\\b', 'a\tb', 'a\nb', '…', '–', '—', '©', '°', '£', '¥', '日', '本', '한', '가'];
const settings = ['', ', undefined, { sensitivity: "base" }', ', undefined, { sensitivity: "accent" }', ', undefined, { sensitivity: "case" }', ', "en", { numeric: true }',
  ', "en-US", { numeric: true, sensitivity: "base" }', ', undefined, { caseFirst: "upper" }', ', "en", { ignorePunctuation: true }', ', "en-u-kn-true"'];
for (const setting of settings) {
  out(`${q(words)}.sort((a, b) => a.localeCompare(b${setting}))`);
  // Sorting hides what is equal.
  for (let i = 0; i < words.length; i += 7) out(`${q(words)}.map((word) => Math.sign(word.localeCompare(${q(words[i])}${setting})))`);
}
for (const letters of [[32, 127], [0xa0, 0x180]]) {
  const all = [];
  for (let code = letters[0]; code < letters[1]; code++) all.push(String.fromCharCode(code));
  if (letters[0] === 32) out(`${q(all)}.sort((a, b) => a.localeCompare(b))`);
  else out(`${q(all.filter((c) => /\p{L}/u.test(c) && !'ªºƀŉſĳĲĿŀ'.includes(c)))}.sort((a, b) => a.localeCompare(b))`);
}
out(`'a'.localeCompare()`); out(`'undefined'.localeCompare()`); out(`'1'.localeCompare(1)`); out(`'a'.localeCompare('b', 'e')`); out(`'a'.localeCompare('b', null)`);
out(`'a'.localeCompare('b', ['en', 'de'])`); out(`'a'.localeCompare('b', [])`); out(`'a'.localeCompare('b', undefined, { sensitivity: 'none' })`);
out(`'a'.localeCompare('b', undefined, null)`);
for (const option of ['usage: "sort"', 'usage: "x"', 'localeMatcher: "lookup"', 'localeMatcher: "x"', 'collation: "default"', 'sensitivity: ""', 'caseFirst: "x"', 'foo: 1'])
  out(`['a', 'B', 'b'].map((a) => a.localeCompare('b', 'en', { ${option} }))`);
for (const value of ['true', 'false', '"false"', '""', '0', '1', 'null', 'NaN']) out(`['a10'.localeCompare('a9', 'en', { numeric: ${value} }), 'a-b'.localeCompare('ab', 'en', { ignorePunctuation: ${value} })]`);
for (const language of ['en-u-kn', 'en-u-kn-false', 'en-u-kn-kf-upper', 'en-u-kf-upper', 'en-u-kf-lower-kn-true', 'en-u-kf-upper-kn-false']) out(`['a10'.localeCompare('a9', ${q(language)}), 'a'.localeCompare('A', ${q(language)})]`);

// ---- numbers ----
const numbers = ['0', '-0', '1', '-1', '12', '999', '1000', '1234.5', '-1234.567', '1234567.891', '0.0005', '0.1234567', '1.005', '2.5', '0.5', '1e21', '1e-7', '5e-324', '1.7976931348623157e308',
  '123456789012345680000', '999999.9995', '999499', '999500', '1049', '1050', '12345678', '1.25e6', '1e15', '1e16', 'NaN', 'Infinity', '-Infinity', '99.995', '-0.001', '123456'];
const forms = ['', '"en-US"', 'undefined, {}', ...[
  '{ minimumFractionDigits: 2 }', '{ maximumFractionDigits: 0 }', '{ maximumFractionDigits: 1 }', '{ minimumFractionDigits: 2, maximumFractionDigits: 2 }', '{ minimumFractionDigits: 5 }',
  '{ minimumIntegerDigits: 2 }', '{ minimumIntegerDigits: 5 }', '{ useGrouping: false }', '{ useGrouping: true }', '{ maximumSignificantDigits: 3 }', '{ minimumSignificantDigits: 5 }',
  '{ style: "percent" }', '{ style: "percent", minimumFractionDigits: 1 }', '{ style: "percent", maximumFractionDigits: 2 }', '{ style: "currency", currency: "USD" }',
  '{ style: "currency", currency: "EUR" }', '{ style: "currency", currency: "JPY" }', '{ style: "currency", currency: "CHF" }', '{ style: "currency", currency: "usd", minimumFractionDigits: 0 }',
  '{ style: "currency", currency: "USD", maximumFractionDigits: 0 }', '{ style: "currency", currency: "USD", currencyDisplay: "code" }',
  '{ style: "currency", currency: "USD", currencySign: "accounting" }', '{ style: "currency", currency: "CAD", currencyDisplay: "narrowSymbol" }', '{ notation: "compact" }',
  '{ notation: "compact", maximumFractionDigits: 1 }', '{ notation: "compact", compactDisplay: "long" }', '{ notation: "compact", style: "currency", currency: "USD" }',
  '{ signDisplay: "always" }', '{ signDisplay: "exceptZero" }', '{ signDisplay: "never" }',
].map((form) => `"en-US", ${form}`)];
for (const form of forms) for (const number of numbers) out(`(${number}).toLocaleString(${form})`);
for (const code of ['GBP', 'INR', 'CNY', 'KRW', 'AUD', 'CAD', 'MXN', 'BRL', 'NZD', 'HKD', 'ILS', 'VND', 'TWD', 'PHP', 'SEK', 'KWD', 'BTC', 'ABC', 'PLN'])
  out(`(1234.5).toLocaleString("en-US", { style: "currency", currency: ${q(code)} })`);
for (const bad of ['"en-US", { style: "currency" }', '"en-US", { style: "x" }', '"en-US", { maximumFractionDigits: 101 }', '"en-US", { minimumFractionDigits: 5, maximumFractionDigits: 2 }',
  '"en-US", { style: "currency", currency: "US" }', '"C"', '""', '"en_US"', 'null', '"en", null', '"en", { minimumIntegerDigits: 0 }', '"en", { minimumFractionDigits: "two" }'])
  out(`(1234.5).toLocaleString(${bad})`);
// Every currency there is, some that were, and some that never were.
const currencies = [...Intl.supportedValuesOf('currency'), ...'ADP BYR ESP ITL LUF MGF MRO STD TMM TRL UYI ZMK ZWD CLF UYW DEM FRF LTL LVL VEF XXX ZZZ QQQ usd'.split(' ')];
for (const display of ['', ', currencyDisplay: "symbol"', ', currencyDisplay: "narrowSymbol"', ', currencyDisplay: "code"'])
  out(`${q(currencies)}.map((currency) => (-1234.5678).toLocaleString("en-US", { style: "currency", currency${display} }))`);
for (const value of ['Infinity', 'NaN', '0']) out(`${q(currencies)}.map((currency) => (${value}).toLocaleString("en-US", { style: "currency", currency }))`);
// Options that change nothing, or little, and values that none of them has.
for (const option of ['localeMatcher: "lookup"', 'localeMatcher: "best fit"', 'localeMatcher: "x"', 'numberingSystem: "latn"', 'numberingSystem: "x"', 'unitDisplay: "long"', 'unitDisplay: "x"', 'unit: "x"',
  'roundingIncrement: 1', 'roundingIncrement: 7', 'roundingIncrement: 5', 'roundingPriority: "auto"', 'roundingPriority: "x"', 'roundingMode: "halfExpand"', 'roundingMode: "x"', 'trailingZeroDisplay: "auto"', 'trailingZeroDisplay: "x"',
  ...['true', 'false', '"true"', '"false"', '"always"', '"auto"', '"min2"', '"x"', '""', '0', '1', 'null'].flatMap((value) => [`useGrouping: ${value}`, `useGrouping: ${value}, notation: "compact", maximumFractionDigits: 0`]),
  'style: ""', 'signDisplay: "x"', 'signDisplay: ""', 'notation: "x"', 'currencyDisplay: "x"', 'currencySign: "x"', 'compactDisplay: "x"', 'minimumFractionDigits: ""', 'currency: ""', 'foo: 1'])
  for (const number of ['1234.5', '12345678901234567']) out(`(${number}).toLocaleString("en-US", { ${option} })`);
for (const number of ['12', '12.5', '12.001', '-0', '1e6']) for (const other of ['', ', minimumFractionDigits: 2', ', minimumSignificantDigits: 4', ', style: "currency", currency: "USD"', ', style: "percent", minimumFractionDigits: 1'])
  out(`(${number}).toLocaleString("en-US", { trailingZeroDisplay: "stripIfInteger"${other} })`);
out(`(1234.5).toLocaleString("en-u-nu-latn")`);
out(`(12345678901234567890n).toLocaleString()`); out(`1234n.toLocaleString("en-US", { style: "currency", currency: "USD" })`);
for (const list of ['[1234.5, 2].toLocaleString("en-US", { style: "currency", currency: "USD" })', 'new Float64Array([1234.5, 7]).toLocaleString("en-US", { minimumFractionDigits: 2 })', '[new Date(0), null, undefined, [1e4, ["a"]], , 2n].toLocaleString("en-GB", { timeZone: "UTC" })',
  '[1].toLocaleString("e")', '[].toLocaleString("e")', '[1.5].toLocaleString("en", { style: "x" })', '[].toLocaleString.length', 'new Uint8Array(3).toLocaleString()', '[true, { toLocaleString: (...a) => a.length }, {}].toLocaleString("en")', '[[1, 2], [3]].toLocaleString()']) out(list);
out(`[1234.5, 1000, null].toLocaleString()`); out(`Number("1234.5").toLocaleString(undefined, { minimumFractionDigits: 2 })`);
out(`[3, 20, 100].map((n) => n.toLocaleString("en-US", { minimumIntegerDigits: 3 }))`);

// ---- dates ----
const dates = ['Date.UTC(2026, 10, 21, 13, 5, 9, 7)', 'Date.UTC(2026, 0, 2)', 'Date.UTC(2024, 1, 29, 23, 59, 59, 999)', '0', '-1', 'Date.UTC(1899, 11, 31, 12)', 'Date.UTC(12345, 5, 1)', 'NaN'];
const dateForms = ['', '"en-US"', ...[
  '{}', '{ hour12: false }', '{ hourCycle: "h23" }', '{ hour: "2-digit", minute: "2-digit" }', '{ hour: "2-digit", minute: "2-digit", hourCycle: "h23" }', '{ minute: "2-digit", second: "2-digit" }',
  '{ month: "short", day: "numeric" }', '{ month: "long", year: "numeric" }', '{ month: "short", year: "numeric" }', '{ month: "2-digit", year: "numeric" }', '{ month: "2-digit", day: "2-digit" }',
  '{ weekday: "long" }', '{ weekday: "short" }', '{ month: "long" }', '{ month: "short" }', '{ year: "numeric" }', '{ day: "numeric" }', '{ weekday: "short", month: "short", day: "numeric" }',
  '{ weekday: "long", year: "numeric", month: "long", day: "numeric" }', '{ year: "numeric", month: "2-digit", day: "2-digit" }', '{ year: "2-digit", month: "numeric", day: "numeric" }',
  '{ year: "numeric", month: "short", day: "numeric" }', '{ year: "numeric", month: "short", day: "2-digit" }', '{ year: "numeric", month: "long", day: "numeric" }',
  '{ weekday: "short", year: "numeric", month: "numeric", day: "numeric" }', '{ year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" }',
  '{ timeZone: "UTC" }', '{ timeZone: "UTC", timeZoneName: "short" }', '{ timeZone: "UTC", year: "numeric", month: "long", day: "numeric" }',
].map((form) => `"en-US", ${form}`)];
for (const form of dateForms) for (const date of dates) for (const method of ['toLocaleDateString', 'toLocaleTimeString', 'toLocaleString']) {
  // Which word stands between a spelt-out date and a time has changed from one ICU to the next.
  if (method !== 'toLocaleDateString' && /month: "(long|short)"|weekday/.test(form)) continue;
  out(`new Date(${date}).${method}(${form})`);
}
for (const form of ['{ year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" }', '{ month: "short", day: "numeric", hour: "numeric", minute: "2-digit" }'])
  for (const date of dates) out(`new Date(${date}).toLocaleString("en-US", ${form})`);
for (const length of ['full', 'long', 'medium', 'short']) for (const date of dates) {
  out(`new Date(${date}).toLocaleDateString("en-US", { dateStyle: ${q(length)} })`);
  out(`new Date(${date}).toLocaleTimeString("en-US", { timeStyle: ${q(length)} })`);
  if (length === 'medium' || length === 'short') out(`new Date(${date}).toLocaleString("en-US", { dateStyle: ${q(length)}, timeStyle: "short" })`);
}
for (const language of ['en-CA', 'sv-SE', 'en-GB']) for (const date of dates) out(`new Date(${date}).toLocaleDateString(${q(language)})`);
for (const date of dates) { out(`new Date(${date}).toLocaleString("sv-SE")`); out(`new Date(${date}).toLocaleString("en-GB")`); }
for (const bad of ['"en-US", { month: "x" }', '"en-US", { timeZone: "Nowhere/X" }', '"en-US", { timeStyle: "short" }', '"en-US", { dateStyle: "short", month: "long" }', '"e"', 'null'])
  out(`new Date(0).toLocaleDateString(${bad})`);
// Every choice of parts of a date, in figures and in words, in the four orders.
const choices = [];
for (const weekday of [undefined, 'short', 'long']) for (const year of [undefined, 'numeric', '2-digit']) for (const month of [undefined, 'numeric', '2-digit', 'short', 'long']) for (const day of [undefined, 'numeric', '2-digit'])
  choices.push(JSON.parse(JSON.stringify({ weekday, year, month, day })));
const narrow = ['{ month: "narrow", day: "numeric" }', '{ weekday: "narrow" }', '{ weekday: "narrow", month: "narrow" }', '{ weekday: "narrow", day: "numeric" }', '{ weekday: "narrow", month: "long" }', '{ weekday: "narrow", month: "2-digit" }',
  '{ weekday: "narrow", month: "narrow", year: "numeric", day: "numeric" }', '{ month: "narrow", year: "numeric" }'];
const orders = ['en-US', 'en-GB', 'en-CA', 'sv-SE'];
for (const language of orders) for (const date of ['Date.UTC(2026, 0, 2)', 'Date.UTC(2026, 10, 21, 13, 5)']) {
  out(`${q(choices)}.map((form) => new Date(${date}).toLocaleDateString(${q(language)}, form))`);
  out(`[${narrow.join(', ')}].map((form) => new Date(${date}).toLocaleDateString(${q(language)}, form))`);
}
for (const form of ['short', 'long', 'narrow']) out(`[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map((at) => [new Date(Date.UTC(2026, at)).toLocaleDateString("sv", { month: ${q(form)} }), new Date(Date.UTC(2026, 0, at)).toLocaleDateString("sv", { weekday: ${q(form)} })])`);
// Parts of a time.
const times = ['{ hour: "numeric", second: "numeric" }', '{ hour: "2-digit", second: "2-digit" }', '{ hour: "numeric", second: "numeric", fractionalSecondDigits: 3 }', '{ minute: "numeric", fractionalSecondDigits: 2 }', '{ second: "numeric", fractionalSecondDigits: 3 }',
  '{ hour: "numeric", minute: "2-digit", fractionalSecondDigits: 3 }', '{ fractionalSecondDigits: 3 }', '{ fractionalSecondDigits: 1 }', '{ hour: "numeric" }', '{ hour: "2-digit" }', '{ minute: "numeric" }', '{ minute: "2-digit" }', '{ second: "2-digit" }', '{ minute: "numeric", second: "numeric" }',
  '{ hour12: true }', '{ hour12: false }', '{ hour12: 0 }', '{ hour12: "false" }', '{ hour12: "" }', '{ hourCycle: "h11" }', '{ hourCycle: "h12" }', '{ hourCycle: "h23" }', '{ hourCycle: "h24" }', '{ hourCycle: "h25" }', '{ hour: "numeric", hour12: true }', '{ hour: "2-digit", minute: "2-digit", hour12: true }',
  '{ timeStyle: "full" }', '{ timeStyle: "long" }', '{ timeStyle: "short", hour12: true }', ...['short', 'long', 'shortOffset', 'longOffset', 'shortGeneric', 'longGeneric'].map((name) => `{ timeZoneName: "${name}" }`), '{ hour: "numeric", minute: "numeric", timeZoneName: "short" }',
  '{ hour: "numeric", timeZoneName: "short" }', '{ minute: "numeric", timeZoneName: "short" }', '{ hour: "numeric", second: "numeric", timeZoneName: "short" }', '{ timeZoneName: "short", hour12: true }', '{ timeZoneName: "short", hour12: false }'];
for (const language of [...orders, 'en-US-u-hc-h23', 'sv-SE-u-hc-h12']) for (const date of dates.slice(0, 2)) for (const form of times) out(`new Date(${date}).toLocaleTimeString(${q(language)}, ${form})`);
// A date and a time.
for (const language of orders) for (const form of ['{ month: "numeric", day: "numeric", hour: "numeric" }', '{ day: "numeric", hour: "numeric" }', '{ year: "numeric", hour: "numeric" }', '{ timeZoneName: "short" }', '{ year: "numeric", timeZoneName: "short" }', '{ month: "short", day: "numeric", hour: "numeric", minute: "numeric" }',
  '{ month: "long", day: "numeric", hour: "numeric", minute: "numeric" }', '{ weekday: "long", hour: "numeric" }', '{ weekday: "short", hour: "numeric" }', '{ weekday: "long", month: "short", day: "numeric", hour: "numeric" }', '{ weekday: "long", year: "numeric", month: "long", day: "numeric", hour: "numeric" }',
  '{ month: "long", day: "numeric", timeZoneName: "short" }', ...['full', 'long', 'medium', 'short'].map((style) => `{ dateStyle: "${style}", timeStyle: "short" }`)]) out(`new Date(Date.UTC(2026, 0, 2, 3, 5, 9)).toLocaleString(${q(language)}, ${form})`);
for (const option of ['calendar: "gregory"', 'calendar: "x"', 'numberingSystem: "latn"', 'numberingSystem: "x"', 'localeMatcher: "lookup"', 'localeMatcher: "x"', 'formatMatcher: "basic"', 'formatMatcher: "x"', 'month: ""', 'timeZone: ""', 'dateStyle: ""', 'foo: 1'])
  out(`new Date(0).toLocaleDateString("en-US", { ${option} })`);

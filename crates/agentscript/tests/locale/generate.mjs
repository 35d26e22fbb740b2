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
out(`(12345678901234567890n).toLocaleString()`); out(`1234n.toLocaleString("en-US", { style: "currency", currency: "USD" })`);
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

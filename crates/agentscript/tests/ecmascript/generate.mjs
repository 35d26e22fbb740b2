// Reads expected.jsonl and writes it again with what Node makes of each script: `TZ=UTC node generate.mjs`
import { readFileSync, writeFileSync } from 'node:fs';
const file = new URL('expected.jsonl', import.meta.url);
const AsyncFunction = (async () => {}).constructor;
const rows = [];
for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
  const { script } = JSON.parse(line);
  try {
    const value = await new AsyncFunction(`"use strict"; ${script}`)();
    rows.push({ script, value: value === undefined ? null : JSON.parse(JSON.stringify(value) ?? 'null') });
  } catch (error) {
    rows.push({ script, throws: error.name });
  }
}
writeFileSync(file, rows.map((row) => JSON.stringify(row) + '\n').join(''));

// Inputs of a tool, generated from its schema: one with what is required, and one with more.
import { JSONSchemaFaker } from 'json-schema-faker';

let seed = 1;
const random = () => {
  seed = (seed * 1103515245 + 12345) % 2147483648;
  return seed / 2147483648;
};
JSONSchemaFaker.option({
  random,
  failOnInvalidTypes: false,
  failOnInvalidFormat: false,
  fillProperties: true,
  ignoreMissingRefs: true,
  minItems: 1,
  maxItems: 2,
  maxLength: 24,
  refDepthMin: 0,
  refDepthMax: 2,
  useDefaultValue: false,
  useExamplesValue: true,
});
const text = (value) => () => value;
for (const [format, value] of Object.entries({
  date: '2024-05-17', 'date-time': '2024-05-17T10:00:00Z', time: '10:00:00Z', duration: 'P1D', uuid: '3fa85f64-5717-4562-b3fc-2c963f66afa6',
  email: 'ada@example.com', uri: 'https://example.com/a', url: 'https://example.com/a', 'uri-reference': '/a', hostname: 'example.com',
  ipv4: '192.0.2.1', ipv6: '2001:db8::1', byte: 'aGVsbG8=', binary: 'aGVsbG8=', password: 'secret',
})) JSONSchemaFaker.format(format, text(value));

// Values that no request can carry in a path, and nulls, which stand for nothing in queries and paths, are replaced.
const clean = (value) => {
  if (typeof value === 'string') return value.trim() === '' ? 'text' : value;
  if (Array.isArray(value)) return value.map(clean);
  if (value !== null && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, clean(member)]));
  return value;
};

// Files are base64, which schemas say in words.
const withFiles = (schema) => {
  if (Array.isArray(schema)) return schema.map(withFiles);
  if (schema === null || typeof schema !== 'object') return schema;
  if (schema.type === 'string' && /base64/.test(schema.description ?? '')) return { const: 'aGVsbG8=' };
  return Object.fromEntries(Object.entries(schema).map(([key, member]) => [key, withFiles(member)]));
};

export function* inputs(tool) {
  for (const more of [0, 0.5]) {
    seed = [...tool.name].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) % 1_000_003, 7);
    JSONSchemaFaker.option({ alwaysFakeOptionals: false, optionalsProbability: more, fixedProbabilities: false });
    yield clean(JSONSchemaFaker.generate(withFiles(tool.inputSchema)));
  }
}

// Every secret that passed between the tests of one file and the servers they started: tokens, codes, client secrets, passwords, cookies. When
// a server ends, what it wrote is searched for them.

const FIELDS = [
  "access_token", "client_assertion", "client_secret", "code", "code_verifier", "id_token", "id_token_hint", "password",
  "refresh_token", "registration_access_token", "request_uri", "token",
];
const seen = new Map();

function add(what, value) {
  // The signature of a token is enough to know it by, and the random part of a pushed request.
  const part = String(value ?? "").split(/[.:]/).at(-1);
  if (part.length >= 16) seen.set(part, what);
}

function addPairs(pairs) {
  for (const [name, value] of pairs) if (FIELDS.includes(name)) add(name, value);
}

const real = globalThis.fetch;
globalThis.fetch = async (input, init) => {
  const request = input instanceof Request ? input : undefined;
  addPairs(new URL(request?.url ?? input).searchParams);
  const headers = new Headers(init?.headers ?? request?.headers);
  add("authorization", headers.get("authorization")?.split(" ")[1]);
  add("dpop", headers.get("dpop"));
  for (const pair of headers.get("cookie")?.split("; ") ?? []) add("cookie", pair.slice(pair.indexOf("=") + 1));
  if (init?.body instanceof URLSearchParams) addPairs(init.body);
  const response = await real(input, init);
  const location = response.headers.get("location");
  if (location && URL.canParse(location)) addPairs(new URL(location).searchParams);
  for (const cookie of response.headers.getSetCookie()) add("cookie", cookie.split(";")[0].split("=").slice(1).join("="));
  if (response.headers.get("content-type")?.startsWith("application/json")) {
    const body = await response.clone().json().catch(() => undefined);
    // The `code` of an answer is that of an error.
    for (const [name, value] of Object.entries(body ?? {})) if (name !== "code" && FIELDS.includes(name)) add(name, value);
  }
  return response;
};

/// Throws when a server wrote one of the secrets down.
export function searched(lines) {
  const text = lines.join("\n");
  const found = [...seen].filter(([value]) => text.includes(value)).map(([, what]) => what);
  if (found.length) throw new Error(`the output of a server holds secrets: ${found.join(", ")}`);
}

// The mixed load: each kind asks, and judges the whole answer.

import { Client, INITIALIZE, sessionOf } from "./http.mjs";

/// An answer that is not what was asked for; `code` says how it failed.
export class Wrong extends Error {
  constructor(code, detail) {
    super(`${code}: ${JSON.stringify(detail)?.slice(0, 600)}`);
    this.code = code;
  }
}

/// Refuses an answer whose status is another; the code is the server's word for it, or `http-` and the status.
function status(answer, expected) {
  if (answer.status === expected) return answer;
  const said = answer.message?.error;
  throw new Wrong(typeof said === "string" ? said : `http-${answer.status}`, answer.message);
}

function body(answer) {
  const result = status(answer, 200).message?.result;
  if (!result?.structuredContent) throw new Wrong("no-body", answer.message);
  const found = result.structuredContent;
  if (found.status && found.status !== "ok") throw new Wrong(found.error?.code ?? found.status, found);
  return found;
}

const check = (fits, found) => {
  if (!fits) throw new Wrong("wrong-answer", found);
};

/// The kinds with their shares of the load, and what ends their connections.
export function kinds(soak) {
  const client = new Client(soak.server.port);
  const call = (tool, input) => client.modern("tools/call", { name: `codecall:${tool}`, arguments: input }, soak.token);
  let number = 0;
  const all = [
    {
      kind: "local",
      share: 40,
      ask: async () => {
        const limit = (number++ % 5) + 1;
        const found = body(await call("invoke", { tool: "crm:users_list", input: { limit } }));
        check(found.result.items.length === limit, found);
      },
    },
    {
      kind: "script",
      share: 20,
      ask: async () => {
        const n = number++;
        const script = "const page = await callTool('crm:users_list', { limit: 2 }); return { n: codecallContext.n, found: page.items.length };";
        const found = body(await call("execute", { script, context: { n } }));
        check(found.result.n === n && found.result.found === 2, found);
      },
    },
    {
      kind: "search",
      share: 10,
      ask: async () => {
        const found = body(await call("search", { query: "list users" }));
        check(found.tools[0].name === "crm:users_list", found);
      },
    },
    {
      kind: "upstream",
      share: 20,
      ask: async () => {
        const id = number++;
        const found = body(await call("invoke", { tool: "ledger:add", input: { id: `${id}` } }));
        check(found.result.id === `${id}`, found);
        soak.acknowledged.push(id);
      },
    },
    {
      kind: "session",
      share: 8,
      ask: async () => {
        const token = soak.token;
        const opened = status(await client.old(undefined, "initialize", INITIALIZE, token), 200);
        const session = sessionOf(opened.head);
        check(session, opened.message);
        status(await client.old(session, "notifications/initialized", undefined, token), 202);
        const params = { name: "codecall:invoke", arguments: { tool: "crm:users_list", input: { limit: 1 } } };
        const found = body(await client.old(session, "tools/call", params, token));
        check(found.result.items.length === 1, found);
        status(await client.end(session, token), 204);
      },
    },
  ];
  /// A new token for all that follows. The token endpoint has limits of its own: it is asked once a second and not as part of the load.
  const issue = { kind: "token", ask: async () => void (soak.token = await token(soak)) };
  return { all, issue, closeConnections: () => client.close() };
}

/// A token by the client-credentials grant (RFC 6749 §4.4).
export async function token(soak) {
  const basic = Buffer.from(`${soak.client.clientId}:${soak.client.clientSecret}`).toString("base64");
  const form = new URLSearchParams({ grant_type: "client_credentials", scope: "crm:read", resource: soak.resource });
  const answer = await fetch(`${soak.issuer}/oauth/token`, {
    method: "POST",
    headers: { authorization: `Basic ${basic}` },
    body: form,
  });
  const found = await answer.json().catch(() => ({}));
  if (answer.status !== 200) throw new Wrong(found.error ?? `http-${answer.status}`, found);
  return found.access_token;
}

// The mixed load: each kind asks, and judges the whole answer.

import { Agent } from "node:http";

import { exchange, end, inSession, modern, open } from "../cluster/rpc.mjs";

const agent = new Agent({ keepAlive: true, maxSockets: 512 });
export const closeConnections = () => agent.destroy();

/// An answer that is not what was asked for; `code` says how it failed.
export class Wrong extends Error {
  constructor(code, detail) {
    super(`${code}: ${JSON.stringify(detail)?.slice(0, 600)}`);
    this.code = code;
  }
}

function body(answer) {
  if (answer.status !== 200) throw new Wrong(`http-${answer.status}`, answer.message);
  const result = answer.message?.result;
  if (!result?.structuredContent) throw new Wrong("no-body", answer.message);
  const found = result.structuredContent;
  if (found.status && found.status !== "ok") throw new Wrong(found.error?.code ?? found.status, found);
  return found;
}

const check = (fits, found) => {
  if (!fits) throw new Wrong("wrong-answer", found);
};

/// The kinds with their shares of the load.
export function kinds(soak) {
  const options = { agent, timeout: 20_000 };
  const call = async (tool, input) => {
    const headers = { authorization: `Bearer ${soak.token}` };
    return modern(soak.server.port, "tools/call", { name: `codecall:${tool}`, arguments: input }, { ...options, headers });
  };
  let number = 0;
  return [
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
        const id = `${number++}`;
        const found = body(await call("invoke", { tool: "ledger:add", input: { id } }));
        check(found.result.id === id, found);
        soak.acknowledged.push(id);
      },
    },
    {
      kind: "session",
      share: 8,
      ask: async () => {
        const headers = { authorization: `Bearer ${soak.token}` };
        const session = await open(soak.server.port, { ...options, headers });
        const params = { name: "codecall:invoke", arguments: { tool: "crm:users_list", input: { limit: 1 } } };
        const found = body(await inSession(soak.server.port, session, "tools/call", params, { ...options, headers }));
        check(found.result.items.length === 1, found);
        const ended = await end(soak.server.port, session, { ...options, headers });
        if (ended.status !== 204) throw new Wrong(`http-${ended.status}`, ended.message);
      },
    },
    {
      kind: "token",
      share: 2,
      ask: async () => {
        soak.token = await token(soak);
      },
    },
  ];
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

export { exchange };

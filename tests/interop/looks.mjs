// Servers whose pages are looked at: with usual content, with nothing, with as much as there can be, and with broken parts.

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";

import { SCOPES, guarded } from "./oauth.mjs";
import { gatewright, ready, serve } from "./support.mjs";

/// Address at which the client is called back; the browser answers for it.
export const CALLBACK = "http://127.0.0.1:49152/callback";
export const PASSWORD = "correct horse battery staple";
const SECRET = "a-secret-of-the-robot-0123456789";
const SCRIPT = `const { items } = await callTool("billing:invoices_list", { status: "overdue", limit: 8 });
const owners = await __safe_parallel(
  items.map((invoice) => () => callTool("crm:accounts_get", { id: invoice.accountId })),
  { maxConcurrency: 3 });
console.log("overdue:", items.length);
return owners.map((owner) => owner.name);`;
const FAILING = "const found = await callTool('crm:users_get', { id: 'nobody' });\nreturn found.name.first;";

const padded = (text) => `${text}_${"abcdefghij".repeat(7)}`.slice(0, 64);

/// An address with many apps below it, whose names and texts are as long as they may be.
async function catalogue(apps, tools) {
  const list = (app) =>
    Array.from({ length: tools }, (_, at) => ({
      name: padded(`tool_${app}_${at}`),
      description: `Number ${at} of app ${app}. ${"It does one thing and says so at length, as people who write for machines do. ".repeat(4)}`,
      inputSchema: {
        type: "object",
        properties: Object.fromEntries(Array.from({ length: 12 }, (_, n) => [padded(`parameter_${n}`), { type: "string", description: "A value that the tool needs to do what it does." }])),
        required: [padded("parameter_0")],
      },
      annotations: { readOnlyHint: at % 3 === 0, destructiveHint: at % 3 === 1, openWorldHint: true },
    }));
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    const { id, method, params } = text ? JSON.parse(text) : {};
    if (id === undefined) return response.writeHead(request.method === "POST" ? 202 : 405).end();
    const app = Number(request.url.slice(1));
    const answers = {
      initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: `app ${app}`, version: "1" } }),
      "tools/list": () => ({ tools: list(app) }),
      "tools/call": () => ({ content: [{ type: "text", text: "done" }] }),
      ping: () => ({}),
    };
    const answer = answers[method];
    const body = answer ? { result: answer() } : { error: { code: -32601, message: "no such method" } };
    response.setHeader("content-type", "application/json").end(JSON.stringify({ jsonrpc: "2.0", id, ...body }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const base = `http://127.0.0.1:${server.address().port}`;
  const entry = (at) => [padded(`app_${at}`), { url: `${base}/${at}` }];
  return { apps: Object.fromEntries(Array.from({ length: apps }, (_, at) => entry(at))), stop: () => server.close() };
}

/// Calls a meta-tool; gives the text of the answer.
async function call(url, tool, input, token) {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "looks", version: "1" },
  };
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      ...(token && { authorization: `Bearer ${token}` }),
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": tool,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: tool, arguments: input, _meta: meta } }),
  });
  return answer.text();
}

function auth(name, changes = {}) {
  const passwordHash = execFileSync(gatewright, ["user", "hash"], { input: `${PASSWORD}\n` }).toString().trim();
  return {
    local: { login: "password", passkeys: { enabled: true }, users: [{ username: "ada", name: "Ada Lovelace", passwordHash }] },
    clients: [
      { clientId: "desktop", name, redirectUris: ["http://127.0.0.1/callback", "http://127.0.0.1/second"] },
      { clientId: "robot", name: "Nightly robot", clientSecret: SECRET, tokenEndpointAuthMethod: "client_secret_post", grantTypes: ["client_credentials"] },
    ],
    consent: { enabled: true },
    limits: { authorize: 10_000, login: 10_000, wrongPasswords: 2 },
    ...changes,
  };
}

async function robot(server) {
  const form = { grant_type: "client_credentials", client_id: "robot", client_secret: SECRET, scope: "crm:read crm:write billing:read" };
  const answer = await fetch(new URL("/oauth/token", server.issuer), { method: "POST", body: new URLSearchParams(form) });
  return (await answer.json()).access_token;
}

/// Usual content: three apps of which one is down, executions that went well and failed, approvals that wait.
export async function normal() {
  const apps = { crm: { builtin: "crm" }, billing: { builtin: "billing" }, support: { builtin: "support" }, archive: { command: "/nonexistent/archive-server" } };
  const scopes = { ...SCOPES, "crm:write": "Create and change users and accounts" };
  const more = { info: { name: "acme-tools", version: "1.0.0" }, apps, admin: { port: 0 }, approvals: { writes: "ask", approvers: "crm:write" } };
  const server = await guarded(auth("Acme Desktop", { scopes }), "localhost", more);
  const token = await robot(server);
  const mcp = new URL("/mcp", server.issuer);
  for (const script of [SCRIPT, SCRIPT, FAILING, "return 1;"]) await call(mcp, "codecall:execute", { script }, token);
  await call(mcp, "codecall:search", { query: "users" }, token);
  for (const name of ["Grace Hopper", "Katherine Johnson"]) {
    await call(mcp, "codecall:invoke", { tool: "crm:users_update", input: { id: "usr_0002", name } }, token);
  }
  await call(mcp, "codecall:execute", { script: "return await callTool('crm:users_update', { id: 'usr_0003', name: 'Ada' });" }, token);
  return { ...server, title: "normal" };
}

/// As little as there can be: one app, which is down.
export async function empty() {
  const server = await guarded(auth("Acme Desktop", { scopes: { ...SCOPES, "crm:write": "Create and change users and accounts" } }), "localhost", { apps: { archive: { command: "/nonexistent/archive-server" } }, admin: { port: 0 } });
  return { ...server, title: "empty" };
}

/// 40 apps with 5,000 tools, names of 64 characters, and many approvals that wait.
export async function full() {
  const upstreams = await catalogue(40, 125);
  const name = padded("gateway");
  const words = "Read, create and change everything that there is in this application, and keep access while you are away";
  const scopes = { ...SCOPES, "crm:write": words, ...Object.fromEntries(Array.from({ length: 20 }, (_, at) => [padded(`scope_${at}:read`), words])) };
  const more = { info: { name, version: "1.0.0" }, apps: { crm: { builtin: "crm" }, ...upstreams.apps }, admin: { port: 0 }, approvals: { writes: "ask", approvers: "crm:write" } };
  const server = await guarded(auth(padded("Client"), { scopes }), "localhost", more);
  await ready(server.url);
  const token = await robot(server);
  const mcp = new URL("/mcp", server.issuer);
  for (let at = 0; at < 60; at += 1) await call(mcp, "codecall:execute", { script: SCRIPT.replaceAll("billing:invoices_list", "crm:users_list") }, token);
  const id = "usr_0002";
  for (let at = 0; at < 12; at += 1) await call(mcp, "codecall:invoke", { tool: "crm:users_update", input: { id, name: `${at} ${"Very long name ".repeat(12)}` } }, token);
  const stop = async () => {
    await server.stop();
    upstreams.stop();
  };
  return { ...server, stop, upstreams, scopes, title: "full" };
}

/// A server that is open to all.
export async function open(apps = { crm: { builtin: "crm" }, billing: { builtin: "billing" }, archive: { command: "/nonexistent/archive-server" } }, title = "open") {
  const server = await serve({ info: { name: "acme-tools", version: "1.0.0" }, apps });
  return { ...server, issuer: server.url.origin, title };
}

/// The address of an authorization request of `desktop`.
export function authorization(server, changes = {}) {
  const url = new URL("/oauth/authorize", server.issuer);
  url.search = new URLSearchParams({
    response_type: "code",
    client_id: "desktop",
    redirect_uri: CALLBACK,
    scope: "crm:read crm:write billing:read",
    state: "a-state",
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    code_challenge_method: "S256",
    ...changes,
  });
  return url.href;
}

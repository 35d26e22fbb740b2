// A small MCP server over Streamable HTTP for users with tokens, without dependencies. BUG says which defect it has.
import { createPublicKey, randomUUID, verify } from "node:crypto";
import http from "node:http";

const bug = process.env.BUG ?? "";
const { IDP_PROVIDER_URL: issuer, IDP_EXPECTED_AUDIENCE: audience, PORT: port } = process.env;
const base = `http://127.0.0.1:${port}`;
const [sessions, notes] = [new Map(), new Map()];
let [left, last] = [1, ""];
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const text = (value) => ({ content: [{ type: "text", text: value }] });
const failed = (value) => ({ ...text(value), isError: true });
const anybody = { sub: "anybody", scope: "write" };

async function claimsOf(token) {
  const [header, claims] = token.split(".").slice(0, 2).map((part) => JSON.parse(Buffer.from(part, "base64url")));
  const [signed, signature] = [token.slice(0, token.lastIndexOf(".")), Buffer.from(token.split(".")[2], "base64url")];
  const { keys } = await (await fetch(`${issuer}/.well-known/jwks.json`)).json();
  let jwk = keys.find((one) => one.kid === header.kid);
  if (bug === "any-key-id") jwk ??= keys[0];
  if (bug === "embedded-key") jwk = header.jwk ?? jwk;
  const isSigned = header.alg === "RS256" && jwk && verify("sha256", Buffer.from(signed), createPublicKey({ key: jwk, format: "jwk" }), signature);
  if (!isSigned && bug !== "any-signature" && !(bug === "no-algorithm" && header.alg === "none")) throw new Error("signature");
  const now = Date.now() / 1000;
  if (!(claims.exp > now) && bug !== "any-time" && !(bug === "no-expiry" && !claims.exp)) throw new Error("exp");
  if (claims.nbf > now && bug !== "too-early") throw new Error("nbf");
  if (claims.iss !== issuer && bug !== "any-issuer") throw new Error("iss");
  const isOurs = [claims.aud].flat().includes(audience);
  if (!isOurs && bug !== "any-audience" && !(bug === "no-audience" && !claims.aud)) throw new Error("aud");
  if (header.crit || claims.nonce) throw new Error("not an access token");
  return claims;
}

async function caller({ headers, url }, { method }) {
  const isOpen = {
    "no-auth": true,
    "list-without-auth": method === "tools/list",
    "call-without-auth": method === "tools/call",
    "path-without-auth": url === "/mcp/",
    "header-names-user": headers["x-user"],
    "header-of-proxy": headers["x-forwarded-for"]?.startsWith("127."),
    "header-debug": headers["x-debug"],
    "any-token": headers.authorization,
  }[bug];
  if (isOpen) return anybody;
  if (bug === "session-instead-of-token" && sessions.has(headers["mcp-session-id"])) return sessions.get(headers["mcp-session-id"]);
  const inQuery = bug === "token-in-query" && new URL(url, base).searchParams.get("access_token");
  const token = inQuery || headers.authorization?.match(/^Bearer (.*)/)?.[1];
  return token ? await claimsOf(token).catch(() => undefined) : undefined;
}

const tools = {
  save: (who, args) => {
    if (typeof args.text !== "string") return failed("`text` is missing");
    const id = randomUUID();
    notes.set(id, { owner: who.sub, text: args.text });
    last = args.text;
    return { ...text(id), structuredContent: { id } };
  },
  load: (who, args) => {
    const note = notes.get(args.id);
    if (note && (note.owner === who.sub || bug === "notes-of-others")) return text(note.text);
    return failed(note && bug === "owner-in-error" ? `belongs to ${note.owner}` : "no such note");
  },
  whoami: (who) => text(bug === "note-of-last-caller" ? `${who.sub} ${last}` : who.sub),
  buy: async () => {
    const seen = left;
    if (seen < 1) return failed("sold out");
    if (bug === "race") await pause(50);
    left = seen - 1;
    return text("sold");
  },
};

async function answer(request, response, message) {
  const reply = (status, body, headers = {}) => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    response.writeHead(status, { ...type, ...headers }).end(body === undefined ? "" : JSON.stringify(body));
  };
  if (bug === "token-in-log") console.error(request.method, request.headers.authorization);
  const who = await caller(request, message);
  if (!who) {
    const metadata = `resource_metadata="${base}/.well-known/oauth-protected-resource"`;
    const challenge = bug === "no-challenge" ? {} : { "www-authenticate": `Bearer error="invalid_token", ${metadata}` };
    const error = { jsonrpc: "2.0", id: message.id, error: { code: -32001, message: "who are you?" } };
    return reply(bug === "refusal-with-200" ? 200 : bug === "refusal-with-403" ? 403 : 401, error, challenge);
  }
  const { id, method, params } = message;
  const session = bug === "no-auth" ? [...sessions.keys()][0] : request.headers["mcp-session-id"];
  const error = (code, message) => reply(200, { jsonrpc: "2.0", id, error: { code, message } });
  let [result, headers] = [{}, {}];
  if (method === "initialize") {
    headers = { "mcp-session-id": randomUUID() };
    sessions.set(headers["mcp-session-id"], who);
    const serverInfo = { name: "defects", version: "1" };
    result = { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo };
  } else if (bug !== "session-of-others" && who !== anybody && sessions.get(session)?.sub !== who.sub) {
    return reply(404, { error: "no such session" });
  } else if (id === undefined) return reply(202);
  else if (method === "tools/list") {
    result = { tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: "object" } })) };
  } else if (method === "tools/call") {
    const scopes = (who.scope ?? "").split(" ");
    if (params.name === "save" && !scopes.includes("write") && bug !== "any-scope") return reply(403, { error: "insufficient_scope" });
    const tool = tools[params.name];
    if (!tool) return error(-32602, `no tool ${params.name}`);
    result = await tool(who, params.arguments ?? {});
  } else if (method !== "ping") return error(-32601, "Method not found");
  const whole = { jsonrpc: "2.0", id, result };
  const wrong = {
    "json-as-text": ["text/plain", JSON.stringify(whole)],
    "json-as-html": ["text/html; charset=utf-8", JSON.stringify(whole)],
    "json-as-stream": ["text/event-stream", JSON.stringify(whole)],
    "stream-as-json": ["application/json", `event: message\ndata: ${JSON.stringify(whole)}\n\n`],
  }[bug];
  if (wrong) return response.writeHead(200, { ...headers, "content-type": wrong[0] }).end(wrong[1]);
  if (bug === "json-without-type") return response.writeHead(200, headers).end(JSON.stringify(whole));
  reply(200, whole, headers);
}

http
  .createServer((request, response) => {
    const path = request.url.split("?")[0];
    const json = (body) => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (path === "/health") return json({});
    if (path === "/.well-known/oauth-protected-resource") return json({ resource: `${base}/mcp`, authorization_servers: [issuer] });
    const isEndpoint = path === "/mcp" || (bug === "path-without-auth" && path === "/mcp/");
    if (!isEndpoint) return response.writeHead(404).end();
    if (request.headers.origin && bug !== "any-origin") return response.writeHead(403).end();
    if (request.method !== "POST") return response.writeHead(request.method === "DELETE" ? 204 : 405).end();
    let body = "";
    request.on("data", (data) => (body += data));
    request.on("end", () => answer(request, response, JSON.parse(body)));
  })
  .listen(Number(port), "127.0.0.1");

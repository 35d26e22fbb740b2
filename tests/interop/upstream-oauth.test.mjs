// A server that demands a token of each user, behind a gateway whose users sign in: two of our own servers, with the official client in front.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { Browser, freePort, guarded } from "./oauth.mjs";
import { serve } from "./support.mjs";

const CALLBACK = "http://127.0.0.1:49152/callback";
const GRANTS = ["authorization_code", "refresh_token"];

let inner, outer;
before(async () => {
  inner = await guarded();
  const port = await freePort();
  // Another host name than the inner server's: cookies do not tell ports apart.
  const issuer = `http://localhost:${port}`;
  outer = await serve({
    http: { port, publicUrl: issuer },
    apps: { crm: { url: inner.url.href, auth: { type: "oauth", allowPrivate: true } } },
    codecall: { enabled: false },
    auth: {
      mode: "orchestrated",
      type: "local",
      local: { login: "demo" },
      dcrEnabled: true,
      scopes: { use: "Use the tools" },
    },
  });
  outer.issuer = issuer;
});
after(async () => {
  await outer?.stop();
  await inner?.stop();
});

/// State that the official client asks its host to keep, for one user.
class Kept {
  browser = new Browser();
  redirectUrl = CALLBACK;
  clientMetadata = { client_name: "Interop", redirect_uris: [CALLBACK], grant_types: GRANTS, token_endpoint_auth_method: "none" };
  constructor(user) {
    this.user = user;
  }
  clientInformation = () => this.known;
  saveClientInformation = (information) => (this.known = information);
  tokens = () => this.held;
  saveTokens = (tokens) => (this.held = tokens);
  saveCodeVerifier = (verifier) => (this.verifier = verifier);
  codeVerifier = () => this.verifier;
  state = () => "state";
  redirectToAuthorization = async (url) => (this.answer = await this.browser.authorize(url, { user: this.user }));
}

async function signedIn(user, capabilities = {}) {
  const kept = new Kept(user);
  const url = new URL("/mcp", outer.issuer);
  const client = new Client({ name: "interop", version: "1.0.0" }, { capabilities });
  const first = new StreamableHTTPClientTransport(url, { authProvider: kept });
  await assert.rejects(client.connect(first), UnauthorizedError);
  await first.finishAuth(kept.answer.searchParams.get("code"));
  await client.connect(new StreamableHTTPClientTransport(url, { authProvider: kept }));
  return { client, kept };
}

/// Opens the address in the user's browser: it leads to the inner server, and back.
async function connect(kept, address) {
  const leads = await kept.browser.authorize(address);
  assert.equal(leads.origin, inner.issuer);
  const there = new Browser();
  const back = await there.authorize(leads.href, { user: `${kept.user}-at-the-inner-server`, stopAt: outer.issuer });
  assert.match(back.pathname, /^\/oauth\/connect\/[0-9a-f]{32}\/callback$/);
  await assert.rejects(kept.browser.authorize(back.href), /without a form.*Connected/s);
}

test("a client without URL elicitation is told the address, and the tools come once the user has been there", async () => {
  const { client, kept } = await signedIn("ada");
  const before = (await client.listTools()).tools.map((tool) => tool.name);
  const name = before.find((tool) => tool.endsWith("authorize"));
  assert.ok(name, before.join());
  const refused = await client.callTool({ name, arguments: {} });
  assert.equal(refused.isError, true);
  assert.equal(refused._meta.code, "AUTHORIZATION_REQUIRED");
  const { url } = refused._meta;
  assert.ok(url.startsWith(`${outer.issuer}/oauth/connect?id=`), url);

  await connect(kept, url);
  const authorized = await client.callTool({ name, arguments: {} });
  assert.ok(!authorized.isError, JSON.stringify(authorized));
  const tools = (await client.listTools()).tools.map((tool) => tool.name);
  assert.ok(tools.length > before.length, tools.join());
  const invoke = tools.find((tool) => tool.endsWith("invoke"));
  const answer = await client.callTool({ name: invoke, arguments: { tool: "crm:users_list", input: { limit: 2 } } });
  assert.ok(!answer.isError, JSON.stringify(answer));
  assert.equal(answer.structuredContent.status, "ok", JSON.stringify(answer));
  await client.close();
});

test("another user sees no tools of the first one's and is asked for their own consent, as a URL elicitation where the client takes them", async () => {
  const { client, kept } = await signedIn("bob", { elicitation: { url: {} } });
  const find = async (end) => (await client.listTools()).tools.map((tool) => tool.name).find((name) => name.endsWith(end));
  assert.equal(await find("invoke"), undefined, "catalogues are each user's own");
  const authorize = { name: await find("authorize"), arguments: {} };
  const asked = await client.callTool(authorize).then(assert.fail, (error) => error);
  assert.equal(asked.code, -32042, String(asked));
  const [elicitation] = asked.data.elicitations;
  assert.equal(elicitation.mode, "url");
  await connect(kept, elicitation.url);
  assert.ok(!(await client.callTool(authorize)).isError);
  const invoke = await find("invoke");
  const answer = await client.callTool({ name: invoke, arguments: { tool: "crm:users_list", input: { limit: 2 } } });
  assert.equal(answer.structuredContent.status, "ok");
  await client.close();
});

test("the inner server never sees the token of the gateway's caller", async () => {
  const { client, kept } = await signedIn("eve");
  const response = await fetch(inner.url, {
    method: "POST",
    headers: { authorization: `Bearer ${kept.held.access_token}`, "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
  });
  assert.equal(response.status, 401, "it would be refused there");
  await client.close();
});

// The client of the Rust SDK (`rmcp`, feature `auth`) against our authorization server.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, test } from "node:test";
import { createInterface } from "node:readline";

import { Browser, CLIENTS, guarded } from "./oauth.mjs";

/// Built by `tests/interop/run` from tests/interop/rmcp-client.
const PROGRAM = process.env.RMCP_CLIENT;
const CALLBACK = "http://127.0.0.1:49152/callback";

let server;
before(async () => {
  server = await guarded();
});
after(() => server?.stop());

async function wholeLife(...client) {
  const child = spawn(PROGRAM, [server.url.href, CALLBACK, ...client], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const says = async (word) => {
    const { value = "" } = await lines.next();
    assert.ok(value.startsWith(word), `${word} was expected: ${value}`);
    return value.slice(word.length).trim();
  };
  try {
    const request = new URL(await says("authorize"));
    assert.equal(request.origin, server.issuer);
    assert.equal(request.searchParams.get("code_challenge_method"), "S256");
    assert.equal(request.searchParams.get("resource"), server.url.href);
    const callback = await new Browser().authorize(request);
    assert.equal(callback.searchParams.get("iss"), server.issuer);
    child.stdin.write(`${callback.href}\n`);
    for (const when of ["after the login", "after a refresh"]) {
      const { status, result } = JSON.parse(await says("result"));
      assert.deepEqual([status, result], ["ok", 2], when);
    }
    const { client_id, tokens } = JSON.parse(await says("tokens"));
    const body = new URLSearchParams({ token: tokens.refresh_token, client_id });
    const headers = {};
    if (client[1]) {
      body.delete("client_id");
      headers.authorization = `Basic ${Buffer.from(`${client_id}:${client[1]}`).toString("base64")}`;
    }
    const revoked = await fetch(`${server.issuer}/oauth/revoke`, { method: "POST", body, headers });
    assert.equal(revoked.status, 200);
    child.stdin.write("go on\n");
    await says("refused");
  } finally {
    child.kill();
  }
}

test("rmcp logs in, uses tools, refreshes and is refused once revoked when it registers itself", () => wholeLife());

test("rmcp does the same as a client that is registered beforehand", () => wholeLife(CLIENTS.public.clientId));

test("rmcp does the same as a client with a secret", () =>
  wholeLife(CLIENTS.confidential.clientId, CLIENTS.confidential.clientSecret));

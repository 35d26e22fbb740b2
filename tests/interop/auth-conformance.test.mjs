// The official conformance suite for authorization servers, and a fuzzer that reads our OpenAPI description.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";

import { Browser, CLIENTS, freePort, guarded } from "./oauth.mjs";

const conformance = `${process.env.TOOLS}/@modelcontextprotocol/conformance/dist/index.js`;

function run(command, args) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  const seen = { text: "" };
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (seen.text += data));
  return { child, seen, ended: once(child, "exit").then(([code]) => code) };
}

test("passes the authorization suite of the MCP conformance tests", async () => {
  const server = await guarded();
  const { clientId } = CLIENTS.public;
  const args = ["authorization", "--url", server.issuer, "--client-id", clientId, "--resource", server.url.href];
  const { child, seen, ended } = run(process.execPath, [conformance, ...args, "--port", `${await freePort()}`]);
  try {
    // The suite prints an address for a person to open, and waits to be called back.
    let opened = false;
    child.stdout.on("data", async () => {
      const asked = seen.text.match(/^(http\S+\/oauth\/authorize\S+)$/m);
      if (!asked || opened) return;
      opened = true;
      const answer = await new Browser().authorize(asked[1]);
      await fetch(answer);
    });
    assert.equal(await ended, 0, seen.text);
    assert.ok(opened, seen.text);
    assert.doesNotMatch(seen.text, /FAILURE|[1-9]\d* failed/, seen.text);
  } finally {
    child.kill();
    await server.stop();
  }
});

test("schemathesis finds no 5xx and no undocumented status in the published description", async () => {
  const roomy = { token: 1e6, authorize: 1e6, login: 1e6, register: 1e6, revoke: 1e6, fetch: 1e6 };
  const local = { login: "password", passkeys: { enabled: true } };
  const server = await guarded({ limits: roomy, cimd: { enabled: false }, local }, "localhost");
  const st = process.env.PYTHON.replace(/python3?$/, "st");
  const checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
  const { seen, ended } = run(st, [
    "run", `${server.issuer}/oauth/openapi.json`, "--url", server.issuer,
    "--checks", checks, "--max-examples", "40", "--seed", "1", "--phases", "examples,coverage,fuzzing", "--no-color",
  ]);
  try {
    assert.equal(await ended, 0, seen.text);
  } finally {
    await server.stop();
  }
});

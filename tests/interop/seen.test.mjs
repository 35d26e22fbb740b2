// The search for secrets in what servers write, tried on a server that writes one down.

import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

const SECRET = "a-secret-of-the-test-0123456789";

// Serves anything. When it is told to end it does; a child of it writes, once it is gone, what it was told as LEAK.
const LEAKY = `#!${process.execPath}
const server = require("node:http").createServer((request, response) => response.end("{}"));
server.listen(0, "127.0.0.1", () => console.error("serving MCP on http://127.0.0.1:" + server.address().port + "/mcp"));
process.on("SIGTERM", () => {
  const last = "while kill -0 " + process.pid + " 2> /dev/null; do sleep 0.05; done; echo goodbye $LEAK >&2";
  require("node:child_process").spawn("sh", ["-c", last], { stdio: ["ignore", "ignore", "inherit"] });
  process.exit();
});
`;

const folder = await mkdtemp(join(tmpdir(), "gatewright-leaky-"));
after(() => rm(folder, { recursive: true, force: true }));
process.env.GATEWRIGHT = join(folder, "gatewright");
await writeFile(process.env.GATEWRIGHT, LEAKY);
await chmod(process.env.GATEWRIGHT, 0o755);
delete process.env.GATEWRIGHT_INSTANCES;
const { serve } = await import("./support.mjs");

async function asked(leak, ask) {
  process.env.LEAK = leak;
  const server = await serve({});
  await ask(server.url);
  return server;
}

const LEAKS = [
  ["authorization", (url) => fetch(url, { headers: { authorization: `Bearer head.body.${SECRET}` } })],
  ["cookie", (url) => fetch(url, { headers: { cookie: `a=b; session=${SECRET}` } })],
  ["code", (url) => fetch(`${url}?code=${SECRET}`)],
  ["password", (url) => fetch(url, { method: "POST", body: new URLSearchParams({ password: SECRET }) })],
];

for (const [what, ask] of LEAKS) {
  test(`a secret (${what}) in the last line that a server writes fails the test that started it`, async () => {
    const server = await asked(SECRET, ask);
    await assert.rejects(server.stop(), (error) => {
      assert.equal(error.message, `the output of a server holds secrets: ${what}`);
      return true;
    });
  });
}

test("a server that writes no secret down passes", async () => {
  const server = await asked("nothing", LEAKS[0][1]);
  await server.stop();
});

// What passes between two instances over a real Redis: seen with MONITOR, replayed, broken, and with proofs of possession.

import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Browser } from "../interop/browser.mjs";
import { KEY, cluster as shared, freePort, instance } from "./instances.mjs";
import { redis } from "./redis.mjs";
import { OLD, exchange, inSession, open } from "./rpc.mjs";

const LEDGER = join(import.meta.dirname, "ledger.mjs");
const CALLBACK = "http://127.0.0.1:49152/callback";

/// Sends commands to Redis, and keeps all that it answers.
async function terminal(port) {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  const heard = [];
  socket.on("data", (data) => heard.push(data));
  const send = (...words) => {
    const parts = words.map((word) => (Buffer.isBuffer(word) ? word : Buffer.from(word)));
    const bytes = parts.flatMap((part) => [Buffer.from(`$${part.length}\r\n`), part, Buffer.from("\r\n")]);
    socket.write(Buffer.concat([Buffer.from(`*${parts.length}\r\n`), ...bytes]));
  };
  const until = async (found) => {
    const deadline = Date.now() + 20_000;
    while (!found(Buffer.concat(heard))) {
      assert.ok(Date.now() < deadline, "Redis says what is waited for");
      await new Promise((done) => setTimeout(done, 5));
    }
    return Buffer.concat(heard);
  };
  return { send, until, end: () => socket.destroy() };
}

/// Undoes how MONITOR writes an argument.
function unescaped(text) {
  const bytes = [];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] !== "\\") bytes.push(text.charCodeAt(at));
    else if (text[at + 1] === "x") bytes.push(Number.parseInt(text.slice(at + 2, (at += 3) + 1), 16));
    else bytes.push({ n: 10, r: 13, t: 9, a: 7, b: 8 }[text[++at]] ?? text.charCodeAt(at));
  }
  return Buffer.from(bytes);
}

/// The messages between instances in what MONITOR said.
const messages = (said) =>
  [...said.toString("latin1").matchAll(/"PUBLISH" "(gw:instance:[^"]+)" "((?:[^"\\]|\\.)*)"/g)].map((found) => ({
    channel: found[1],
    bytes: unescaped(found[2]),
  }));

async function site(t, more) {
  const folder = await mkdtemp(join(tmpdir(), "relay-"));
  const file = join(folder, "ledger.txt");
  await writeFile(file, "");
  const [redisPort, ...ports] = [await freePort(), await freePort(), await freePort()];
  const store = await redis(redisPort, folder);
  const config = (port) => ({
    codecall: { enabled: false },
    apps: { ledger: { command: process.execPath, args: [LEDGER, file] } },
    ...more(redisPort, ports),
    http: { port, cluster: shared(redisPort), ...more(redisPort, ports).http },
  });
  const instances = [];
  for (const port of ports) instances.push(await instance(config(port)));
  t.after(async () => {
    await Promise.all(instances.map((one) => one.stop("SIGKILL")));
    store.kill("SIGCONT");
    store.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  });
  const lines = async () => (await readFile(file, "utf8")).split("\n").filter(Boolean);
  return { instances, ports, redisPort, store, lines };
}

const add = (id, wait) => ({ name: "ledger:add", arguments: { id, ...(wait ? { wait } : {}) } });

test("what passes between instances is unreadable, and runs nothing when it is sent again", async (t) => {
  const { ports, redisPort, lines } = await site(t, () => ({}));
  const session = await open(ports[0]);
  const monitor = await terminal(redisPort);
  monitor.send("MONITOR");
  await monitor.until((said) => said.includes("+OK"));
  const headers = { authorization: "Bearer the-token-of-a-user", cookie: "crumbs=1", dpop: "a-proof" };
  const answer = await inSession(ports[1], session, "tools/call", add("the-argument"), { headers });
  assert.equal(answer.message.result.structuredContent.id, "the-argument");

  const said = await monitor.until((all) => messages(all).length >= 2);
  const passed = messages(said);
  const wire = Buffer.concat([said, ...passed.map(({ bytes }) => bytes)]).toString("latin1");
  for (const secret of ["the-token-of-a-user", "crumbs", "a-proof", "the-argument", "tools/call", "authorization", KEY]) {
    assert.ok(!wire.toLowerCase().includes(secret.toLowerCase()), secret);
  }

  const attacker = await terminal(redisPort);
  for (const { channel, bytes } of passed) attacker.send("PUBLISH", channel, bytes);
  attacker.send("ECHO", "all sent");
  await attacker.until((all) => all.includes("all sent"));
  // What comes after the copies on the same channel is answered when they were read.
  assert.equal((await inSession(ports[1], session, "tools/call", add("after"))).status, 200);
  assert.deepEqual(await lines(), ["the-argument", "after"]);
  monitor.end();
  attacker.end();
});

test("an instance that is killed in the middle of a call ends it, and the call is not repeated", async (t) => {
  const { ports, instances, lines } = await site(t, () => ({}));
  const session = await open(ports[0]);
  const call = inSession(ports[1], session, "tools/call", add("long", 60_000)).then(
    (answer) => ({ status: answer.status, message: answer.message }),
    (error) => ({ error }),
  );
  while ((await lines()).length === 0) await new Promise((done) => setTimeout(done, 5));
  instances[0].child.kill("SIGKILL");
  const started = Date.now();
  // Until Redis has noticed, the call may have reached it: then the answer says so.
  let gone;
  do gone = await inSession(ports[1], session, "tools/call", add("next"));
  while (gone.status === 502 && Date.now() - started < 10_000);
  assert.equal(gone.status, 404);
  assert.equal(gone.message.error.code, -32000);
  // The head of the answer was sent: the client sees that the rest is missing.
  const ended = await call;
  assert.ok(ended.error || ended.status === 502 || !ended.message, JSON.stringify(ended));
  assert.ok(Date.now() - started < 15_000, "soon");
  assert.deepEqual(await lines(), ["long"]);
});

test("while Redis is away requests of other instances' sessions get 503, and are served when it is back", async (t) => {
  const { ports, store, redisPort, lines } = await site(t, () => ({}));
  const session = await open(ports[0]);
  assert.equal((await inSession(ports[1], session, "tools/call", add("before"))).status, 200);
  store.kill("SIGKILL");
  await once(store, "exit");
  const folder = await mkdtemp(join(tmpdir(), "redis-"));
  const deadline = Date.now() + 20_000;
  let answer;
  do answer = await inSession(ports[1], session, "tools/call", add("away"));
  while (answer.status !== 503 && Date.now() < deadline);
  assert.equal(answer.status, 503);
  assert.match(answer.message.error.message, /Redis/);
  // Sessions of the instance that is asked need no Redis.
  assert.equal((await inSession(ports[0], session, "tools/call", add("own"))).status, 200);
  const again = await redis(redisPort, folder);
  t.after(async () => {
    again.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  });
  let tries = 0;
  do answer = await inSession(ports[1], session, "tools/call", add(`back ${++tries}`));
  while (answer.status !== 200 && Date.now() < deadline);
  assert.equal(answer.status, 200);
  assert.deepEqual((await lines()).filter((line) => line === "before" || line === "own"), ["before", "own"]);
  assert.equal(new Set(await lines()).size, (await lines()).length, "nothing ran twice");
  assert.ok((await lines()).includes(`back ${tries}`));
});

/// A key and its proofs of possession (RFC 9449).
function possession() {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { kty, crv, x, y } = publicKey.export({ format: "jwk" });
  const text = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return (method, url, token) => {
    const head = text({ typ: "dpop+jwt", alg: "ES256", jwk: { kty, crv, x, y } });
    const ath = token && { ath: createHash("sha256").update(token).digest("base64url") };
    const claims = { jti: randomBytes(16).toString("hex"), htm: method, htu: url, iat: Math.floor(Date.now() / 1_000), ...ath };
    const signed = `${head}.${text(claims)}`;
    const signature = sign("sha256", Buffer.from(signed), { key: privateKey, dsaEncoding: "ieee-p1363" });
    return `${signed}.${signature.toString("base64url")}`;
  };
}

test("a proof of possession opens a session of the other instance once, and only once", async (t) => {
  const { ports } = await site(t, (redisPort, [port]) => ({
    http: { publicUrl: `http://127.0.0.1:${port}`, cluster: { key: KEY } },
    auth: {
      mode: "orchestrated",
      type: "local",
      tokenStorage: { type: "redis", config: { host: "127.0.0.1", port: redisPort } },
      local: { login: "demo" },
      scopes: { "crm:read": "Read the CRM" },
      clients: [{ clientId: "app", redirectUris: [CALLBACK] }],
    },
  }));
  const issuer = `http://127.0.0.1:${ports[0]}`;
  const url = `${issuer}/mcp`;
  const prove = possession();
  const verifier = randomBytes(32).toString("base64url");
  const asked = new URL(`${issuer}/oauth/authorize`);
  asked.search = new URLSearchParams({
    response_type: "code",
    client_id: "app",
    redirect_uri: CALLBACK,
    scope: "crm:read",
    resource: url,
    state: "s",
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  });
  const called = await new Browser().authorize(asked, { user: "ann" });
  const code = called.searchParams.get("code");
  assert.ok(code, called.href);
  const form = { grant_type: "authorization_code", code, redirect_uri: CALLBACK, code_verifier: verifier, client_id: "app" };
  const tokens = await fetch(`${issuer}/oauth/token`, {
    method: "POST",
    headers: { dpop: prove("POST", `${issuer}/oauth/token`) },
    body: new URLSearchParams(form),
  });
  const granted = await tokens.json();
  assert.equal(granted.token_type, "DPoP", JSON.stringify(granted));
  const token = granted.access_token;
  const proven = (method) => ({ authorization: `DPoP ${token}`, dpop: prove(method, url, token) });

  const params = { protocolVersion: OLD, capabilities: {}, clientInfo: { name: "relay", version: "1" } };
  const hello = { jsonrpc: "2.0", id: 0, method: "initialize", params };
  const opened = await exchange(ports[0], "POST", hello, {}, { headers: proven("POST") });
  assert.equal(opened.status, 200, JSON.stringify(opened));
  const session = opened.headers["mcp-session-id"];
  const told = await inSession(ports[0], session, "notifications/initialized", undefined, { headers: proven("POST") });
  assert.equal(told.status, 202);

  const headers = proven("POST");
  const first = await inSession(ports[1], session, "tools/list", undefined, { headers });
  assert.equal(first.status, 200, JSON.stringify(first));
  for (const port of [ports[1], ports[0]]) {
    assert.equal((await inSession(port, session, "tools/list", undefined, { headers })).status, 401);
  }
});

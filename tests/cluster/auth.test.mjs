// Two instances with one Redis behind a plain proxy: logins, refreshes and revocations go on whichever instance gets the request,
// and stay exact while one of them is killed.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Browser } from "../interop/browser.mjs";
import { KEY, freePort, instance } from "./instances.mjs";
import { proxy } from "./proxy.mjs";
import { redis } from "./redis.mjs";
import { modern } from "./rpc.mjs";

const CLIENT = "cluster";
const CALLBACK = "http://127.0.0.1:49152/callback";

async function cluster(t) {
  const folder = await mkdtemp(join(tmpdir(), "cluster-"));
  const [redisPort, ...ports] = [await freePort(), await freePort(), await freePort()];
  const store = await redis(redisPort, folder);
  const front = await proxy(ports);
  const issuer = `http://127.0.0.1:${front.port}`;
  const config = (port) => ({
    http: { port, publicUrl: issuer, cluster: { key: KEY } },
    apps: { crm: { builtin: "crm" } },
    auth: {
      mode: "orchestrated",
      type: "local",
      tokenStorage: { type: "redis", config: { host: "127.0.0.1", port: redisPort } },
      local: { login: "demo" },
      scopes: { "crm:read": "Read the CRM" },
      clients: [{ clientId: CLIENT, redirectUris: [CALLBACK] }],
      // All callers are one address here.
      limits: { token: 1_000_000, authorize: 1_000_000, login: 1_000_000, revoke: 1_000_000 },
    },
  });
  const instances = [];
  for (const port of ports) instances.push(await instance(config(port)));
  t.after(async () => {
    await front.stop();
    await Promise.all(instances.map((one) => one.stop("SIGKILL")));
    store.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  });
  return { front, instances, issuer, port: front.port };
}

/// Sends a form over a connection of its own, so that the proxy chooses an instance each time.
function post(port, path, fields) {
  const body = new URLSearchParams({ client_id: CLIENT, ...fields }).toString();
  const headers = { "content-type": "application/x-www-form-urlencoded", "content-length": Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: "127.0.0.1", path, method: "POST", agent: false, timeout: 30_000, headers }, (answer) => {
      const chunks = [];
      answer.on("data", (chunk) => chunks.push(chunk));
      answer.on("error", reject);
      answer.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        resolve({ status: answer.statusCode, body: text.startsWith("{") ? JSON.parse(text) : {} });
      });
      answer.on("close", () => answer.complete || reject(new Error("the answer broke off")));
    });
    sent.on("timeout", () => sent.destroy(new Error("no answer in time")));
    sent.on("error", reject);
    sent.end(body);
  });
}

/// Asks again what broke off on the way, as clients do; an answer ends it.
async function persist(ask, broken = { times: 0 }) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      broken.times += 1;
      if (tries === 5) throw error;
    }
  }
}

async function login({ issuer, port }, user) {
  const verifier = randomBytes(32).toString("base64url");
  const asked = new URL(`${issuer}/oauth/authorize`);
  asked.search = new URLSearchParams({
    response_type: "code",
    client_id: CLIENT,
    redirect_uri: CALLBACK,
    scope: "crm:read",
    resource: `${issuer}/mcp`,
    state: user,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  });
  const back = await new Browser().authorize(asked, { user });
  const code = back.searchParams.get("code");
  const fields = { grant_type: "authorization_code", code, redirect_uri: CALLBACK, code_verifier: verifier };
  const answer = await post(port, "/oauth/token", fields);
  // A code whose answer was lost is used up (RFC 6749 §4.1.2): begin anew.
  if (answer.status !== 200) throw new Error(`code: ${answer.status} ${JSON.stringify(answer.body)}`);
  return { access: answer.body.access_token, refresh: answer.body.refresh_token, old: [] };
}

const refresh = (port, token) => post(port, "/oauth/token", { grant_type: "refresh_token", refresh_token: token });
const call = (port, access) =>
  modern(port, "tools/call", { name: "codecall:invoke", arguments: { tool: "crm:users_list", input: { limit: 1 } } }, {
    headers: { authorization: `Bearer ${access}` },
  });

test("tokens stay exact across instances while one of them is killed", async (t) => {
  const site = await cluster(t);
  const { port, front, instances } = site;
  const strange = [];
  const revoked = [];
  const counts = { refreshed: 0, called: 0, revoked: 0, logins: 0 };
  const broken = { times: 0 };
  let stop = false;
  t.after(() => (stop = true));

  const worker = async (at) => {
    let held = await persist(() => login(site, `user-${at}`), broken);
    counts.logins += 1;
    for (let step = at; !stop; step += 1) {
      const what = step % 12;
      if (what === 11) {
        const answer = await persist(() => post(port, "/oauth/revoke", { token: held.refresh }), broken);
        if (answer.status !== 200) strange.push({ what: "revoke", answer });
        // Whichever instance is asked next, at once.
        const after = await persist(() => refresh(port, held.refresh), broken);
        if (after.status !== 400 || after.body.error !== "invalid_grant") strange.push({ what: "after revoke", after });
        counts.revoked += 1;
        revoked.push(held);
        held = await persist(() => login(site, `user-${at}`), broken);
        counts.logins += 1;
      } else if (what % 3 === 0) {
        // Asked again after a lost answer, it gives the same successor: no family is lost.
        const answer = await persist(() => refresh(port, held.refresh), broken);
        if (answer.status !== 200 || answer.body.refresh_token === held.refresh) {
          strange.push({ what: "refresh", answer });
          return held;
        }
        held = { access: answer.body.access_token, refresh: answer.body.refresh_token, old: [...held.old, held.refresh] };
        counts.refreshed += 1;
      } else {
        const answer = await persist(() => call(port, held.access), broken);
        if (answer.status !== 200 || !answer.message?.result?.structuredContent?.result) strange.push({ what: "call", answer });
        counts.called += 1;
      }
    }
    return held;
  };
  const load = Array.from({ length: 12 }, (_, at) => worker(at));
  const until = async (count) => {
    const deadline = Date.now() + 120_000;
    while (counts.refreshed < count) {
      assert.ok(Date.now() < deadline, `${counts.refreshed} of ${count} refreshes; ${JSON.stringify(strange.slice(0, 3))}`);
      await new Promise((done) => setTimeout(done, 10));
    }
  };
  await until(80);
  instances[0].child.kill("SIGKILL");
  await until(counts.refreshed + 80);
  stop = true;
  const families = await Promise.all(load);

  assert.deepEqual(strange.slice(0, 3), []);
  assert.ok(front.counts.every((count) => count > 50), `both were asked: ${front.counts}`);
  assert.ok(counts.revoked >= 12 && counts.called > 100, JSON.stringify(counts));
  for (const [at, { access, refresh: token, old }] of families.entries()) {
    const next = await refresh(port, token);
    assert.equal(next.status, 200, `family ${at} lives`);
    assert.equal((await call(port, access)).status, 200);
    if (at % 2 === 0) continue;
    // A token that was rotated long ago is stolen: it gives nothing, and ends its family.
    assert.equal((await refresh(port, next.body.refresh_token)).status, 200);
    assert.equal((await refresh(port, old[0] ?? token)).body.error, "invalid_grant");
    assert.equal((await refresh(port, next.body.refresh_token)).body.error, "invalid_grant");
  }
  for (const { refresh: token, access } of revoked) {
    assert.equal((await refresh(port, token)).body.error, "invalid_grant");
    assert.ok([token, access].every((one) => one.length > 20));
  }
  // Access tokens of a family that is revoked are refused after 5 seconds at the latest.
  const deadline = Date.now() + 6_000;
  for (const { access } of revoked) {
    let answer;
    do answer = await call(port, access);
    while (answer.status === 200 && Date.now() < deadline);
    assert.equal(answer.status, 401);
  }
});

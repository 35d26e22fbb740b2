// Two instances behind a plain proxy: sessions of either are served by both, and a killed one takes nothing else along.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { cluster as shared, freePort, instance } from "./instances.mjs";
import { proxy } from "./proxy.mjs";
import { redis } from "./redis.mjs";
import { end, inSession, modern, open } from "./rpc.mjs";

const LEDGER = join(import.meta.dirname, "ledger.mjs");

async function cluster(t) {
  const folder = await mkdtemp(join(tmpdir(), "ledger-"));
  const file = join(folder, "ledger.txt");
  await writeFile(file, "");
  const redisPort = await freePort();
  const store = await redis(redisPort, folder);
  const config = {
    http: { cluster: shared(redisPort) },
    codecall: { enabled: false },
    apps: {
      crm: { builtin: "crm" },
      ledger: { command: process.execPath, args: [LEDGER, file] },
    },
  };
  const instances = await Promise.all([instance(config), instance(config)]);
  const front = await proxy(instances.map((one) => one.port));
  t.after(async () => {
    await front.stop();
    await Promise.all(instances.map((one) => one.stop()));
    store.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  });
  const lines = async () => (await readFile(file, "utf8")).split("\n").filter(Boolean);
  return { instances, front, port: front.port, lines };
}

const add = (id, wait) => ({ name: "ledger:add", arguments: { id, ...(wait ? { wait } : {}) } });

/// Opens a session; one that breaks off on the way had no effect and is begun again.
async function again(port, tries = 5) {
  try {
    return await open(port);
  } catch (error) {
    if (tries === 0) throw error;
    return again(port, tries - 1);
  }
}

test("a session is served whichever instance gets the request", async (t) => {
  const { port, front, lines } = await cluster(t);
  const sessions = await Promise.all(Array.from({ length: 8 }, () => open(port)));
  for (let round = 0; round < 5; round++) {
    for (const [at, session] of sessions.entries()) {
      const answer = await inSession(port, session, "tools/call", add(`${at}-${round}`));
      assert.equal(answer.status, 200, JSON.stringify(answer));
      assert.equal(answer.message.result.structuredContent.id, `${at}-${round}`);
    }
  }
  for (const session of sessions) {
    assert.equal((await end(port, session)).status, 204);
    assert.equal((await inSession(port, session, "tools/list")).status, 404);
  }
  const done = await lines();
  assert.equal(done.length, 40);
  assert.equal(new Set(done).size, 40);
  assert.ok(front.counts.every((count) => count > 20), `both were asked: ${front.counts}`);
});

test("kill -9 of one instance under load: no effect twice, none lost, sessions go on or are not found", async (t) => {
  const { port, instances, lines } = await cluster(t);
  const sessions = await Promise.all(Array.from({ length: 16 }, () => open(port)));
  const acknowledged = [];
  const unknown = [];
  const strange = [];
  let reopened = 0;
  let number = 0;
  let stop = false;
  t.after(() => (stop = true));

  const worker = async (at) => {
    let session = sessions[at];
    while (!stop) {
      const id = `${at}-${number++}`;
      const old = at % 2 === 0;
      let answer;
      try {
        const call = add(id, 5);
        answer = await (old ? inSession(port, session, "tools/call", call) : modern(port, "tools/call", call));
      } catch {
        unknown.push(id);
        continue;
      }
      if (answer.status === 200 && answer.message?.result?.structuredContent?.id === id) {
        acknowledged.push(id);
      } else if (answer.status === 404 && answer.message?.error?.code === -32000) {
        // The protocol's word for a session that is gone (MCP 2025-11-25, transports): begin a new one.
        session = await again(port);
        reopened += 1;
      } else if (answer.status === 502 && answer.message?.error?.code === -32603) {
        unknown.push(id);
      } else {
        strange.push({ id, answer });
      }
    }
  };
  const load = Array.from({ length: 16 }, (_, at) => worker(at));
  const until = async (count) => {
    const deadline = Date.now() + 60_000;
    while (acknowledged.length < count) {
      assert.ok(Date.now() < deadline, `${acknowledged.length} of ${count} calls came back`);
      await new Promise((done) => setTimeout(done, 10));
    }
  };
  await until(300);
  instances[0].child.kill("SIGKILL");
  await until(acknowledged.length + 300);
  stop = true;
  await Promise.all(load);

  assert.deepEqual(strange, []);
  const done = await lines();
  const times = new Map();
  for (const id of done) times.set(id, (times.get(id) ?? 0) + 1);
  assert.deepEqual([...times].filter(([, count]) => count > 1), [], "an effect happened twice");
  assert.deepEqual(acknowledged.filter((id) => !times.has(id)), [], "an answer without its effect");
  // What is not known to have happened was under way in the killed instance: at most one call of each worker.
  assert.ok(unknown.length <= 16, `${unknown.length} calls without an answer`);
  assert.ok(reopened >= 1, "sessions of the killed instance were not found, and begun anew");
  assert.ok(reopened <= 8, `${reopened} sessions were lost, more than the killed instance can have had`);
});

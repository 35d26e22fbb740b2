// Shapes of results that two instances share through a real Redis.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { cluster as shared, freePort, instance } from "./instances.mjs";
import { redis } from "./redis.mjs";
import { inSession, open } from "./rpc.mjs";

const PEOPLE = join(import.meta.dirname, "people.mjs");
const ANSWER = JSON.stringify([{ id: 70_421, email: "ada.lovelace@example.com", tags: ["confidential-7"] }]);
/// Values, as text, that must not be in any record.
const VALUES = ["70421", "ada.lovelace", "example.com", "confidential"];

/// Sends one command to Redis; the answer as it came, whole once `until` says so.
async function ask(port, words, until = (answer) => answer.endsWith("\r\n")) {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  const parts = words.map((word) => (Buffer.isBuffer(word) ? word : Buffer.from(word)));
  socket.write(`*${parts.length}\r\n`);
  for (const part of parts) socket.write(Buffer.concat([Buffer.from(`$${part.length}\r\n`), part, Buffer.from("\r\n")]));
  let answer = "";
  for await (const data of socket) {
    answer += data.toString("latin1");
    if (until(answer)) break;
  }
  socket.destroy();
  return answer;
}

/// Names of the records of shapes.
async function records(port) {
  const answer = await ask(port, ["KEYS", "*shape:*"], (all) => all.split("\r\n").length >= 2 + 2 * Number(all.match(/^\*(\d+)/)?.[1] ?? 1e9));
  return answer.split("\r\n").filter((line) => line.includes("shape:"));
}

async function site(t) {
  const folder = await mkdtemp(join(tmpdir(), "shapes-"));
  const redisPort = await freePort();
  const store = await redis(redisPort, folder);
  const config = {
    http: { cluster: shared(redisPort) },
    auth: { tokenStorage: { type: "redis", config: { host: "127.0.0.1", port: redisPort } } },
    apps: { people: { command: process.execPath, args: [PEOPLE] } },
  };
  const instances = [await instance(config), await instance(config)];
  t.after(async () => {
    await Promise.all(instances.map((one) => one.stop()));
    store.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  });
  const clients = await Promise.all(
    instances.map(async ({ port }) => {
      const session = await open(port);
      const call = async (name, args) => {
        const answer = await inSession(port, session, "tools/call", { name, arguments: args });
        return answer.message.result.structuredContent;
      };
      const find = async (answer) => {
        const body = await call("codecall:invoke", { tool: "people:find", input: { answer } });
        assert.equal(body.status, "ok", JSON.stringify(body));
      };
      const observed = async () => (await call("codecall:describe", { toolNames: ["people:find"] })).tools[0].observedOutput;
      return { find, observed };
    }),
  );
  return { redisPort, clients };
}

/// Waits for a value that is there; an instance exchanges what it learned every 5 s.
async function until(what, value) {
  const deadline = Date.now() + 40_000;
  for (;;) {
    const found = await value();
    if (found) return found;
    assert.ok(Date.now() < deadline, `never: ${what}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

test("an answer that one instance saw teaches the other its shape, and no value of it is stored", async (t) => {
  const { redisPort, clients: [one, two] } = await site(t);
  assert.equal(await two.observed(), undefined);
  await one.find(ANSWER);
  const text = JSON.stringify(await until("the other instance knows", two.observed));
  for (const name of ["id", "email", "tags", "integer"]) assert.match(text, new RegExp(`"${name}"`), text);
  assert.equal(text, JSON.stringify(await one.observed()), "both say the same");
  const names = await records(redisPort);
  assert.equal(names.length, 1);
  const record = await ask(redisPort, ["GET", names[0]]);
  assert.match(record, /email/);
  for (const value of VALUES) assert.ok(!(text + names[0] + record).includes(value), value);
});

test("a Redis that was emptied does no harm: what is learned next is shared again", async (t) => {
  const { redisPort, clients: [one, two] } = await site(t);
  await one.find(ANSWER);
  await until("the other instance knows", two.observed);
  assert.equal(await ask(redisPort, ["FLUSHALL"]), "+OK\r\n");
  assert.ok(await one.observed());
  assert.ok(await two.observed());
  await two.find('[{"id":1,"phone":"555"}]');
  await until("the other instance learns on", async () => JSON.stringify(await one.observed()).includes("phone"));
  assert.equal((await records(redisPort)).length, 1);
});

test("a record of absurd size or no sense is ignored, and both instances serve on", async (t) => {
  const { redisPort, clients: [one, two] } = await site(t);
  await one.find(ANSWER);
  await until("the other instance knows", two.observed);
  const [name] = await records(redisPort);
  const answer = await ask(redisPort, ["GET", name]);
  const record = JSON.parse(answer.slice(answer.indexOf("\r\n")));
  // Right but for its size, and wrong in other ways.
  const long = JSON.stringify({ ...record, n: 4_000_000, pad: "7".repeat(300 * 1024) });
  const others = [Buffer.alloc(64 * 1024 * 1024, "7"), "[".repeat(1_000_000), '{"s":{},"n":-1}'];
  for (const record of [long, ...others]) {
    assert.equal(await ask(redisPort, ["SET", name, record]), "+OK\r\n");
    await one.find(ANSWER);
    await two.find(ANSWER);
    assert.match(JSON.stringify(await one.observed()), /email/);
    assert.match(JSON.stringify(await two.observed()), /email/);
    for (const { observed } of [one, two]) assert.ok((await observed()).answers < 100);
    await until("the record is one of theirs again", async () => {
      const now = await ask(redisPort, ["STRLEN", name]);
      return Number(now.slice(1)) < 10_000 && (await ask(redisPort, ["GET", name])).includes("email");
    });
  }
  await two.find('[{"id":1,"fax":"555"}]');
  assert.match(JSON.stringify(await two.observed()), /fax/);
});

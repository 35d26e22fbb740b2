// Plans with calls of older servers that ask: the call stays open at the instance that holds it, and the answer is brought there, whichever of two
// instances with one Redis it reaches.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { cluster as shared, freePort, instance } from "./instances.mjs";
import { redis } from "./redis.mjs";
import { OLD, modern } from "./rpc.mjs";

const ASKING = join(import.meta.dirname, "asking.mjs");
const SCRIPT = `
  const id = codecallContext.id;
  await callTool('desk:add', { id: id + ' before' });
  let who;
  try { who = await callTool('desk:order', { id }) } catch (error) { who = error.code }
  await callTool('desk:add', { id: id + ' after' });
  return who;
`;

async function site(t) {
  const folder = await mkdtemp(join(tmpdir(), "held-"));
  const file = join(folder, "steps");
  await writeFile(file, "");
  const redisPort = await freePort();
  const store = await redis(redisPort, folder);
  const config = {
    http: { cluster: shared(redisPort) },
    auth: { mode: "public", tokenStorage: { type: "redis", config: { host: "127.0.0.1", port: redisPort } } },
    executions: { store: "redis", lease: "3s" },
    apps: { desk: { command: process.execPath, args: [ASKING, file] } },
  };
  const instances = [await instance(config), await instance(config)];
  t.after(async () => {
    await Promise.all(instances.map((one) => one.stop("SIGKILL")));
    store.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  });
  /// The steps of a plan, each with the process of the server that made it.
  const steps = async (id) => {
    const lines = (await readFile(file, "utf8")).split("\n").filter((line) => line.split(" ")[2] === id);
    return lines.map((line) => ({ pid: line.split(" ")[0], step: line.slice(line.indexOf(" ") + 1) }));
  };
  return { instances, steps };
}

/// Runs a plan at an instance, or goes on with it.
async function execute({ port }, id, more) {
  const params = { name: "codecall:execute", arguments: { script: SCRIPT, context: { id } }, ...more };
  return modern(port, "tools/call", params, { capabilities: { elicitation: {} } });
}

const answering = ({ inputRequests, requestState }, name) => {
  const keys = Object.keys(inputRequests);
  assert.deepEqual(keys.length, 1, JSON.stringify(inputRequests));
  return { requestState, inputResponses: { [keys[0]]: { action: "accept", content: { name } } } };
};

async function question(instance, id) {
  const { status, message } = await execute(instance, id);
  assert.equal(status, 200, JSON.stringify(message));
  assert.equal(message.result.resultType, "input_required", JSON.stringify(message));
  assert.match(JSON.stringify(message.result.inputRequests), new RegExp(`Who orders ${id}`));
  return message.result;
}

const names = (steps) => steps.map(({ step }) => step);

test("the answer to a plan's question is brought to the instance that holds the call, and counts once", async (t) => {
  const { instances, steps } = await site(t);
  for (const [at, id] of ["a", "b", "c", "d"].entries()) {
    // Begun here, answered there, and the other way round.
    const [here, there] = [instances[at % 2], instances[1 - (at % 2)]];
    const asks = await question(here, id);
    assert.deepEqual(names(await steps(id)), [`add ${id} before`, `order ${id}`]);
    const retry = answering(asks, `Ada ${id}`);
    const { status, message } = await execute(there, id, retry);
    assert.equal(status, 200, JSON.stringify(message));
    assert.equal(message.result.structuredContent?.result, `Ada ${id}`, JSON.stringify(message));
    const made = await steps(id);
    assert.deepEqual(names(made), [`add ${id} before`, `order ${id}`, `accept ${id}`, `add ${id} after`]);
    assert.equal(new Set(made.slice(0, 3).map(({ pid }) => pid)).size, 1, "the call that was open got the answer");
    // The same answer again, at each of them: it was used.
    for (const instance of instances) {
      const again = await execute(instance, id, retry);
      assert.equal(again.message.result?.structuredContent?.error?.code, "VALIDATION_ERROR", JSON.stringify(again.message));
    }
    assert.equal((await steps(id)).length, 4, "nothing is done twice");
  }
});

test("the question of a plan whose call was lost with its instance is said to have expired, and no effect is repeated", async (t) => {
  const { instances, steps } = await site(t);
  const asks = await question(instances[0], "gone");
  await instances[0].stop("SIGKILL");
  const retry = answering(asks, "Ada");
  const deadline = Date.now() + 20_000;
  let answer;
  // Until Redis has noticed that nobody listens there any more.
  do answer = await execute(instances[1], "gone", retry);
  while (answer.status !== 200 && Date.now() < deadline);
  assert.equal(answer.message.result?.structuredContent?.result, "INPUT_EXPIRED", JSON.stringify(answer.message));
  assert.deepEqual(names(await steps("gone")), ["add gone before", "order gone", "add gone after"]);
});

/// Runs a plan in the background, and waits until its call asks: the task.
async function waiting({ port }, id) {
  const params = { name: "codecall:execute", arguments: { script: SCRIPT, context: { id }, detach: true } };
  const { message } = await modern(port, "tools/call", params);
  const { executionId } = message.result.structuredContent;
  return task({ port }, executionId, "input_required");
}

async function task({ port }, taskId, status) {
  const deadline = Date.now() + 20_000;
  for (;;) {
    const { message } = await modern(port, "tasks/get", { taskId }, TASKS);
    if (message.result?.status === status) return message.result;
    assert.ok(Date.now() < deadline, JSON.stringify(message));
  }
}

const TASKS = { capabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } };

const done = (id) => [`add ${id} before`, `order ${id}`, `accept ${id}`, `add ${id} after`];

test("an update of a task is brought to the instance that holds the call of its plan", async (t) => {
  const { instances, steps } = await site(t);
  for (const [at, id] of ["e", "f"].entries()) {
    const [here, there] = [instances[at % 2], instances[1 - (at % 2)]];
    const { taskId, inputRequests } = await waiting(here, id);
    const [key] = Object.keys(inputRequests);
    const inputResponses = { [key]: { action: "accept", content: { name: `Ada ${id}` } } };
    const { status, message } = await modern(there.port, "tasks/update", { taskId, inputResponses }, TASKS);
    assert.ok(status === 200 && !message.error, JSON.stringify(message));
    const { result } = await task(there, taskId, "completed");
    assert.equal(result.structuredContent.result, `Ada ${id}`, JSON.stringify(result));
    assert.deepEqual(names(await steps(id)), done(id));
  }
});

/// Goes on with a plan in a session whose client answers what it is asked: the result.
async function resumed({ url }, resume, name) {
  const headers = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  const send = (message) => fetch(url, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", ...message }) });
  const params = { protocolVersion: OLD, capabilities: { elicitation: {} }, clientInfo: { name: "held", version: "1" } };
  const opened = await send({ id: 0, method: "initialize", params });
  headers["mcp-session-id"] = opened.headers.get("mcp-session-id");
  headers["mcp-protocol-version"] = OLD;
  await send({ method: "notifications/initialized" });
  const call = { name: "codecall:execute", arguments: { resume } };
  const answer = await send({ id: 1, method: "tools/call", params: call });
  let text = "";
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const lines = text.split("\n");
    text = lines.pop();
    for (const line of lines.filter((line) => /^data: ?\{/.test(line))) {
      const message = JSON.parse(line.replace(/^data: ?/, ""));
      if (message.method === "elicitation/create") {
        await send({ id: message.id, result: { action: "accept", content: { name } } });
      } else if (message.id === 1) {
        return message.result;
      }
    }
  }
  assert.fail(`no answer: ${text}`);
}

test("a plan that a session takes on goes on at the instance that holds its call", async (t) => {
  const { instances, steps } = await site(t);
  for (const [at, id] of ["g", "h"].entries()) {
    const [here, there] = [instances[at % 2], instances[1 - (at % 2)]];
    // A client that cannot be asked.
    const { message } = await modern(here.port, "tools/call", {
      name: "codecall:execute",
      arguments: { script: SCRIPT, context: { id } },
    });
    const { error, executionId } = message.result.structuredContent;
    assert.equal(error.code, "INPUT_REQUIRED", JSON.stringify(message));
    const result = await resumed(there, executionId, `Ada ${id}`);
    assert.equal(result.structuredContent?.result, `Ada ${id}`, JSON.stringify(result));
    assert.deepEqual(names(await steps(id)), done(id));
  }
});

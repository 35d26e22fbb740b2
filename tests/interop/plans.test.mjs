// Plans that ask, need an approval, sample, run in the background and are resumed. Each scenario runs with every official client and FastMCP's, in front of
// a FastMCP server in both eras and of server-everything. The FastMCP server notes each step, so that a repeated effect shows.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createInterface } from "node:readline";

import { freePort } from "./instances.mjs";
import { modernOnly } from "./modern.mjs";
import { CLIENTS, close } from "./plan-clients.mjs";
import { modern } from "./rpc.mjs";
import { gatewright, ready, serve } from "./support.mjs";

const { TOOLS, PYTHON } = process.env;
const names = Object.keys(CLIENTS);
/// API keys by client: each client is a caller of its own.
const keys = {};
const ends = [];
let folder, file, gateway;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "plans-"));
  file = join(folder, "steps");
  await writeFile(file, "");
  const everything = join(TOOLS, "@modelcontextprotocol", "server-everything", "dist", "index.js");
  const port = await freePort();
  const [desk] = await Promise.all([
    server(PYTHON, [join(import.meta.dirname, "fastmcp_desk.py"), file], /running on http:\S+:(\d+)/),
    server(join(TOOLS, ".bin", "node"), [everything, "streamableHttp"], /listening on port (\d+)/, { PORT: port }),
  ]);
  // The same process as a server of 2026-07-28.
  const front = await modernOnly(desk);
  ends.push(front.stop);
  gateway = await serve({
    apps: {
      desk: { url: `http://127.0.0.1:${desk}/mcp`, tools: { send: { approval: "always" } } },
      front: { url: front.url },
      everything: { url: `http://127.0.0.1:${port}/mcp` },
    },
    auth: { mode: "orchestrated", apiKeys: names.map(key) },
  });
  ends.push(gateway.stop, close);
  await ready(gateway.url);
});

after(async () => {
  for (const end of ends.reverse()) await end();
  if (folder) await rm(folder, { recursive: true, force: true });
});

/// Starts a server; returns the port that it names once it listens.
async function server(command, args, listens, env = {}) {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "ignore", "pipe"] });
  ends.push(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  const said = [];
  return new Promise((found, failed) => {
    createInterface({ input: child.stderr })
      .on("line", (line) => {
        said.push(line);
        const port = line.match(listens)?.[1];
        if (port) found(Number(port));
      })
      .on("close", () => failed(new Error(`${args[0]} ended before it listened:\n${said.join("\n")}`)));
  });
}

/// Generates the API key of a client; returns its entry in the configuration.
function key(name, at) {
  const made = execFileSync(gatewright, ["api-key", "generate", `client-${at}`, "--scope", "mcp", "--json", "--no-expiry"]);
  const { key, entry } = JSON.parse(made);
  keys[name] = key;
  return entry;
}

/// A client, with its own key or that of `owner`.
function user(name, owner = name) {
  const headers = { authorization: `Bearer ${keys[owner]}` };
  const execute = (args, answers = {}) =>
    CLIENTS[name].execute({ url: gateway.url, headers, arguments: args, ...answers });
  return { execute, headers };
}

const YES = { form: { action: "accept", content: { value: "Ada", name: "Ada", approve: true } } };
const NO = { form: { action: "decline" } };
const LEAVES = { form: { action: "leave" } };
const MODEL = { sample: "a sample" };

/// A plan with an effect before and after a call. Its result is that of the call, or its error's code.
const SCRIPT = `
  const { id, tool, input } = codecallContext;
  await callTool('desk:add', { step: id + ' before' });
  let said;
  try {
    said = await callTool(tool, input);
  } catch (error) {
    console.log(error.message);
    said = error.code;
  }
  await callTool('desk:add', { step: id + ' after' });
  return said.result ?? said;
`;
const plan = (id, tool, input = { id }) => ({ script: SCRIPT, context: { id, tool, input } });
const refund = (id) => plan(id, "desk:send", { step: `${id} sent` });

async function steps(id) {
  const lines = (await readFile(file, "utf8")).split("\n").filter((line) => line.startsWith(`${id} `));
  return lines.map((line) => line.slice(id.length + 1));
}

function isResult({ body }, result) {
  assert.equal(body?.status, "ok", JSON.stringify(body));
  if (result instanceof RegExp) assert.match(JSON.stringify(body.result), result);
  else assert.equal(body.result, result, JSON.stringify(body));
}

/// Asserts that a plan waits for a client that can be asked; returns the id of its execution.
function isWaiting({ asked, body }, code) {
  assert.equal(body.error?.code, code, JSON.stringify(body));
  assert.deepEqual(asked, []);
  const [id] = JSON.stringify(body).match(/exe_[\w-]+/) ?? [];
  assert.ok(id, JSON.stringify(body));
  return id;
}

/// Begins a plan in the background; returns the id of its execution.
async function begun(client, args) {
  const { body } = await client.execute({ ...args, detach: true });
  assert.equal(body.status, "running", JSON.stringify(body));
  return body.executionId;
}

/// Resumes an execution until it has ended; returns its result and all that was asked.
async function ended(client, id, answers) {
  const asked = [];
  for (const deadline = Date.now() + 30_000; Date.now() < deadline; ) {
    const result = await client.execute({ resume: id }, answers);
    asked.push(...result.asked);
    if (result.body.status !== "running") return { asked, body: result.body };
  }
  throw new Error(`${id} never ended`);
}

/// Tools with a form: their server, name, arguments for the plan of an id, question, and results if the form is accepted and declined.
const ASKING = [
  ["a FastMCP server", "desk:order", (id) => ({ id }), /^Who orders /, "Ada", "decline"],
  ["a FastMCP server of 2026-07-28", "front:confirm", (id) => ({ id }), /^Who confirms /, "Ada", "decline"],
  ["server-everything", "everything:trigger-elicitation-request", () => ({}), /^Please provide inputs/, /Name: Ada/, /declined/],
];
/// Tools that sample: their server, name and arguments.
const SAMPLING = [
  ["a FastMCP server", "desk:brief", (id) => ({ id })],
  ["a FastMCP server of 2026-07-28", "front:digest", (id) => ({ id })],
  ["server-everything", "everything:trigger-sampling-request", (id) => ({ prompt: `Sum up ${id}` })],
];
/// Steps of a plan with a call of such a tool. server-everything notes none.
const around = (tool, ...noted) => ["before", ...(tool.startsWith("everything:") ? [] : ["asks", ...noted]), "after"];

/// Scenarios for every client, by what the client does. They get the client, an id for the plan, and another client of the same caller.
const SCENARIOS = {};

for (const [where, tool, input, question, yes, no] of ASKING) {
  for (const [does, answers, said, noted] of [["accepts", YES, yes, "Ada"], ["declines", NO, no, "decline"]]) {
    SCENARIOS[`${does} a form of ${where} in a plan, which goes on and repeats nothing`] = async (client, id) => {
      const result = await client.execute(plan(id, tool, input(id)), answers);
      isResult(result, said);
      assert.equal(result.asked.length, 1, JSON.stringify(result.asked));
      assert.match(result.asked[0], question);
      assert.deepEqual(await steps(id), around(tool, noted));
    };
  }
}

for (const [where, tool, input] of SAMPLING) {
  SCENARIOS[`lets its model answer ${where} in a plan, which goes on and repeats nothing`] = async (client, id) => {
    const result = await client.execute(plan(id, tool, input(id)), MODEL);
    isResult(result, /a sample/);
    assert.equal(result.asked.length, 1, JSON.stringify(result.asked));
    assert.match(result.asked[0], /Sum up/);
    assert.deepEqual(await steps(id), around(tool, "a sample"));
  };
}

Object.assign(SCENARIOS, {
  "approves a call of a plan, which is made once": async (client, id) => {
    const result = await client.execute(refund(id), YES);
    isResult(result, `${id} sent`);
    assert.equal(result.asked.length, 1, JSON.stringify(result.asked));
    assert.match(result.asked[0], /^Approve the call of `desk:send`\?/);
    assert.deepEqual(await steps(id), ["before", "sent", "after"]);
  },

  "denies a call of a plan, which catches APPROVAL_DENIED and goes on": async (client, id) => {
    const result = await client.execute(refund(id), NO);
    isResult(result, "APPROVAL_DENIED");
    assert.equal(result.asked.length, 1, JSON.stringify(result.asked));
    assert.deepEqual(await steps(id), ["before", "after"]);
  },

  "answers questions of both eras and an approval of a plan one after the other, and repeats nothing": async (client, id) => {
    const script = `
      const { id } = codecallContext;
      await callTool('desk:order', { id });
      await callTool('desk:add', { step: id + ' between' });
      await callTool('front:confirm', { id });
      await callTool('desk:send', { step: id + ' sent' });
      return 'done';`;
    const result = await client.execute({ script, context: { id } }, YES);
    isResult(result, "done");
    assert.deepEqual(result.asked.map((one) => one.split(" ", 2).join(" ")), ["Who orders", "Who confirms", "Approve the"]);
    assert.deepEqual(await steps(id), ["asks", "Ada", "between", "asks", "Ada", "sent"]);
  },

  "answers two questions of one call of a plan, which is made once": async (client, id) => {
    const result = await client.execute(plan(id, "desk:haggle"), YES);
    isResult(result, `${id} Ada and Ada`);
    assert.deepEqual(result.asked, [`Who offers ${id}?`, `Who takes ${id}?`]);
    assert.deepEqual(await steps(id), ["before", "asks", "asks", "Ada and Ada", "after"]);
  },

  "answers the questions of calls that a plan makes at the same time, each once": async (client, id) => {
    const script = `
      const { id } = codecallContext;
      const calls = ['a', 'b'].map((one) => callTool('front:confirm', { id: id + ' ' + one }));
      await Promise.all([...calls, callTool('desk:send', { step: id + ' sent' })]);
      return 'done';`;
    const result = await client.execute({ script, context: { id } }, YES);
    isResult(result, "done");
    assert.deepEqual(result.asked.map((one) => one.split("\n")[0]).sort(), [
      "Approve the call of `desk:send`?",
      `Who confirms ${id} a?`,
      `Who confirms ${id} b?`,
    ]);
    assert.deepEqual((await steps(id)).sort(), ["a Ada", "a asks", "b Ada", "b asks", "sent"]);
  },

  "resumes a plan whose call is held open for another client, and answers the question of an older server": async (client, id) => {
    const params = { name: "codecall:execute", arguments: plan(id, "desk:order") };
    const { message } = await modern(gateway.url.port, "tools/call", params, { headers: client.headers, capabilities: { elicitation: { form: {} } } });
    assert.equal(message.result?.resultType, "input_required", JSON.stringify(message));
    const result = await client.execute({ resume: message.result._meta["gatewright/execution"] }, YES);
    isResult(result, "Ada");
    assert.deepEqual(result.asked, [`Who orders ${id}?`]);
    assert.deepEqual(await steps(id), ["before", "asks", "Ada", "after"]);
  },

  "leaves while its person is asked for an approval: the plan waits, and another client of the caller approves": async (client, id, other) => {
    const { asked, body } = await client.execute(refund(id), LEAVES);
    assert.equal(body, undefined, JSON.stringify(body));
    const [execution] = asked[0].match(/exe_[\w-]+/);
    isResult(await ended(other, execution, YES), `${id} sent`);
    assert.deepEqual(await steps(id), ["before", "sent", "after"]);
  },

  "begins a plan in the background, reads that it runs, and gets its result as often as it asks": async (client, id) => {
    const execution = await begun(client, plan(id, "desk:hold"));
    const { body } = await client.execute({ resume: execution });
    assert.deepEqual([body.status, body.executionId], ["running", execution]);
    await client.execute({ script: `await callTool('desk:release', { id: codecallContext.id })`, context: { id } });
    isResult(await ended(client, execution), `${id} released`);
    isResult(await client.execute({ resume: execution }), `${id} released`);
    assert.deepEqual(await steps(id), ["before", "held", "released", "after"]);
  },

  "answers the question of a plan in the background when it resumes it": async (client, id) => {
    const execution = await begun(client, plan(id, "front:confirm"));
    const result = await ended(client, execution, YES);
    isResult(result, "Ada");
    assert.equal(result.asked.length, 1, JSON.stringify(result.asked));
    assert.match(result.asked[0], /^Who confirms /);
    assert.deepEqual(await steps(id), ["before", "asks", "Ada", "after"]);
  },

  "approves a call of a plan in the background when it resumes it": async (client, id) => {
    const execution = await begun(client, refund(id));
    const result = await ended(client, execution, YES);
    isResult(result, `${id} sent`);
    assert.equal(result.asked.length, 1, JSON.stringify(result.asked));
    assert.deepEqual(await steps(id), ["before", "sent", "after"]);
  },

  "cannot be asked for a form: the plan waits with INPUT_REQUIRED, and another client of the caller answers": async (client, id, other) => {
    const execution = isWaiting(await client.execute(plan(id, "front:confirm")), "INPUT_REQUIRED");
    assert.deepEqual(await steps(id), ["before", "asks"]);
    assert.equal(isWaiting(await client.execute({ resume: execution }), "INPUT_REQUIRED"), execution);
    const result = await other.execute({ resume: execution }, YES);
    isResult(result, "Ada");
    assert.equal(result.asked.length, 1, JSON.stringify(result.asked));
    isResult(await client.execute({ resume: execution }), "Ada");
    assert.deepEqual(await steps(id), ["before", "asks", "Ada", "after"]);
  },

  "cannot sample: the plan waits with INPUT_REQUIRED, and another client's model answers": async (client, id, other) => {
    const execution = isWaiting(await client.execute(plan(id, "front:digest"), YES), "INPUT_REQUIRED");
    isResult(await other.execute({ resume: execution }, MODEL), "a sample");
    assert.deepEqual(await steps(id), ["before", "asks", "a sample", "after"]);
  },

  "cannot be asked for an approval: the plan waits with APPROVAL_REQUIRED, and another client of the caller approves": async (client, id, other) => {
    const execution = isWaiting(await client.execute(refund(id)), "APPROVAL_REQUIRED");
    assert.deepEqual(await steps(id), ["before"]);
    isResult(await other.execute({ resume: execution }, YES), `${id} sent`);
    assert.deepEqual(await steps(id), ["before", "sent", "after"]);
  },

  "cannot be asked by a server of the older era: the plan waits with INPUT_REQUIRED, and another client answers the open call": async (client, id, other) => {
    const execution = isWaiting(await client.execute(plan(id, "desk:order")), "INPUT_REQUIRED");
    assert.deepEqual(await steps(id), ["before", "asks"]);
    const result = await other.execute({ resume: execution }, YES);
    isResult(result, "Ada");
    assert.deepEqual(result.asked, [`Who orders ${id}?`]);
    assert.deepEqual(await steps(id), ["before", "asks", "Ada", "after"]);
  },

  "answers a server of the older era that asks in the background when it resumes the plan": async (client, id) => {
    const execution = await begun(client, plan(id, "desk:order"));
    const result = await ended(client, execution, YES);
    isResult(result, "Ada");
    assert.deepEqual(result.asked, [`Who orders ${id}?`]);
    assert.deepEqual(await steps(id), ["before", "asks", "Ada", "after"]);
  },
});

/// Scenarios for clients that support tasks.
const FOLLOWING = {
  "follows a plan in the background as a task, and answers its question with tasks/update": async (client, id) => {
    const result = await client.execute({ ...plan(id, "front:confirm"), detach: true }, { ...YES, tasks: true });
    isResult(result, "Ada");
    const [question] = result.asked.filter((one) => one.startsWith("Who confirms "));
    assert.deepEqual(
      result.asked.filter((one) => one !== "working"),
      ["input_required", question, "completed"],
    );
    assert.deepEqual(await steps(id), ["before", "asks", "Ada", "after"]);
  },

  "follows a plan in the background as a task, and approves its call with tasks/update": async (client, id) => {
    const result = await client.execute({ ...refund(id), detach: true }, { ...YES, tasks: true });
    isResult(result, `${id} sent`);
    assert.deepEqual(await steps(id), ["before", "sent", "after"]);
  },
};

test("a plan in the background is a task of its caller alone, asks with input_required, and goes on after tasks/update", async () => {
  const [, caller, stranger] = names;
  const extensions = { "io.modelcontextprotocol/tasks": {} };
  const send = async (method, params, owner = caller) => {
    const headers = { authorization: `Bearer ${keys[owner]}`, ...(params.taskId && { "mcp-name": params.taskId }) };
    const capabilities = { elicitation: { form: {} }, extensions };
    const { message } = await modern(gateway.url.port, method, params, { headers, capabilities });
    return message;
  };
  const reads = async (taskId, wanted) => {
    for (const deadline = Date.now() + 30_000; Date.now() < deadline; ) {
      const { result } = await send("tasks/get", { taskId });
      if (result.status === wanted) return result;
      assert.equal(result.status, "working", JSON.stringify(result));
    }
    throw new Error(`never ${wanted}`);
  };
  for (const [id, args, made, content] of [
    ["task-form", plan("task-form", "front:confirm"), ["before", "asks"], { name: "Ada" }],
    ["task-approval", refund("task-approval"), ["before"], { approve: true }],
  ]) {
    const created = await send("tools/call", { name: "codecall:execute", arguments: { ...args, detach: true } });
    assert.equal(created.result?.resultType, "task", JSON.stringify(created));
    const { taskId } = created.result;
    const { inputRequests } = await reads(taskId, "input_required");
    const [[question, request], ...others] = Object.entries(inputRequests);
    assert.deepEqual(others, []);
    assert.equal(request.method, "elicitation/create");
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      const answers = method === "tasks/update" && { inputResponses: { [question]: { action: "decline" } } };
      const { error } = await send(method, { taskId, ...answers }, stranger);
      assert.match(error?.message ?? "", /no such execution/, method);
    }
    const resumed = await send("tools/call", { name: "codecall:execute", arguments: { resume: taskId } }, stranger);
    assert.match(JSON.stringify(resumed), /no such execution/);
    assert.deepEqual(await steps(id), made);
    const updated = await send("tasks/update", { taskId, inputResponses: { [question]: { action: "accept", content } } });
    assert.ok(updated.result, JSON.stringify(updated));
    const { result } = await reads(taskId, "completed");
    assert.equal(result.structuredContent.status, "ok", JSON.stringify(result));
    assert.deepEqual(await steps(id), id === "task-form" ? ["before", "asks", "Ada", "after"] : ["before", "sent", "after"]);
  }
});

// Clients run at the same time, each as a caller of its own; the scenarios of one after the other.
describe("plans", { concurrency: 3 }, () => {
  for (const [at, name] of names.entries()) {
    describe(name, { concurrency: 1 }, () => {
      const scenarios = { ...SCENARIOS, ...(CLIENTS[name].follows && FOLLOWING) };
      for (const [number, [what, run]] of Object.entries(scenarios).entries()) {
        test(`${name} ${what}`, async () => {
          const other = names[(at + 1) % names.length];
          await run(user(name), `plan-${at}-${number}`, user(other, name));
        });
      }
    });
  }
});

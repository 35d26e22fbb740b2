// Memory of the gateway for each plan that waits. Plans that ask a question, or with --approvals need an approval, are started with two workers and the
// memory store, and nobody answers. Prints one line; exit code 0 when a plan takes less than the goal in bytes and the workers still run another script.
//
// node waiting.mjs [--plans 2000] [--warm 500] [--goal 10240] [--approvals]. The defaults for approvals are 400 and 100, as at most 500 may wait.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { Agent } from "node:http";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { instance } from "../cluster/instances.mjs";
import { modern } from "../cluster/rpc.mjs";

const options = {
  plans: { type: "string" },
  warm: { type: "string" },
  goal: { type: "string", default: "10240" },
  approvals: { type: "boolean", default: false },
};
const { values } = parseArgs({ options });
const { approvals } = values;
const [plans, warm] = [Number(values.plans ?? (approvals ? 400 : 2_000)), Number(values.warm ?? (approvals ? 100 : 500))];
const WORKERS = 2;
/// Number of callers. Each may have 100 approvals that wait.
const KEYS = 5;
const SCRIPT = `
  const before = await callTool('crm:users_list', { limit: 1 });
  const said = await callTool('asks:ask', {});
  return { user: before.items[0].id, plan: codecallContext.plan, said: said.name };
`;

const keys = Array.from({ length: KEYS }, (_, n) =>
  JSON.parse(execFileSync(process.env.GATEWRIGHT, ["api-key", "generate", `caller-${n}`, "--scope", "crm:read", "--no-expiry", "--json"])),
);
const gateway = await instance({
  apps: {
    crm: { builtin: "crm" },
    asks: {
      command: process.execPath,
      args: [join(import.meta.dirname, "asks.mjs")],
      ...(approvals && { tools: { ask: { approval: "always" } } }),
    },
  },
  auth: { mode: "orchestrated", scopes: { "crm:read": "Read the CRM" }, apiKeys: keys.map(({ entry }) => entry) },
  approvals: { maxPerPrincipal: 100 },
  executions: { store: "memory", maxExecutions: 100_000, maxPerPrincipal: 10_000, maxBytes: 1 << 30 },
  codecall: { worker: { workers: WORKERS, maxWorkers: WORKERS } },
});
process.on("exit", () => gateway.child.kill("SIGKILL"));
const agent = new Agent({ keepAlive: true });

async function execute(input, caller = 0) {
  const params = { name: "codecall:execute", arguments: input };
  const headers = { authorization: `Bearer ${keys[caller % KEYS].key}` };
  const { status, message } = await modern(gateway.port, "tools/call", params, { agent, headers, capabilities: { elicitation: { form: {} } } });
  assert.equal(status, 200, JSON.stringify(message));
  return message.result;
}

/// Starts plans up to this number, a few at a time. A plan waits once its request is answered.
let started = 0;
async function until(number) {
  const one = async () => {
    while (started < number) {
      const plan = started++;
      const result = await execute({ script: SCRIPT, context: { plan } }, plan);
      assert.equal(result.resultType, "input_required", JSON.stringify(result));
    }
  };
  await Promise.all(Array.from({ length: 2 * WORKERS }, one));
}

/// Resident memory of the gateway itself, in bytes.
function resident() {
  const status = readFileSync(`/proc/${gateway.child.pid}/status`, "utf8");
  return Number(status.match(/^VmRSS:\s+(\d+) kB/m)[1]) * 1024;
}

/// Number of worker processes.
function workers() {
  const isWorker = (pid) => {
    try {
      const [, command, parent] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      return command === "worker" && Number(parent) === gateway.child.pid;
    } catch {
      // It has ended.
      return false;
    }
  };
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && isWorker(name)).length;
}

// Pools, caches and tables have grown by then.
await until(warm);
const first = resident();
await until(warm + plans);
const last = resident();
const each = Math.round((last - first) / plans);
const count = workers();
const { structuredContent } = await execute({ script: "return 6 * 7" });
await gateway.stop();

const mib = (bytes) => (bytes / 2 ** 20).toFixed(1);
const what = approvals ? "an approval" : "a question";
console.log(`${plans} plans that wait for ${what}: ${mib(first)} MiB before, ${mib(last)} MiB with them: ${each} bytes each; ${count} workers`);
assert.equal(structuredContent.result, 42);
assert.ok(count <= WORKERS, `${count} workers`);
assert.ok(each < Number(values.goal), `a waiting plan takes ${each} bytes`);
process.exit(0);

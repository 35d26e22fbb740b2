// node cost.mjs [CALLS]: what a call costs in a session of the instance that is asked, and of another one; one line of JSON each.
// GATEWRIGHT names the binary. OLD_KEY_ONLY is for binaries that pass requests on over HTTP and know no `http.cluster.redis`.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { Agent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { KEY, cluster, freePort, instance } from "./instances.mjs";
import { redis } from "./redis.mjs";
import { inSession, open } from "./rpc.mjs";

const CALLS = Number(process.argv[2] ?? 500);
const [folder, redisPort] = [await mkdtemp(join(tmpdir(), "cost-")), await freePort()];
const store = await redis(redisPort, folder);
const http = { cluster: process.env.OLD_KEY_ONLY ? { key: KEY } : cluster(redisPort) };
const config = { codecall: { enabled: false }, apps: { crm: { builtin: "crm" } }, http };
const instances = [await instance(config), await instance(config)];
const agent = new Agent({ keepAlive: true });
const session = await open(instances[0].port);
const processes = [...instances.map((one) => one.child.pid), store.pid];

/// Processor time of a process, in milliseconds.
async function used(pid) {
  const [, fields] = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ");
  const [user, system] = fields.split(" ").slice(11, 13).map(Number);
  return (user + system) * 10;
}

const call = (port) => inSession(port, session, "tools/call", { name: "crm:users_list", arguments: { limit: 1 } }, { agent });

async function measured(what, port) {
  for (let at = 0; at < 50; at += 1) await call(port);
  const before = await Promise.all(processes.map(used));
  const times = [];
  for (let at = 0; at < CALLS; at += 1) {
    const began = performance.now();
    const answer = await call(port);
    times.push(performance.now() - began);
    if (answer.status !== 200) throw new Error(JSON.stringify(answer));
  }
  const after = await Promise.all(processes.map(used));
  const [home, other, redisServer] = after.map((time, at) => Number(((1_000 * (time - before[at])) / CALLS).toFixed(0)));
  times.sort((a, b) => a - b);
  const at = (share) => Number(times[Math.floor(share * times.length)].toFixed(2));
  console.log(JSON.stringify({ what, p50_ms: at(0.5), p90_ms: at(0.9), cpu_us: { home, other, redis: redisServer } }));
}

for (let round = 0; round < 2; round += 1) {
  await measured("own session", instances[0].port);
  await measured("session of the other", instances[1].port);
}
agent.destroy();
await Promise.all(instances.map((one) => one.stop()));
store.kill("SIGKILL");
await rm(folder, { recursive: true, force: true });

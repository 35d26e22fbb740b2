// A mixed load at 80 % of what the machine can do, while things go wrong. Every answer is judged.
//
// node soak.mjs [--seconds 30] [--share 0.8] [--calm] [--report FILE] [--series FILE]: exit code 0 when everything held. 300 seconds or more
// also judge p99 after each fault, and memory within 5 %. Calm: nothing goes wrong; what grows then is a leak. The series has each second's requests, p99 and memory.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import { once } from "node:events";

import { freePort, instance } from "../cluster/instances.mjs";
import { redis } from "../cluster/redis.mjs";
import { children, faults, machine, usage } from "./faults.mjs";
import { closeConnections, kinds, token } from "./load.mjs";

const { values } = parseArgs({ options: { seconds: { type: "string", default: "30" }, share: { type: "string", default: "0.8" }, report: { type: "string" }, series: { type: "string" }, calm: { type: "boolean" } } });
const SECONDS = Number(values.seconds);
/// Of what the machine can do.
const SHARE = Number(values.share);
/// After a fault is over: answers it spoiled may still arrive, and p99 must be back by then.
const RECOVERY = 5_000;
/// Requests under way at most; more would measure this program.
const MOST_OPEN = 400;

async function start() {
  const folder = mkdtempSync(join(tmpdir(), "soak-"));
  const ledger = join(folder, "ledger.txt");
  writeFileSync(ledger, "");
  const [port, redisPort] = [await freePort(), await freePort()];
  const issuer = `http://127.0.0.1:${port}`;
  const client = { clientId: "soak", clientSecret: "kept-between-us-0123456789-abcdefghij", grantTypes: ["client_credentials"] };
  const soak = { folder, ledger, issuer, client, redisPort, resource: `${issuer}/mcp`, acknowledged: [] };
  soak.redis = await redis(redisPort, folder);
  const ledgerScript = join(import.meta.dirname, "../cluster/ledger.mjs");
  soak.server = await instance({
    http: { port, publicUrl: issuer, sessions: true },
    apps: {
      crm: { builtin: "crm" },
      ledger: { command: process.execPath, args: [ledgerScript, ledger], timeout: "2s" },
    },
    // Wall-clock time for a loaded machine: what is judged here is not the script's limit.
    codecall: { vm: { timeoutMs: 10_000 }, worker: { workers: 2, queue: 1_000 } },
    auth: {
      mode: "orchestrated",
      type: "local",
      tokenStorage: { type: "redis", config: { host: "127.0.0.1", port: redisPort, keyPrefix: "soak:" } },
      local: { login: "demo" },
      scopes: { "crm:read": "Read the CRM" },
      clients: [client],
    },
  });
  soak.token = await token(soak);
  return soak;
}

/// Draws kinds by their shares, the same sequence every time.
function draw(all) {
  const whole = all.reduce((sum, one) => sum + one.share, 0);
  let seed = 1;
  return () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    let at = (seed / 2_147_483_648) * whole;
    return all.find((one) => (at -= one.share) < 0) ?? all[0];
  };
}

/// Answers a second with `width` requests always under way.
async function capacity(next, width, ms) {
  const until = Date.now() + ms;
  let done = 0;
  const worker = async () => {
    while (Date.now() < until) {
      await next().ask();
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  return done / (ms / 1_000);
}

const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
const p99 = (times) => quantile([...times].sort((a, b) => a - b), 0.99);
const median = (all) => quantile([...all].sort((a, b) => a - b), 0.5);

/// First and last point of the line that fits `all` best (Theil and Sen: the median of all slopes).
function trend(all) {
  const slopes = [];
  for (let a = 0; a < all.length; a++) for (let b = a + 1; b < all.length; b++) slopes.push((all[b] - all[a]) / (b - a));
  const slope = slopes.length ? median(slopes) : 0;
  const start = median(all.map((value, at) => value - slope * at));
  return [start, start + slope * (all.length - 1)];
}

const soak = await start();
const pid = soak.server.child.pid;
// The token endpoint has limits of its own: it is asked once a second and not as part of the draw.
const all = kinds(soak);
const [issue] = all.splice(all.findIndex((one) => one.kind === "token"), 1);
const next = draw(all);

await capacity(next, 16, 2_000);
closeConnections();
await sleep(1_500);
const before = { ...usage(pid), children: children(pid).length };
const most = await capacity(next, 16, SECONDS >= 300 ? 15_000 : 4_000);
const rate = most * SHARE;
console.log(`capacity ${most.toFixed(0)} requests/s; load ${rate.toFixed(0)}/s for ${SECONDS} s; ${machine()}`);

const begun = Date.now();
const finished = begun + SECONDS * 1_000;
const happened = [];
const wrong = [];
const spoiled = new Map();
const latencies = [];
const memory = [];
let [asked, open, skipped, refused] = [0, 0, 0, 0];

async function one({ kind, ask }, due) {
  asked += 1;
  open += 1;
  try {
    await ask();
    const second = Math.floor((due - begun) / 1_000);
    (latencies[second] ??= []).push(Date.now() - due);
  } catch (error) {
    const now = Date.now();
    const excuse = happened.find(
      (fault) => now >= fault.began && due <= (fault.ended ?? now) + RECOVERY && fault.spoils(kind, error.code),
    );
    // Said clearly, and nothing was done: a machine that others use has less to give than when it was measured.
    const full = /^(QUEUE_TIMEOUT|QUEUE_FULL|http-503)$/.test(error.code);
    if (!excuse && full) refused += 1;
    else if (excuse) spoiled.set(excuse.name, (spoiled.get(excuse.name) ?? 0) + 1);
    else wrong.push(`${((due - begun) / 1_000).toFixed(1)} s, ${kind}: ${error.message}`);
  } finally {
    open -= 1;
  }
}

async function load() {
  let launched = 0;
  while (Date.now() < finished) {
    const due = Math.floor(((Date.now() - begun) / 1_000) * rate);
    for (; launched < due; launched += 1) {
      if (open >= MOST_OPEN) skipped += 1;
      else void one(next(), begun + (launched / rate) * 1_000);
    }
    await sleep(5);
  }
}

async function tokens() {
  while (Date.now() < finished) {
    await one(issue, Date.now());
    await sleep(1_000);
  }
}

async function mischief() {
  if (values.calm) return;
  const list = faults(soak);
  const [quiet, gap] = SECONDS >= 300 ? [30_000, 10_000] : [4_000, 3_000];
  await sleep(quiet);
  for (let at = 0; Date.now() + gap + RECOVERY < finished || at < list.length; at += 1) {
    const fault = { ...list[at % list.length], began: Date.now() };
    happened.push(fault);
    await fault.run();
    fault.ended = Date.now();
    await sleep(gap);
  }
}

async function watch() {
  while (Date.now() < finished) {
    memory.push(usage(pid).resident);
    await sleep(1_000);
  }
}

await Promise.all([load(), tokens(), mischief(), watch()]);
for (let waited = 0; open > 0 && waited < 300; waited += 1) await sleep(100);
closeConnections();

// What is left over when nobody asks any more.
let after;
for (let waited = 0; waited < 200; waited += 1) {
  after = { ...usage(pid), children: children(pid).length };
  if (after.descriptors <= before.descriptors + 2 && after.children === before.children) break;
  await sleep(100);
}

const failures = [];
const must = (holds, what) => {
  if (!holds) failures.push(what);
};
must(wrong.length === 0, `${wrong.length} wrong answers:\n  ${wrong.slice(0, 20).join("\n  ")}`);
must(refused <= asked * (SECONDS >= 300 ? 0.001 : 0.05), `${refused} of ${asked} requests were refused for overload`);
must(open === 0, `${open} requests never came back`);
must(after.children === before.children, `children: ${before.children} before, ${after.children} after`);
must(after.descriptors <= before.descriptors + 2, `descriptors: ${before.descriptors} before, ${after.descriptors} after`);

const times = new Map();
for (const id of readFileSync(soak.ledger, "utf8").split("\n").filter(Boolean)) times.set(id, (times.get(id) ?? 0) + 1);
const twice = [...times].filter(([, count]) => count > 1).length;
const lost = soak.acknowledged.filter((id) => !times.has(id)).length;
must(twice === 0, `${twice} effects happened twice`);
must(lost === 0, `${lost} acknowledged effects did not happen`);

// A second without an answer is as slow as can be.
const seconds = Array.from({ length: SECONDS }, (_, at) => (latencies[at]?.length ? p99(latencies[at]) : Infinity));
// The usual: seconds in which no fault was under way, or over for less than the time to recover.
const troubled = (at) => {
  const [from, to] = [begun + at * 1_000, begun + (at + 1) * 1_000];
  return happened.some((fault) => to > fault.began && from < fault.ended + RECOVERY);
};
const calm = seconds.filter((_, at) => !troubled(at) && at > 1);
const base = median(calm);
// A second of some hundred requests has a p99 that jumps: nine of ten calm seconds say how far.
const usual = quantile([...calm].sort((a, b) => a - b), 0.9);
const bound = Math.max(usual, base * 1.5, base + 5);
// Back for good: a second within the bound that no slower one follows before the next fault, but for one in five.
const recoveries = happened.map((fault, number) => {
  const first = Math.floor((fault.ended - begun) / 1_000);
  const last = Math.min(SECONDS, Math.floor(((happened[number + 1]?.began ?? finished) - begun) / 1_000));
  const rest = seconds.slice(first, Math.max(last, first + 1));
  const settled = (from) => rest[from] <= bound && rest.slice(from).filter((p99) => p99 > bound).length <= Math.ceil((rest.length - from) / 5);
  const after = rest.findIndex((_, at) => settled(at));
  return { name: fault.name, after: after === -1 ? Infinity : after };
});
// In a short run each fault comes once, and one slow second says nothing: it is reported, and judged in long runs.
if (SECONDS >= 300) for (const { name, after } of recoveries) must(after <= 5, `p99 was not back within 5 s of: ${name}`);

// Resident memory: the line through all seconds after the warm-up, so that one peak at either end says nothing.
const warm = memory.slice(Math.floor(memory.length * (SECONDS >= 300 ? 0.2 : 0.5)));
const [early, late] = trend(warm);
const growth = (late - early) / early;
// Half a minute is warm-up for an allocator: it can only show a gross leak.
must(growth <= (SECONDS >= 300 ? 0.05 : 0.3), `memory grew by ${(growth * 100).toFixed(1)} %`);

const flat = latencies.flat().sort((a, b) => a - b);
const byName = new Map();
for (const { name, after } of recoveries) byName.set(name, [...(byName.get(name) ?? []), after]);
const report = `| | |
|---|---|
| machine | ${machine()} |
| capacity, load | ${most.toFixed(0)} and ${rate.toFixed(0)} requests/s |
| time | ${SECONDS} s, ${happened.length} faults |
| requests | ${asked}; ${skipped} not sent because ${MOST_OPEN} were under way |
| wrong answers | ${wrong.length} |
| refused for overload | ${refused} |
| effects acknowledged, doubled, lost | ${soak.acknowledged.length}, ${twice}, ${lost} |
| p50, p99 of all; p99 of a calm second, bound | ${quantile(flat, 0.5)} ms, ${quantile(flat, 0.99)} ms; ${base} ms, ${bound.toFixed(0)} ms |
| children before, after | ${before.children}, ${after.children} |
| descriptors before, after | ${before.descriptors}, ${after.descriptors} |
| resident memory, trend from its warm-up to the end | ${(early / 1024).toFixed(1)} and ${(late / 1024).toFixed(1)} MiB (${(growth * 100).toFixed(1)} %) |

| fault | times | answers it spoiled | slowest return of p99 |
|---|---|---|---|
${[...byName].map(([name, all]) => `| ${name} | ${all.length} | ${spoiled.get(name) ?? 0} | ${Math.max(...all)} s |`).join("\n")}
`;
console.log(report);
if (values.series) {
  const lines = seconds.map((p99, at) => `${at}\t${latencies[at]?.length ?? 0}\t${latencies[at]?.length ? median(latencies[at]) : ""}\t${p99}\t${memory[at] ?? ""}`);
  const faultLines = happened.map((fault) => `# ${((fault.began - begun) / 1_000).toFixed(1)}-${((fault.ended - begun) / 1_000).toFixed(1)} ${fault.name}`);
  writeFileSync(values.series, [...faultLines, "second\tanswers\tp50_ms\tp99_ms\tresident_kib", ...lines, ""].join("\n"));
}
if (values.report) writeFileSync(values.report, report);
for (const failure of failures) console.log(`FAILED: ${failure}`);

await soak.server.stop();
soak.redis.kill("SIGTERM");
await once(soak.redis, "exit").catch(() => {});
rmSync(soak.folder, { recursive: true, force: true });
console.log(failures.length ? "soak: failed" : "soak: everything held");
process.exit(failures.length ? 1 : 0);

// A mixed load at 80 % of what the machine can do, while things go wrong. Every answer is judged.
//
// node soak.mjs [--seconds 30] [--share 0.8] [--calm] [--only WORD] [--gap SECONDS] [--bare] [--report FILE] [--series FILE]: exit code 0 when
// everything held. 300 seconds or more also judge p99 after each fault, and memory within 5 %. Calm: nothing goes wrong; what grows then is a
// leak. Only: faults with this word in their names, one every `gap` seconds. Bare: without metrics, audit and traces, to see what they cost. The
// series has each second's requests, times, memory and use of the processor.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { getPriority, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import { once } from "node:events";

import { freePort, instance } from "../cluster/instances.mjs";
import { redis } from "../cluster/redis.mjs";
import { children, faults, machine, usage } from "./faults.mjs";
import { median, p99, quantile, recoveries, trend } from "./judge.mjs";
import { kinds, token } from "./load.mjs";
import { observed } from "./observed.mjs";
import { CORES, processor } from "./processor.mjs";

const options = {
  seconds: { type: "string", default: "30" },
  share: { type: "string", default: "0.8" },
  rate: { type: "string" },
  workers: { type: "string" },
  only: { type: "string" },
  gap: { type: "string" },
  report: { type: "string" },
  series: { type: "string" },
  calm: { type: "boolean" },
  bare: { type: "boolean" },
};
const { values } = parseArgs({ options });
const SECONDS = Number(values.seconds);
/// Long enough to judge how fast things come back, and what grows.
const LONG = SECONDS >= 300;
/// From the start as many as the pool would grow to: so that what is there afterwards can be compared.
const WORKERS = Number(values.workers ?? Math.min(Math.max(16, 8 * CORES), 256));
/// Of what the machine can do.
const SHARE = Number(values.share);
/// After a fault is over: answers it spoiled may still arrive, and p99 must be back by then.
const RECOVERY = 5_000;
/// Between two faults.
const GAP = values.gap ? Number(values.gap) * 1_000 : LONG ? 10_000 : 3_000;
/// Requests under way at most; more would measure this program. Few in a short run: others may take the machine that was just measured.
const MOST_OPEN = LONG || values.gap ? 400 : 40;
/// Of one kind: who waits for an app that hangs asks nothing else, and keeps nobody else from asking.
const MOST_OF_A_KIND = MOST_OPEN / 2;

async function start() {
  // In memory where that is possible: a disk that others keep busy would hold up Redis and the app.
  const folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "soak-"));
  const ledger = join(folder, "ledger.txt");
  writeFileSync(ledger, "");
  const [port, redisPort] = [await freePort(), await freePort()];
  const issuer = `http://127.0.0.1:${port}`;
  const client = { clientId: "soak", clientSecret: "kept-between-us-0123456789-abcdefghij", grantTypes: ["client_credentials"] };
  const soak = { folder, ledger, issuer, client, redisPort, resource: `${issuer}/mcp`, acknowledged: [] };
  soak.redis = await redis(redisPort, folder);
  soak.observed = values.bare ? undefined : await observed(folder);
  const ledgerScript = join(import.meta.dirname, "../cluster/ledger.mjs");
  soak.server = await instance({
    http: { port, publicUrl: issuer, sessions: true },
    apps: {
      crm: { builtin: "crm" },
      ledger: { command: process.execPath, args: [ledgerScript, ledger], timeout: LONG || values.gap ? "2s" : "10s" },
    },
    // Wall-clock time for a loaded machine: what is judged here is not the script's limit.
    codecall: { vm: { timeoutMs: 10_000 }, worker: { workers: WORKERS, queue: 1_000 } },
    ...soak.observed?.config,
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

// Said clearly, and nothing was done: a machine that others use has less to give than when it was measured.
const FULL = /^(QUEUE_TIMEOUT|QUEUE_FULL|http-503|temporarily_unavailable)$/;

/// Before the load is measured, with as much under way as can be, a refusal or an app that is too slow is no failure, but no answer either.
function refusedKindly(error) {
  if (FULL.test(error.code) || error.code === "TIMEOUT") return false;
  throw error;
}

/// Answers a second with `width` requests always under way.
async function capacity(next, width, ms) {
  const until = Date.now() + ms;
  let done = 0;
  const worker = async () => {
    while (Date.now() < until) {
      const answered = await next().ask().then(() => true, refusedKindly);
      done += answered ? 1 : 0;
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  return done / (ms / 1_000);
}

const soak = await start();
const pid = soak.server.child.pid;
// What is late is to be the server's doing, not that this program had to wait for the processor.
let first = true;
// However this ends, nothing of it goes on.
process.on("exit", () => {
  soak.server.child.kill("SIGKILL");
  soak.redis.kill("SIGKILL");
  rmSync(soak.folder, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
soak.priority = getPriority();
try {
  setPriority(Math.max(soak.priority - 10, -20));
} catch {
  first = false;
}
const { all, issue, closeConnections } = kinds(soak);
const next = draw(all);

await capacity(next, 16, 2_000);
// As much at once as there may ever be: what memory that takes is not given back, and is not a leak.
if (LONG) await capacity(next, MOST_OPEN, 10_000);
closeConnections();
await sleep(1_500);
const use = processor(soak);
const before = { ...usage(pid), children: children(pid).length };
// What a machine can do differs from second to second: a run that is judged by it takes a minute to find out.
const most = await capacity(next, 16, LONG ? 60_000 : 4_000);
const rate = values.rate ? Number(values.rate) : most * SHARE;
console.log(`capacity ${most.toFixed(0)} requests/s; load ${rate.toFixed(0)}/s for ${SECONDS} s; ${machine()}`);

const begun = Date.now();
const finished = begun + SECONDS * 1_000;
const happened = [];
const wrong = [];
const spoiled = new Map();
const latencies = [];
const byKind = new Map(all.map(({ kind }) => [kind, []]));
const lag = [];
const waiting = [];
const memory = [];
const cpu = [];
const openOf = new Map();
const refused = new Map();
let [asked, open, skipped] = [0, 0, 0];

async function one({ kind, ask }, due) {
  asked += 1;
  open += 1;
  openOf.set(kind, (openOf.get(kind) ?? 0) + 1);
  try {
    await ask();
    const second = Math.floor((due - begun) / 1_000);
    const time = Date.now() - due;
    (latencies[second] ??= []).push(time);
    byKind.get(kind)?.push(time);
  } catch (error) {
    const now = Date.now();
    const excuse = happened.find(
      (fault) => now >= fault.began && due <= (fault.ended ?? now) + RECOVERY && fault.spoils(kind, error.code),
    );
    if (!excuse && FULL.test(error.code)) refused.set(`${kind} ${error.code}`, (refused.get(`${kind} ${error.code}`) ?? 0) + 1);
    else if (excuse) spoiled.set(excuse.name, (spoiled.get(excuse.name) ?? 0) + 1);
    else wrong.push(`${((due - begun) / 1_000).toFixed(1)} s, ${kind}: ${error.message}`);
  } finally {
    open -= 1;
    openOf.set(kind, openOf.get(kind) - 1);
  }
}

async function load() {
  let launched = 0;
  for (let last = Date.now(); Date.now() < finished; ) {
    const [now, second] = [Date.now(), Math.floor((Date.now() - begun) / 1_000)];
    lag[second] = Math.max(lag[second] ?? 0, now - last);
    last = now;
    waiting[second] = Math.max(waiting[second] ?? 0, openOf.get("script") ?? 0);
    const due = Math.floor(((Date.now() - begun) / 1_000) * rate);
    for (; launched < due; launched += 1) {
      const kind = next();
      if (open >= MOST_OPEN || (openOf.get(kind.kind) ?? 0) >= MOST_OF_A_KIND) skipped += 1;
      else void one(kind, begun + (launched / rate) * 1_000);
    }
    await sleep(2);
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
  const list = faults(soak).filter((fault) => fault.name.includes(values.only ?? ""));
  const quiet = LONG ? 30_000 : values.gap ? GAP : 4_000;
  await sleep(quiet);
  for (let at = 0; Date.now() + GAP + RECOVERY < finished || at < list.length; at += 1) {
    const fault = { ...list[at % list.length], began: Date.now() };
    happened.push(fault);
    await fault.run();
    fault.ended = Date.now();
    await sleep(GAP);
  }
}

/// Memory and use of the processor, each second; one that was missed on a busy machine is as the next.
async function watch() {
  use();
  for (let told = 0; told < SECONDS; ) {
    await sleep(Math.max(begun + (told + 1) * 1_000 - Date.now(), 1));
    const [{ resident }, cores] = [usage(pid), use()];
    for (const now = Math.min(SECONDS, Math.floor((Date.now() - begun) / 1_000)); told < now; told += 1) {
      memory.push(resident);
      cpu.push(cores);
    }
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
const refusals = [...refused.values()].reduce((sum, count) => sum + count, 0);
const why = [...refused].map(([what, count]) => `${what} ${count}`).join(", ");
must(refusals <= asked * (LONG ? 0.001 : 0.05), `${refusals} of ${asked} requests were refused for overload: ${why}`);
must(open === 0, `${open} requests never came back`);
must(after.children === before.children, `children: ${before.children} before, ${after.children} after`);
must(after.descriptors <= before.descriptors + 2, `descriptors: ${before.descriptors} before, ${after.descriptors} after`);

const times = new Map();
for (const id of readFileSync(soak.ledger, "utf8").split("\n").filter(Boolean).map(Number)) times.set(id, (times.get(id) ?? 0) + 1);
const twice = [...times].filter(([, count]) => count > 1).length;
const lost = soak.acknowledged.filter((id) => !times.has(id)).length;
must(twice === 0, `${twice} effects happened twice`);
must(lost === 0, `${lost} acknowledged effects did not happen`);

if (soak.observed) {
  const counted = await soak.observed.counted();
  let audited = 0;
  try {
    audited = soak.observed.audited();
  } catch (error) {
    must(false, `the audit does not verify: ${error.stderr ?? error}`);
  }
  must(counted === audited && audited > 0, `the metrics counted ${counted} calls of tools, the audit holds ${audited}`);
  must(soak.observed.got.bytes > 0, "the collector got no spans");
  soak.told = `${audited} lines of calls in the audit, as many as the metrics counted; ${soak.observed.got.batches} batches of spans, ${(soak.observed.got.bytes / 1e6).toFixed(0)} MB`;
}

// A second without an answer is as slow as can be.
const seconds = Array.from({ length: SECONDS }, (_, at) => ({
  answers: latencies[at]?.length ?? 0,
  p50: latencies[at]?.length ? median(latencies[at]) : Infinity,
  p99: latencies[at]?.length ? p99(latencies[at]) : Infinity,
  resident: memory[at],
  lag: lag[at] ?? 1_000,
  scripts: waiting[at] ?? 0,
  ...cpu[at],
}));
const since = (time) => (time - begun) / 1_000;
const spans = happened.map((fault) => ({ name: fault.name, from: since(fault.began), to: since(fault.ended), end: since(fault.ended + GAP) }));
const back = recoveries(seconds, spans, { cores: CORES, recovery: RECOVERY / 1_000 });
// In a short run each fault comes once, and one slow second says nothing: it is reported, and judged in long runs.
if (LONG) {
  must(back.valid, `others took part of the machine in ${back.disturbed} of ${SECONDS} seconds: nothing can be said about times`);
  must(back.alike, `calm seconds are not alike: p99 of nine of ten is below ${back.bound.toFixed(0)} ms, of half of them below ${back.base.toFixed(0)} ms`);
  for (const { name, after } of back.found) must(after <= 5, `p99 was not back within 5 s of: ${name}`);
}

// Resident memory: the line through all seconds after the warm-up, so that one peak at either end says nothing.
const warm = memory.slice(Math.floor(memory.length * (LONG ? 0.2 : 0.5)));
const [early, late] = trend(warm);
const growth = (late - early) / early;
// Half a minute is warm-up for an allocator: it can only show a gross leak.
must(growth <= (LONG ? 0.05 : 0.3), `memory grew by ${(growth * 100).toFixed(1)} %`);

const flat = latencies.flat().sort((a, b) => a - b);
const byName = new Map();
for (const { name, after } of back.found) byName.set(name, [...(byName.get(name) ?? []), after]);
const cores = (name) => (cpu.reduce((sum, second) => sum + second[name], 0) / Math.max(cpu.length, 1)).toFixed(2);
const ms = (time) => (Number.isFinite(time) ? `${time.toFixed(1)} ms` : "none");
const kindTimes = [...byKind].map(([kind, times]) => [kind, median(times), p99(times)].map((it) => (it?.toFixed ? ms(it) : it)).join(" "));
const lags = seconds.map((second) => second.lag);
const slowest = (all) => (back.valid ? `${Math.max(...all)} s` : "not judged");
const report = `| | |
|---|---|
| machine | ${machine()} |
| capacity, load | ${most.toFixed(0)} and ${rate.toFixed(0)} requests/s |
| time | ${SECONDS} s, ${happened.length} faults |
| requests | ${asked}; ${skipped} not sent because ${MOST_OPEN}, or ${MOST_OF_A_KIND} of their kind, were under way |
| wrong answers | ${wrong.length} |
| refused for overload | ${refusals} (${((refusals / asked) * 100).toFixed(2)} %) ${why} |
| effects acknowledged, doubled, lost | ${soak.acknowledged.length}, ${twice}, ${lost} |
| metrics, audit, traces | ${soak.told ?? "off"} |
| p50, p99 of all; p99 of a calm second, bound | ${ms(quantile(flat, 0.5))}, ${ms(quantile(flat, 0.99))}; ${ms(back.base)}, ${ms(back.bound)} |
| p50 and p99 of each kind | ${kindTimes.join("; ")} |
| cores used: server, workers and app, Redis, harness, others | ${["server", "children", "redis", "harness", "others"].map(cores).join(", ")} |
| longest pause of the harness: median and p99 of the seconds | ${median(lags)} ms, ${p99(lags)} ms${first ? "" : " (without priority)"} |
| seconds with a later p99 than the bound: of the calm ones; of the ${GAP / 1_000} s after a fault | ${back.calm.late} of ${back.calm.seconds}; ${back.found.reduce((sum, { late }) => sum + late, 0)} of ${back.found.length * Math.round(GAP / 1_000)} |
| seconds not judged because others used the machine | ${back.disturbed} |
| children before, after | ${before.children}, ${after.children} |
| descriptors before, after | ${before.descriptors}, ${after.descriptors} |
| resident memory, trend from its warm-up to the end | ${(early / 1024).toFixed(1)} and ${(late / 1024).toFixed(1)} MiB (${(growth * 100).toFixed(1)} %) |

| fault | times | answers it spoiled | slowest return of p99 |
|---|---|---|---|
${[...byName].map(([name, all]) => `| ${name} | ${all.length} | ${spoiled.get(name) ?? 0} | ${slowest(all)} |`).join("\n")}
`;
console.log(report);
if (values.series) {
  const columns = ["answers", "p50", "p99", "resident", "scripts", "lag", "server", "waited", "children", "redis", "harness", "others"];
  const lines = seconds.map((second, at) => [at, ...columns.map((name) => second[name]?.toFixed?.(2) ?? "")].join("\t"));
  const faultLines = spans.map((fault) => `# ${fault.from.toFixed(1)}-${fault.to.toFixed(1)} ${fault.name}`);
  writeFileSync(values.series, [...faultLines, ["second", ...columns].join("\t"), ...lines, ""].join("\n"));
}
if (values.report) writeFileSync(values.report, report);
for (const failure of failures) console.log(`FAILED: ${failure}`);

await soak.server.stop();
soak.observed?.close();
soak.redis.kill("SIGTERM");
await once(soak.redis, "exit").catch(() => {});
console.log(failures.length ? "soak: failed" : "soak: everything held");
process.exit(failures.length ? 1 : 0);

// Plans that wait, are resumed, are approved or denied in the client, by their users at /oauth/account/approvals and on the operator's page, run in the
// background and are taken over, on two instances and one Redis, of which one instance after the other is killed. Every effect is counted: none may be lost,
// none may happen twice, and none that was denied may happen.
//
// node plans.mjs [--seconds 30] [--width 16] [--gap 5] [--report FILE]: exit code 0 when everything held.

import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

import { KEY, freePort, instance } from "../cluster/instances.mjs";
import { proxy } from "../cluster/proxy.mjs";
import { redis } from "../cluster/redis.mjs";
import { modern } from "../cluster/rpc.mjs";
import { Browser } from "../interop/browser.mjs";
import { machine } from "./faults.mjs";

const options = {
  seconds: { type: "string", default: "30" },
  width: { type: "string", default: "16" },
  gap: { type: "string", default: "5" },
  report: { type: "string" },
};
const { values } = parseArgs({ options });
const CALLS = 5;
/// Longest time after which a plan must have an answer, in milliseconds: a lease, a takeover and a busy machine.
const LONGEST = 120_000;

const folder = mkdtempSync(join(tmpdir(), "plans-"));
const file = join(folder, "ledger");
writeFileSync(file, "");
const redisPort = await freePort();
const store = await redis(redisPort, folder);
const script = (name) => join(import.meta.dirname, name);
const ports = [await freePort(), await freePort()];
const front = await proxy(ports);
const issuer = `http://127.0.0.1:${front.port}`;
const client = { clientId: "soak", redirectUris: ["http://127.0.0.1:49152/callback"] };
const MANY = 1_000_000;
const config = {
  apps: {
    ledger: { command: process.execPath, args: [script("../cluster/ledger.mjs"), file] },
    asks: { command: process.execPath, args: [script("asks.mjs")] },
    guarded: {
      command: process.execPath,
      args: [script("../cluster/ledger.mjs"), file],
      tools: { add: { approval: "always" } },
    },
  },
  auth: {
    mode: "orchestrated",
    type: "local",
    tokenStorage: { type: "redis", config: { host: "127.0.0.1", port: redisPort } },
    local: { login: "demo" },
    scopes: { plans: "Run plans" },
    clients: [client],
    refresh: { accessTokenTtl: 86_400 },
    // All callers are one address here.
    limits: { token: MANY, authorize: MANY, login: MANY },
  },
  executions: { store: "redis", lease: "3s", maxPerPrincipal: 10_000 },
  codecall: { vm: { timeoutMs: 30_000 }, worker: { queue: 1_000, queueTimeout: "60s" } },
};
const pages = [await freePort(), await freePort()];
const start = (at) =>
  instance({
    ...config,
    http: { port: ports[at], publicUrl: issuer, cluster: { key: KEY } },
    admin: { port: pages[at], console: true },
  });
const instances = [await start(0), await start(1)];
process.on("exit", () => {
  for (const one of instances) one.child.kill("SIGKILL");
  store.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

/// Effects before and after a question, or one after the other. What cannot be known is caught.
const effect = `const effect = async (id) => {
  try { return (await callTool('ledger:add', { id, wait: 5 })).id === id ? 'done' : 'wrong'; } catch (error) { return error.code; }
};`;
const waits = `${effect}
  const before = await effect(codecallContext.plan + '-0');
  const said = await callTool('asks:ask', {});
  return { said: said.name, effects: [before, await effect(codecallContext.plan + '-1')] };`;
const approved = `${effect}
  const plan = codecallContext.plan, before = await effect(plan + '-0');
  let said;
  try { said = (await callTool('guarded:add', { id: plan + '-1' })).id === plan + '-1' ? 'done' : 'wrong' } catch (error) { said = error.code }
  return { effects: [before, said, await effect(plan + '-2')] };`;
const detached = `${effect}
  const effects = [];
  for (let n = 0; n < ${CALLS}; n++) effects.push(await effect(codecallContext.plan + '-' + n));
  return { effects };`;

const wrong = [];
const seen = { waited: 0, resumed: 0, inClient: 0, onPage: 0, byUser: 0, byOperator: 0, denied: 0, detached: 0, takenOver: 0, killed: 0, done: 0, unknown: 0, again: 0, refused: 0 };
const expected = new Map();
let number = 0;

/// Logs `name` in; the client with a token of that user.
async function user(name) {
  const verifier = randomBytes(32).toString("base64url");
  const [redirect_uri] = client.redirectUris;
  const asked = new URL(`${issuer}/oauth/authorize`);
  asked.search = new URLSearchParams({
    response_type: "code",
    client_id: client.clientId,
    redirect_uri,
    scope: "plans",
    resource: `${issuer}/mcp`,
    state: name,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  });
  const browser = new Browser();
  const code = (await browser.authorize(asked, { user: name })).searchParams.get("code");
  const form = { grant_type: "authorization_code", client_id: client.clientId, code, redirect_uri, code_verifier: verifier };
  const answer = await fetch(`${issuer}/oauth/token`, { method: "POST", body: new URLSearchParams(form) });
  const { access_token: token } = await answer.json();
  if (!token) throw new Error(`no token for ${name}: ${answer.status}`);
  return { name, browser, headers: { authorization: `Bearer ${token}` } };
}

const users = await Promise.all(["ada", "bob", "eve", "kim"].map(user));
/// The user of a plan, by its number.
const userOf = (name) => users[Number(name.slice(1)) % users.length];
const asking = (name) => ({ capabilities: { elicitation: { form: {} } }, headers: userOf(name).headers });
const mute = (name) => ({ headers: userOf(name).headers });

async function execute(port, input, options, more = {}) {
  const answer = await modern(port, "tools/call", { name: "codecall:execute", arguments: input, ...more }, options);
  if (answer.status !== 200 || !answer.message?.result) throw new Error(`${answer.status} ${JSON.stringify(answer.message)}`);
  return answer.message.result;
}

/// Asks until an instance answers: what breaks off on the way is asked again.
async function anywhere(input, options, more) {
  const until = Date.now() + LONGEST;
  for (let tries = number; ; tries += 1) {
    try {
      return await execute(instances[tries % 2].port, input, options, more);
    } catch (error) {
      if (Date.now() > until) throw error;
      seen.again += 1;
      await sleep(50);
    }
  }
}

/// The answer of an execution, however often it has to be asked for. Its questions are answered.
async function ended(id, name) {
  for (const until = Date.now() + LONGEST; Date.now() < until; await sleep(100)) {
    let result = await anywhere({ resume: id }, asking(name));
    if (result.resultType === "input_required") result = await answered({ resume: id }, result, name);
    const { status, error } = result.structuredContent;
    const goesOn = status === "running" || error?.code === "EXECUTION_BUSY";
    if (!goesOn) return result.structuredContent;
  }
  throw new Error(`${id} never ended`);
}

/// The retry with the answer to what was asked.
async function answered(input, { requestState, inputRequests }, name) {
  const answers = Object.keys(inputRequests).map((key) => [key, { action: "accept", content: { name } }]);
  return anywhere(input, asking(name), { requestState, inputResponses: Object.fromEntries(answers) });
}

/// The store was too slow for one step: whoever asks is told to ask again, and effects are counted once at most.
function isRefused({ error }) {
  const refused = error?.code === "EXECUTIONS_UNAVAILABLE";
  if (refused) seen.refused += 1;
  return refused;
}

function judge(name, { status, result, error }, count) {
  if (status !== "ok" || result.effects.length !== count) throw new Error(JSON.stringify({ status, result, error }));
  for (const [n, said] of result.effects.entries()) {
    expected.set(`${name}-${n}`, said);
    if (said === "done") seen.done += 1;
    else if (said === "OUTCOME_UNKNOWN") seen.unknown += 1;
    else if (said === "APPROVAL_DENIED" && n === 1 && isDenied(name)) seen.denied += 1;
    else throw new Error(JSON.stringify(result.effects));
  }
}

async function oneThatWaits() {
  const name = `w${number++}`;
  const port = instances[number % 2].port;
  // A run for its client ends with its instance: begun anew, it would be another plan.
  const first = await execute(port, { script: waits, context: { plan: name } }, asking(name)).catch(() => undefined);
  if (!first) return;
  if (first.resultType !== "input_required") {
    if (isRefused(first.structuredContent)) return;
    throw new Error(`${name} did not ask: ${JSON.stringify(first)}`);
  }
  seen.waited += 1;
  await sleep(Math.random() * 1_000);
  const answers = Object.keys(first.inputRequests).map((key) => [key, { action: "accept", content: { name } }]);
  const retry = { requestState: first.requestState, inputResponses: Object.fromEntries(answers) };
  const input = { script: waits, context: { plan: name } };
  const last = await execute(instances[number % 2].port, input, asking(name), retry).catch(() => undefined);
  // The instance that went on with it was killed: its client is told nothing, and its effects are counted once at most.
  if (!last) return;
  const body = last.structuredContent;
  if (isRefused(body)) return;
  if (body.result?.said !== name) throw new Error(`${name}: ${JSON.stringify(body)}`);
  judge(name, body, 2);
  seen.resumed += 1;
}

async function oneInTheBackground() {
  const name = `d${number++}`;
  const at = number % 2;
  const input = { script: detached, context: { plan: name }, detach: true };
  const begun = await execute(instances[at].port, input, asking(name)).catch(() => undefined);
  if (!begun) return;
  if (isRefused(begun.structuredContent)) return;
  if (begun.structuredContent.status !== "running") throw new Error(`${name}: ${JSON.stringify(begun)}`);
  const { child } = instances[at];
  judge(name, await ended(begun.structuredContent.executionId, name), CALLS);
  seen.detached += 1;
  if (child.exitCode !== null || child.signalCode !== null) seen.takenOver += 1;
}

/// Every third plan that needs an approval gets a no.
const isDenied = (name) => /^[cp]/.test(name) && Number(name.slice(1)) % 3 === 0;

async function oneApprovedInTheClient() {
  const name = `c${number++}`;
  const input = { script: approved, context: { plan: name } };
  const first = await execute(instances[number % 2].port, input, asking(name)).catch(() => undefined);
  if (!first) return;
  if (first.resultType !== "input_required") {
    if (isRefused(first.structuredContent)) return;
    throw new Error(`${name} did not ask: ${JSON.stringify(first)}`);
  }
  await sleep(Math.random() * 500);
  const answer = isDenied(name) ? { action: "decline" } : { action: "accept", content: { approve: true } };
  const answers = Object.keys(first.inputRequests).map((key) => [key, answer]);
  const retry = { requestState: first.requestState, inputResponses: Object.fromEntries(answers) };
  const last = await execute(instances[number % 2].port, input, asking(name), retry).catch(() => undefined);
  if (!last || isRefused(last.structuredContent)) return;
  judge(name, last.structuredContent, 3);
  seen.inClient += 1;
}

/// Nobody looks at the plan until it has gone on: the decision on the page takes it on.
async function oneApprovedOnThePage() {
  const name = `p${number++}`;
  const input = { script: approved, context: { plan: name }, detach: true };
  const begun = await execute(instances[number % 2].port, input, asking(name)).catch(() => undefined);
  if (!begun) return;
  if (isRefused(begun.structuredContent)) return;
  const id = begun.structuredContent.executionId;
  const isOver = () => readFileSync(file, "utf8").includes(`${name}-2\n`);
  for (const last = Date.now() + LONGEST / 2; Date.now() < last && !isOver(); ) await sleep(100);
  const isLate = !isOver();
  for (const last = Date.now() + LONGEST; Date.now() < last; await sleep(100)) {
    // A client that cannot be asked.
    const { structuredContent: told } = await anywhere({ resume: id }, mute(name));
    if (told.error?.code === "APPROVAL_REQUIRED") throw new Error(`${name} waits: ${JSON.stringify(told)}`);
    if (told.status === "running" || told.error?.code === "EXECUTION_BUSY") continue;
    judge(name, told, 3);
    const isKnown = told.result.effects[2] !== "OUTCOME_UNKNOWN";
    if (isLate && isKnown) throw new Error(`${name} went on only when its client looked`);
    seen.onPage += 1;
    return;
  }
  throw new Error(`${name} never ended`);
}

/// Those that decide on a plan with this name: its user for every second one of a user, else the operator.
const isForUser = (name) => Math.floor(Number(name.slice(1)) / users.length) % 2 === 0;

/// The approvals on a page: their ids, and the plans that wait for them.
function* waiting(page) {
  for (const [entry] of page.matchAll(/<h2[ >].*?<\/form>/gs)) {
    const id = entry.match(/name="id" value="([^"]+)"/)?.[1];
    const plan = entry.match(/id: &quot;([cp]\d+)-1&quot;/)?.[1];
    if (!id || !plan) throw new Error(`an approval of no plan: ${entry}`);
    yield { id, plan };
  }
}

const csrfOf = (page) => page.match(/name="csrf" value="([^"]+)"/)?.[1];
const decision = (plan) => (isDenied(plan) ? "deny" : "approve");

/// Decides on what waits for the operator, on the page of one instance.
async function decideAsOperator(port) {
  const url = `http://127.0.0.1:${port}/console/approvals`;
  const page = await (await fetch(url)).text();
  for (const { id, plan } of waiting(page)) {
    if (isForUser(plan)) continue;
    const body = new URLSearchParams({ csrf: csrfOf(page), id, decision: decision(plan) });
    await (await fetch(url, { method: "POST", headers: { origin: `http://127.0.0.1:${port}` }, body })).text();
    seen.byOperator += 1;
  }
}

/// Decides on what waits for a user and is not left to the operator.
async function decideAs({ name, browser }) {
  const url = `${issuer}/oauth/account/approvals`;
  const page = await browser.open(url, { user: name });
  for (const { id, plan } of waiting(page)) {
    if (userOf(plan).name !== name) throw new Error(`${name} sees the approval of ${plan}`);
    if (!isForUser(plan)) continue;
    const status = await browser.post(url, { csrf: csrfOf(page), id, decision: decision(plan) });
    // Decided in the client meanwhile, or for want of Redis not at all: it is on the page again then.
    if (status === 303) seen.byUser += 1;
    else if (status !== 400 && status < 500) throw new Error(`${name}: the page answers ${status}`);
  }
}

async function people() {
  for (let turn = 0; !isDone; turn += 1) {
    const decide = turn % 2 === 0 ? decideAsOperator(pages[(turn / 2) % 2]) : Promise.all(users.map(decideAs));
    await decide.catch((error) => {
      // The instance was killed.
      if (!(error instanceof TypeError)) wrong.push(error.message);
    });
    await sleep(100);
  }
}

let isDone = false;
const until = Date.now() + Number(values.seconds) * 1_000;

async function load(kind) {
  while (Date.now() < until) {
    try {
      await kind();
    } catch (error) {
      wrong.push(String(error.message ?? error));
      await sleep(100);
    }
  }
}

async function kills() {
  for (let victim = 0; Date.now() + Number(values.gap) * 1_000 < until; victim = 1 - victim) {
    await sleep(Number(values.gap) * 1_000);
    await instances[victim].stop("SIGKILL");
    seen.killed += 1;
    instances[victim] = await start(victim);
  }
}

const width = Number(values.width);
const kinds = [oneThatWaits, oneInTheBackground, oneApprovedInTheClient, oneApprovedOnThePage];
const loads = Array.from({ length: width }, (_, n) => load(kinds[n % kinds.length]));
const deciding = people();
await Promise.all([...loads, kills()]);
isDone = true;
await deciding;

const counts = new Map();
for (const line of readFileSync(file, "utf8").split("\n").filter(Boolean)) counts.set(line, (counts.get(line) ?? 0) + 1);
const twice = [...counts].filter(([, count]) => count > 1);
const lost = [...expected].filter(([id, said]) => said === "done" && !counts.has(id));
const allowed = [...expected].filter(([id, said]) => said === "APPROVAL_DENIED" && counts.has(id));
const failures = [];
const must = (holds, what) => holds || failures.push(what);
must(wrong.length === 0, `${wrong.length} wrong answers:\n  ${wrong.slice(0, 10).join("\n  ")}`);
must(twice.length === 0, `${twice.length} effects happened twice: ${twice.slice(0, 5)}`);
must(lost.length === 0, `${lost.length} effects are lost: ${lost.slice(0, 5)}`);
must(allowed.length === 0, `${allowed.length} effects happened although they were denied: ${allowed.slice(0, 5)}`);
must(seen.inClient > 0 && seen.onPage > 0 && seen.denied > 0, "no plan was approved in the client or on a page, or none was denied");
must(seen.byUser > 0 && seen.byOperator > 0, "no user, or no operator, decided on a page");
must(seen.resumed > 0 && seen.detached > 0, "no plan was resumed, or none ran in the background");
must(seen.killed === 0 || seen.takenOver > 0, "no plan was taken over");

const report = `| | |
|---|---|
| machine | ${machine()} |
| time, plans at a time, instances killed | ${values.seconds} s, ${width}, ${seen.killed} |
| plans that waited; resumed; in the background; of these taken over | ${seen.waited}; ${seen.resumed}; ${seen.detached}; ${seen.takenOver} |
| plans approved or denied in the client; on a page; calls denied | ${seen.inClient}; ${seen.onPage}; ${seen.denied} |
| decisions of users on their page; of the operator | ${seen.byUser}; ${seen.byOperator} |
| effects done; in doubt; doubled; lost | ${seen.done}; ${seen.unknown}; ${twice.length}; ${lost.length} |
| wrong answers; requests that broke off and were sent again; refused because the store was slow | ${wrong.length}; ${seen.again}; ${seen.refused} |
`;
console.log(report);
if (values.report) writeFileSync(values.report, report);
for (const failure of failures) console.error(failure);
process.exit(failures.length === 0 ? 0 : 1);

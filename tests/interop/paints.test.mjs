// First paints of every page with 40 apps and 5,000 tools, for docs/benchmarks/pages.md, beside that of a page with one word: what the browser itself takes.
// Times are printed, and decide nothing. `PAINTS=5 tests/interop/run paints` visits each page five times instead of nine.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { launch } from "./inspect.mjs";
import { PASSWORD, authorization, full } from "./looks.mjs";

const TIMES = Number(process.env.PAINTS ?? 9);

let browser;
let server;
const plain = createServer((_, response) => response.setHeader("content-type", "text/html").end("<title>Plain</title>plain"));
before(async () => {
  await once(plain.listen(0, "127.0.0.1"), "listening");
  [browser, server] = [await launch(), await full()];
});
after(async () => {
  plain.close();
  await browser?.close();
  await server?.stop();
});

/// Milliseconds from the start of a navigation to the first content on the screen, in a browser that was never here; those of them until the end
/// of the response; and the CPU time of the page's main thread, which does not depend on the load of the machine.
async function firstPaint(address, storageState) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, storageState });
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.goto(address);
  const painted = await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]);
  const { startTime } = await painted.evaluate((entry) => entry.toJSON());
  const { responseEnd } = await page.evaluate(() => performance.getEntriesByType("navigation")[0].toJSON());
  const { metrics } = await session.send("Performance.getMetrics");
  const cpu = metrics.find(({ name }) => name === "TaskDuration").value * 1_000;
  await context.close();
  return [startTime, responseEnd, cpu];
}

/// Cookies of a user who is signed in.
async function signedIn() {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(authorization(server, { prompt: "login consent" }));
  await page.fill("#username", "ada");
  await page.fill("#password", PASSWORD);
  await page.keyboard.press("Enter");
  await page.locator("button[value=allow]").waitFor();
  const state = await context.storageState();
  await context.close();
  return state;
}

/// Addresses of the pages of one call and of one run.
async function details() {
  const page = await browser.newPage();
  const first = async (path, link) => {
    await page.goto(`${server.admin}/console${path}`);
    return page.locator(link).first().evaluate((found) => found.href);
  };
  const found = { call: await first("/calls", ".runs a.name"), run: await first("/runs", ".runs a.name") };
  await page.close();
  return found;
}

test("pages are painted", async () => {
  const state = await signedIn();
  const own = (path) => new URL(path, server.issuer).href;
  const operator = (path) => `${server.admin}/console${path}`;
  const { call, run } = await details();
  const pages = {
    "one word, plain HTML": [`http://127.0.0.1:${plain.address().port}/`],
    landing: [own("/")],
    login: [authorization(server, { prompt: "login" })],
    consent: [authorization(server, { prompt: "consent" }), state],
    account: [own("/oauth/account"), state],
    "account, approvals": [own("/oauth/account/approvals"), state],
    "account, questions": [own("/oauth/account/questions"), state],
    "account, passkeys": [own("/oauth/enrol"), state],
    "sign out": [own("/oauth/logout"), state],
    error: [authorization(server, { client_id: "nobody" })],
    "console, overview": [operator("")],
    "console, tools": [operator("/tools")],
    "console, a tool": [operator("/tool?name=crm:users_create")],
    "console, search": [operator("/search?q=users")],
    "console, script pad": [operator("/script")],
    "console, resources": [operator("/resources")],
    "console, prompts": [operator("/prompts")],
    "console, pins": [operator("/pins")],
    "console, calls": [operator("/calls")],
    "console, a call": [call],
    "console, runs": [operator("/runs")],
    "console, a run": [run],
    "console, approvals": [operator("/approvals")],
    "console, configuration": [operator("/configuration")],
    "console, no such page": [operator("/nothing")],
  };
  const measured = Object.fromEntries(Object.keys(pages).map((name) => [name, []]));
  // In turns: load of the machine meets all of them.
  for (let at = 0; at < TIMES; at += 1) {
    for (const [name, where] of Object.entries(pages)) measured[name].push(await firstPaint(...where));
  }
  for (const [name, all] of Object.entries(measured)) {
    const middle = (column) => all.map((times) => times[column]).sort((a, b) => a - b)[(TIMES - 1) >> 1];
    const [paint, response, cpu] = [0, 1, 2].map(middle);
    assert.ok(response > 0 && paint > 0 && cpu > 0, `${name}: ${paint}, ${response}, ${cpu}`);
    console.log(`| ${name} | ${Math.round(paint)} ms | ${Math.round(response)} ms | ${Math.round(cpu)} ms |`);
  }
});

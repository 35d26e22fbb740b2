// The operator's console in a real browser: with a mouse, with keys only, without scripts, and from a hostile page.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { chromium } from "playwright-core";

import { serve } from "./support.mjs";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PAGES = ["", "/tools", "/tool?name=crm:users_create", "/search?q=unpaid+invoices", "/script", "/resources", "/prompts", "/pins", "/calls", "/runs", "/approvals", "/configuration"];
const PLAN = `const { items } = await callTool("billing:invoices_list", { status: "overdue", limit: 8 });
const owners = await __safe_parallel(
  items.map((invoice) => () => callTool("crm:accounts_get", { id: invoice.accountId })),
  { maxConcurrency: 3 });
console.log("overdue:", items.length);
return owners.map((owner) => owner.name);`;

let browser;
let server;

/// Starts a server with its console; gives both addresses and an end.
async function start() {
  const apps = {
    crm: { builtin: "crm" },
    billing: { builtin: "billing" },
    support: { builtin: "support" },
    archive: { command: "/nonexistent/archive-server" },
  };
  // Wall-clock time for a busy machine.
  const codecall = { vm: { timeoutMs: 60_000 } };
  const started = await serve({ info: { name: "acme-tools", version: "1.0.0" }, apps, codecall, admin: { port: 0 } });
  return { ...started, mcp: started.url.href, console: `${started.admin}/console` };
}

/// Calls a meta-tool as a client of the public port does.
async function call(tool, input) {
  const meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };
  const answer = await fetch(server.mcp, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": tool,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: tool, arguments: input, _meta: meta } }),
  });
  assert.equal(answer.status, 200);
  await answer.text();
}

before(async () => {
  server = await start();
  browser = await chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--disable-background-networking",
      "--host-resolver-rules=MAP rebound.example 127.0.0.1",
    ],
  });
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

/// A page that notes what it asks elsewhere, and what the browser complains about.
async function open(t, path, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1180, height: 800 }, ...options });
  t.after(() => page.close());
  page.elsewhere = [];
  page.complaints = [];
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== server.admin) page.elsewhere.push(request.url());
  });
  page.on("console", (message) => message.type() === "error" && page.complaints.push(message.text()));
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  await page.goto(server.console + path);
  return page;
}

function quiet(page) {
  assert.deepEqual(page.elsewhere, [], "it asked somebody else");
  assert.deepEqual(page.complaints, []);
}

/// Findings of axe. Pages allow no foreign script: axe comes in through the debugger.
async function faults(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations.map((one) => `${one.id}: ${one.help}\n  ${one.nodes.map((node) => `${node.html} ${node.failureSummary}`).join("\n  ")}`);
}

test("shows the apps, the broken one with its error, and asks nobody else", async (t) => {
  const page = await open(t, "");
  const text = await page.innerText("main");
  for (const expected of ["crm", "billing", "support", "13 tools", "archive"]) assert.ok(text.includes(expected), text);
  await page.waitForSelector("li.broken:has-text('archive') .why");
  quiet(page);
});

test("every page passes axe, in light and dark, and fits a phone", async (t) => {
  for (const colorScheme of ["light", "dark"]) {
    for (const path of PAGES) {
      const page = await open(t, path, { colorScheme, reducedMotion: "reduce" });
      assert.deepEqual(await faults(page), [], `${colorScheme} ${path}`);
      await page.setViewportSize({ width: 360, height: 740 });
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(wider <= 0, `${path} is ${wider} px wider than the phone`);
      quiet(page);
      await page.close();
    }
  }
});

test("finds a tool by its filter, calls it from its form, and says what is wrong with bad input", async (t) => {
  const page = await open(t, "/tools");
  await page.fill("#q", "users_list");
  await page.click("text=Filter");
  await page.click("text=crm:users_list");
  await page.fill("input[name='f.limit']", "2");
  await page.click("button:visible");
  await page.waitForSelector("#result .status.ok");
  const result = JSON.parse(await page.innerText("#result pre"));
  assert.equal(result.items.length, 2);
  assert.deepEqual(await faults(page), []);

  await page.click("summary:has-text('Write the input as JSON')");
  await page.fill("#json", "{\"limit\": \"many\"}");
  await page.click("form:has(#json) button");
  await page.waitForSelector("#result .alert:has-text('VALIDATION_ERROR')");
  assert.equal(await page.inputValue("#json"), "{\"limit\": \"many\"}");
  assert.deepEqual(await faults(page), []);
});

test("explains the scores of a search", async (t) => {
  const page = await open(t, "/search");
  await page.fill("#q", "list the users");
  await page.press("#q", "Enter");
  await page.waitForSelector("ol.hits li");
  const first = await page.innerText("ol.hits li >> nth=0");
  assert.match(first, /crm:users_list[\s\S]*0\.\d{3}[\s\S]*Word[\s\S]*user[\s\S]*name/);
  quiet(page);
});

test("runs a script, shows its calls over time, and points at an error", async (t) => {
  const page = await open(t, "/script");
  await page.fill("#script", PLAN);
  await page.click("text=Run script");
  await page.waitForSelector("#result .status.ok");
  const text = await page.innerText("#result");
  assert.match(text, /overdue: \d/);
  assert.ok((await page.locator("#result .waterfall li").count()) > 2, text);
  assert.deepEqual(await faults(page), []);

  await page.fill("#script", "const a = 1;\nreturn a.b.c;");
  await page.click("text=Run script");
  await page.waitForSelector("#result .alert:has-text('line 2, column')");
  assert.match(await page.innerText(".excerpt .here"), /return a\.b\.c/);
  quiet(page);
});

test("lists follow what is typed, and the address does", async (t) => {
  const page = await open(t, "/tools");
  await page.type("#q", "users_list");
  await page.waitForFunction(() => document.querySelectorAll("#found a.name").length === 1);
  assert.equal(await page.innerText("#found a.name"), "crm:users_list");
  assert.match(page.url(), /q=users_list/);
  assert.equal(await page.evaluate(() => document.activeElement.id), "q");
  assert.deepEqual(await faults(page), []);
  quiet(page);
});

test("the pad completes tools and their parameters, and colours the script", async (t) => {
  const page = await open(t, "/script");
  await page.fill("#script", "");
  await page.type("#script", "return await callTool(\"users_li");
  await page.waitForSelector("#suggestions [role=option]:has-text('crm:users_list')");
  assert.deepEqual(await faults(page), []);
  await page.keyboard.press("Enter");
  await page.type("#script", "\", { li");
  await page.waitForSelector("#suggestions [role=option]:has-text('limit')");
  await page.keyboard.press("Enter");
  await page.type("#script", "1 });");
  assert.equal(await page.inputValue("#script"), "return await callTool(\"crm:users_list\", { limit: 1 });");
  assert.match(await page.innerText(".declaration"), /interface Tools/);
  assert.equal(await page.innerText(".colours .c-text"), "\"crm:users_list\"");
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector("#result .status.ok");
  quiet(page);
});

test("a dry run says what a script would do", async (t) => {
  const page = await open(t, "/script");
  await page.fill("#script", "return await callTool('crm:users_update', { id: 'usr_0002', name: 'Other' });");
  await page.click("text=Dry run >> nth=0");
  await page.waitForSelector("#result .notice:has-text('Dry run')");
  assert.match(await page.innerText("#result"), /crm:users_update[\s\S]*not called/);
  assert.deepEqual(await faults(page), []);
  quiet(page);
});

test("a run shows its script with the line that failed, and opens in the pad", async (t) => {
  await call("codecall:execute", { script: "const a = 1;\nreturn await callTool('crm:users_get', { id: 'nobody' });" });
  const page = await open(t, "/runs?status=failed");
  await page.click("a.name >> nth=0");
  assert.match(await page.innerText(".excerpt .here"), /users_get/);
  assert.deepEqual(await faults(page), []);
  await page.click("text=Repeat in the pad");
  assert.match(await page.inputValue("#script"), /nobody/);
  quiet(page);
});

test("new calls appear by themselves, each with its waterfall", async (t) => {
  const page = await open(t, "/calls");
  const before = await page.locator("#runs li").count();
  await call("codecall:execute", { script: PLAN });
  await page.waitForFunction((count) => document.querySelectorAll("#runs li").length > count, before);
  const row = page.locator("#runs li >> nth=0");
  assert.match(await row.innerText(), /codecall:execute[\s\S]*ok[\s\S]*\d+ calls[\s\S]*anonymous/);
  assert.match(await page.innerText("#news"), /1 new/);
  assert.deepEqual(await faults(page), []);

  await row.locator("a").click();
  await page.waitForSelector(".waterfall li");
  const widths = await page.$$eval(".waterfall rect", (bars) => bars.map((bar) => bar.getBoundingClientRect().width));
  assert.ok(widths.length > 2 && widths.every((width) => width > 0), `${widths}`);
  assert.match(await page.innerText(".waterfall"), /crm:accounts_get[\s\S]*ok[\s\S]*from/);
  assert.deepEqual(await faults(page), []);
  quiet(page);
});

test("what the console calls is marked as the console's", async (t) => {
  const page = await open(t, "/tool?name=crm:users_list");
  await page.click("button:visible");
  await page.waitForSelector("#result .status.ok");
  await page.goto(`${server.console}/calls`);
  assert.match(await page.innerText("#runs li >> nth=0"), /crm:users_list[\s\S]*1 call[\s\S]*console/);
});

test("works with keys only", async (t) => {
  const page = await open(t, "");
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim());
  const tabTo = async (wanted) => {
    for (let presses = 0; presses < 60; presses += 1) {
      await page.keyboard.press("Tab");
      if ((await focused()) === wanted) return;
    }
    assert.fail(`Tab never comes to ${wanted}`);
  };
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "Skip to content");
  await tabTo("Tools");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/console/tools");
  await tabTo("q");
  await page.keyboard.type("users_list");
  await page.keyboard.press("Enter");
  await page.waitForURL("**q=users_list**");
  await tabTo("crm:users_list");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/console/tool?**");
  await tabTo("Call tool");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#result .status.ok");
  assert.equal(await page.evaluate(() => document.activeElement.id), "result");

  await page.goto(`${server.console}/script`);
  await tabTo("script");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("return 6 * 7;");
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector("#result .status.ok");
  assert.equal((await page.innerText("#result pre")).trim(), "42");
  // What has the focus is outlined.
  await tabTo("Run script");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, "solid");
});

test("works without scripts", async (t) => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  t.after(() => context.close());
  const page = await context.newPage();
  await page.goto(`${server.console}/script`);
  await page.fill("#script", "return (await callTool('crm:users_list', { limit: 1 })).items.length;");
  await page.click("text=Run script");
  assert.equal((await page.innerText("#result pre")).trim(), "1");
  await page.goto(`${server.console}/calls`);
  const first = await page.getAttribute("#runs li >> nth=0", "data-id");
  await call("codecall:search", { query: "users" });
  await page.click("text=Refresh");
  assert.ok(Number(await page.getAttribute("#runs li >> nth=0", "data-id")) > Number(first));
});

test("a page of another origin calls nothing, by its own name or by ours", async (t) => {
  const hostile = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<form method="post" action="${server.console}/script"><input name="script" value="return 1"></form>`);
  }).listen(0, "127.0.0.1");
  await once(hostile, "listening");
  t.after(() => hostile.close());
  const page = await browser.newPage();
  t.after(() => page.close());
  await page.goto(`http://127.0.0.1:${hostile.address().port}/`);
  const [answer] = await Promise.all([
    page.waitForResponse((response) => response.url().endsWith("/console/script")),
    page.waitForURL(`${server.console}/script`),
    page.evaluate(() => document.forms[0].submit()),
  ]);
  assert.equal(answer.status(), 403);

  // DNS rebinding: the browser believes that our server is another's.
  const rebound = await page.goto(`http://rebound.example:${new URL(server.admin).port}/console`);
  assert.equal(rebound.status(), 421);
  assert.ok(!(await page.content()).includes("csrf"));
});

// `SCREENSHOTS=folder tests/interop/run console` takes the pictures of the README.
async function pictures(t) {
  const shot = async (page, name) => page.screenshot({ path: join(process.env.SCREENSHOTS, `console-${name}.png`) });
  for (const script of [PLAN, PLAN, "return await callTool('crm:users_get', { id: 'nobody' });"]) {
    await call("codecall:execute", { script });
  }
  await call("codecall:search", { query: "users" });
  await call("codecall:invoke", { tool: "support:tickets_list", input: {} });
  const size = { viewport: { width: 1080, height: 720 }, reducedMotion: "reduce" };
  let page = await open(t, "", size);
  await page.waitForSelector("li.broken .why");
  await shot(page, "overview");
  page = await open(t, "/script", { ...size, viewport: { width: 1080, height: 900 }, colorScheme: "dark" });
  await page.fill("#script", PLAN);
  await page.click("text=Run script");
  await page.waitForSelector("#result .status.ok");
  await page.evaluate(() => scrollTo(0, document.querySelector("form.pad").offsetTop + 230));
  await shot(page, "script");
  page = await open(t, "/search?q=what+do+customers+owe+us", size);
  await shot(page, "search");
  page = await open(t, "/calls", { ...size, viewport: { width: 390, height: 780 }, colorScheme: "dark" });
  await shot(page, "phone");
}
if (process.env.SCREENSHOTS) test("pictures", pictures);

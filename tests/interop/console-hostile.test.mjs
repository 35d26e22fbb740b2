// The console over a server whose every text is an attack, with 3,000 tools, and answers of megabytes.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { chromium } from "playwright-core";

import { ready, serve } from "./support.mjs";

const MANY = 3_000;
let browser;
let server;

async function start() {
  const hostile = { command: process.execPath, args: [join(import.meta.dirname, "hostile.mjs"), `${MANY}`] };
  // Wall-clock time for a busy machine.
  const codecall = { vm: { timeoutMs: 60_000, preset: "experimental" } };
  const started = await serve({ apps: { hostile }, codecall, admin: { port: 0 } });
  const { apps } = await ready(started.url);
  assert.ok(apps.hostile.tools >= MANY, JSON.stringify(apps));
  return { ...started, console: `${started.admin}/console` };
}

before(async () => {
  server = await start();
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] });
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

async function open(t, path) {
  const page = await browser.newPage({ viewport: { width: 1180, height: 800 } });
  t.after(() => page.close());
  page.elsewhere = [];
  page.complaints = [];
  page.on("request", (request) => new URL(request.url()).origin !== server.admin && page.elsewhere.push(request.url()));
  page.on("console", (message) => message.type() === "error" && page.complaints.push(message.text()));
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  page.on("dialog", (dialog) => page.complaints.push(dialog.message()));
  const began = Date.now();
  await page.goto(server.console + path);
  page.took = Date.now() - began;
  return page;
}

/// Nothing of the server's texts became markup, was run, fetched, or leads somewhere.
async function harmless(page) {
  assert.deepEqual([page.elsewhere, page.complaints], [[], []]);
  const found = await page.evaluate(() => ({
    pwned: globalThis.pwned,
    images: document.querySelectorAll("img, iframe, object, embed, base").length,
    inline: [...document.querySelectorAll("*")].filter((one) => [...one.attributes].some(({ name }) => name.startsWith("on"))).length,
    scripts: [...document.scripts].filter((script) => !script.src || script.textContent).length,
    links: [...document.querySelectorAll("[href]:not([rel=icon]), [src], [action]")]
      .map((one) => one.href ?? one.src ?? one.action)
      .filter((address) => new URL(address).origin !== location.origin),
    wide: document.documentElement.scrollWidth - window.innerWidth,
  }));
  assert.deepEqual(found, { pwned: undefined, images: 0, inline: 0, scripts: 0, links: [], wide: found.wide });
  assert.ok(found.wide <= 0, `the page is ${found.wide} px wider than the window`);
}

test("no text of a hostile server is run, becomes markup or leads away, on any page", async (t) => {
  for (const path of ["", "/tools", "/tools?q=script", "/tool?name=hostile:tool_0", "/tool?name=hostile:tool_1", "/search?q=number+long+words", "/script"]) {
    const page = await open(t, path);
    await harmless(page);
    await page.close();
  }
  const page = await open(t, "/tool?name=hostile:tool_0");
  await page.fill("input[name='f.size']", "60");
  await page.click("button:has-text('Call tool')");
  await page.waitForSelector("#result .status.ok");
  assert.ok((await page.innerText("#result")).includes("onerror"), "it is shown as text");
  await harmless(page);
  await page.fill("input[name='f.size']", "13");
  await page.click("button:has-text('Call tool')");
  await page.waitForSelector("#result .alert, #result .status:not(.ok)");
  await harmless(page);
  await page.goto(`${server.console}/calls`);
  await page.click("#runs li >> nth=0 >> a");
  await harmless(page);
});

test("three thousand tools are listed in parts, filtered, and found", async (t) => {
  const page = await open(t, "/tools");
  const rows = await page.locator("main a[href*='/console/tool?']").count();
  assert.ok(rows > 0 && rows <= 500, `${rows} tools on one page`);
  assert.ok((await page.content()).length < 1_000_000, "the page is short");
  assert.ok(page.took < 10_000, `${page.took} ms`);
  await page.fill("#q", "tool_2999");
  await page.click("text=Filter");
  await page.waitForSelector("a:has-text('hostile:tool_2999')");
  await harmless(page);
});

test("an answer of megabytes is cut, says so, and leaves the page usable", async (t) => {
  const page = await open(t, "/script");
  await page.fill("#script", "return await callTool('hostile:tool_0', { size: 3000000 });");
  await page.click("text=Run script");
  await page.waitForSelector("#result .status.ok");
  const shown = await page.innerText("#result");
  assert.ok(shown.length < 1_000_000, `${shown.length} characters are shown`);
  assert.match(shown, /cut|more|bytes|MB|MiB/i);
  await harmless(page);
});

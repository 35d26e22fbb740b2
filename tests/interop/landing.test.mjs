// The page at `/`, in a real browser.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, tabThrough } from "./inspect.mjs";
import { demo } from "./support.mjs";

let browser;
let server;
before(async () => ([browser, server] = [await launch(), await demo()]));
after(async () => {
  await browser?.close();
  await server?.stop();
});

/// A page of a browser that allows reading the clipboard; `prepare` runs in it before its own script.
async function opened(t, prepare) {
  const context = await browser.newContext({ permissions: ["clipboard-read", "clipboard-write"] });
  t.after(() => context.close());
  const page = await context.newPage();
  if (prepare) await page.addInitScript(prepare);
  await page.goto(new URL("/", server.url).href);
  return page;
}

test("shows what runs, asks nobody else, and fits a phone", async () => {
  const page = await browser.newPage({ viewport: { width: 390, height: 844 }, colorScheme: "dark" });
  const elsewhere = [];
  const complaints = [];
  page.on("request", (request) => {
    if (new URL(request.url()).host !== server.url.host) elsewhere.push(request.url());
  });
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  await page.goto(new URL("/", server.url).href);

  const text = await page.innerText("body");
  for (const expected of ["gatewright-demo", "crm", "billing", "support", server.url.href]) {
    assert.ok(text.includes(expected), `${expected}: ${text}`);
  }
  await page.click("summary >> nth=0");
  assert.ok((await page.innerText("body")).includes("crm:users_list"));

  const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(wider <= 0, `the page is ${wider} px wider than the phone`);
  assert.deepEqual(elsewhere, []);
  assert.deepEqual(complaints.filter((text) => !text.includes("favicon")), []);
  await page.close();
});

/// Presses every button that copies, and compares what is copied with what stands beside it.
async function copies(page, read) {
  const snippets = page.locator(".snippet");
  const count = await snippets.count();
  assert.ok(count > 8, `${count} snippets`);
  const copied = new Set();
  for (let at = 0; at < count; at += 1) {
    const snippet = snippets.nth(at);
    await snippet.evaluate((one) => one.closest("details")?.setAttribute("open", ""));
    await snippet.getByRole("button", { name: "Copy" }).click();
    await snippet.getByRole("button", { name: "Copied" }).waitFor();
    const text = await snippet.locator("pre").textContent();
    assert.equal(await read(), text);
    copied.add(text);
  }
  assert.ok(copied.size > 5 && [...copied].some((text) => text.includes(server.url.href)), [...copied].join("\n\n"));
}

test("its buttons copy the instructions", async (t) => {
  const page = await opened(t);
  await copies(page, () => page.evaluate(() => navigator.clipboard.readText()));
});

test("its buttons copy where a browser gives pages of plain HTTP no clipboard", async (t) => {
  const page = await opened(t, () => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  const reader = await page.context().newPage();
  await reader.goto(new URL("/healthz", server.url).href);
  await copies(page, async () => {
    await reader.bringToFront();
    const text = await reader.evaluate(() => navigator.clipboard.readText());
    await page.bringToFront();
    return text;
  });
});

test("can be used with the keyboard alone", async (t) => {
  const page = await opened(t);
  const closed = await tabThrough(page, "closed");
  // By key, every list opens and every text is copied.
  for (const summary of await page.locator("summary:visible").all()) {
    await summary.focus();
    await page.keyboard.press("Enter");
  }
  const open = await tabThrough(page, "open");
  assert.ok(open > closed && closed > 5, `${closed} stops, ${open} when all is open`);
  const snippet = page.locator(".snippet").last();
  await snippet.getByRole("button").focus();
  await page.keyboard.press("Enter");
  await snippet.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await snippet.locator("pre").textContent());
});

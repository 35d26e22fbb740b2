// The page at `/`, in a real browser.

import assert from "node:assert/strict";
import { test } from "node:test";

import { chromium } from "playwright-core";

import { demo } from "./support.mjs";

test("shows what runs, asks nobody else, and fits a phone", async () => {
  const server = await demo();
  const browser = await chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"],
  });
  try {
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
  } finally {
    await browser.close();
    await server.stop();
  }
});

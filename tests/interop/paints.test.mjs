// First paints of pages with 40 apps and 5,000 tools, for docs/BENCHMARKS.md, beside that of a page with one word: what the browser itself takes.
// Times are printed, and decide nothing.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { launch } from "./inspect.mjs";
import { authorization, full } from "./looks.mjs";

const TIMES = 9;

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
async function firstPaint(address) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
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

test("pages are painted", async () => {
  const pages = {
    plain: `http://127.0.0.1:${plain.address().port}/`,
    landing: new URL("/", server.issuer).href,
    login: authorization(server, { prompt: "login" }),
    overview: `${server.admin}/console`,
    tools: `${server.admin}/console/tools`,
  };
  const measured = Object.fromEntries(Object.keys(pages).map((name) => [name, []]));
  // In turns: load of the machine meets all of them.
  for (let at = 0; at < TIMES; at += 1) {
    for (const [name, address] of Object.entries(pages)) measured[name].push(await firstPaint(address));
  }
  for (const [name, all] of Object.entries(measured)) {
    const middle = (column) => all.map((times) => times[column]).sort((a, b) => a - b)[(TIMES - 1) / 2];
    const [paint, response, cpu] = [0, 1, 2].map(middle);
    assert.ok(response > 0 && paint > 0 && cpu > 0, `${name}: ${paint}, ${response}, ${cpu}`);
    console.log(`${name}: first paint ${Math.round(paint)} ms, response ${Math.round(response)} ms, CPU of the page ${Math.round(cpu)} ms (medians of ${TIMES})`);
  }
});

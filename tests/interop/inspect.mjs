// Looks at pages in a real browser. Screenshots are kept in $SCREENSHOTS (default: .cache/screenshots).

import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

import { chromium } from "playwright-core";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const folder = process.env.SCREENSHOTS ?? join(process.cwd(), "../../screenshots");
await mkdir(folder, { recursive: true });

/// Screens that pages are looked at on.
export const LOOKS = {
  light: { viewport: { width: 1280, height: 800 }, colorScheme: "light" },
  dark: { viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 }, colorScheme: "light", isMobile: true, hasTouch: true, deviceScaleFactor: 2 },
};

/// A browser without a window.
export function launch() {
  return chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"],
  });
}

/// Looks at a page as a screen reader, a phone and a person would.
export async function inspect(page, name) {
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
  // The page's own policy forbids scripts: axe is put in from outside.
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send("Page.getFrameTree");
  const { executionContextId } = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
  const run = async (expression) => {
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
      expression,
      contextId: executionContextId,
      awaitPromise: true,
      returnByValue: true,
    });
    assert.equal(exceptionDetails, undefined, JSON.stringify(exceptionDetails));
    return result.value;
  };
  await run(`${axe}; undefined`);
  const found = await run(
    "axe.run(document).then(r => JSON.stringify({ passes: r.passes.length, violations: r.violations.map(v => [v.id, v.nodes.map(n => n.html)]) }))",
  );
  const { passes, violations } = JSON.parse(found);
  assert.ok(passes > 10, `axe looked at too little: ${passes}`);
  assert.deepEqual(violations, [], name);
  const wider = await run("document.documentElement.scrollWidth - window.innerWidth");
  assert.ok(wider <= 0, `${name} is ${wider} px too wide`);
  // The session stays: with it would go a virtual authenticator of the page.
}

/// Presses Tab until what has the focus fits.
export async function tabTo(page, selector) {
  for (let at = 0; at < 15; at += 1) {
    if (await page.locator(`${selector}:focus`).count()) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`${selector} is not reached with Tab`);
}

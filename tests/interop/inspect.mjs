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
  // A phone shows a page that is too wide smaller: its inner width is no measure.
  const wider = (await run("document.documentElement.scrollWidth")) - page.viewportSize().width;
  assert.ok(wider <= 0, `${name} is ${wider} px too wide`);
  // The session stays: with it would go a virtual authenticator of the page.
}

/// Goes through a page with Tab alone: everything that can be used is reached, in the order of the page, and shows that it has the focus.
export async function tabThrough(page, name) {
  const count = await page.evaluate(() => {
    const usable = "a[href], button, input, select, textarea, summary, [tabindex]";
    // One button of a group of radio buttons is a stop; the arrow keys reach the others.
    const group = (one) => one.type === "radio" && [...document.getElementsByName(one.name)].filter((other) => other.form === one.form);
    const isStop = (one) => {
      const radios = group(one);
      return one.tabIndex >= 0 && !one.disabled && one.checkVisibility({ visibilityProperty: true }) && (!radios || one === (radios.find((other) => other.checked) ?? radios[0]));
    };
    globalThis.stops = [...document.querySelectorAll(usable)].filter(isStop);
    // Tab starts at the top.
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute("tabindex");
    return globalThis.stops.length;
  });
  const reached = [];
  while (reached.length < count) {
    await page.keyboard.press("Tab");
    const [at, html, isMarked] = await page.evaluate(() => {
      const one = document.activeElement;
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(one);
      return [globalThis.stops.indexOf(one), one.outerHTML.slice(0, 200), (outlineStyle !== "none" && outlineWidth !== "0px") || boxShadow !== "none"];
    });
    // The browser makes stops of boxes that scroll.
    if (at < 0 && !html.startsWith("<body")) continue;
    assert.equal(at, reached.length, `${name}: Tab number ${reached.length} comes to ${html}`);
    assert.ok(isMarked, `${name}: nothing shows that this has the focus: ${html}`);
    reached.push(at);
  }
  return count;
}

/// Presses Tab until what has the focus fits.
export async function tabTo(page, selector) {
  for (let at = 0; at < 15; at += 1) {
    if (await page.locator(`${selector}:focus`).count()) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`${selector} is not reached with Tab`);
}

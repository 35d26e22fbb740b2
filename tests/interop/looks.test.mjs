// Every page as people see it: on a phone, a tablet and a screen, in light and dark, with usual content, with nothing, with as much as there can
// be, and with errors. `SCREENSHOTS=folder tests/interop/run looks` keeps the pictures there.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { inspect, launch, tabThrough } from "./inspect.mjs";
import { CALLBACK, PASSWORD, authorization, empty, full, normal, open } from "./looks.mjs";

const WIDTHS = { phone: 390, tablet: 820, screen: 1440 };
const CONSOLE = {
  overview: "", tools: "/tools", tool: "/tool?name=crm:users_create", search: "/search?q=unpaid+invoices", script: "/script",
  resources: "/resources", prompts: "/prompts", pins: "/pins", nothing: "/search?q=zzzzzz", calls: "/calls", call: "/calls/1", runs: "/runs",
  approvals: "/approvals", configuration: "/configuration", missing: "/nothing",
  who: "/tool?name=crm:users_create&subject=ada&client=desktop&scopes=crm:read",
};
const BYTES = 120 * 1024;

let browser;
before(async () => (browser = await launch()));
after(() => browser?.close());

/// A look at pages of one width and colour scheme.
class Visit {
  elsewhere = [];
  complaints = [];
  paints = {};

  constructor(server, width, colorScheme) {
    Object.assign(this, { server, width, colorScheme });
  }

  async begin() {
    const { width, colorScheme } = this;
    const isMobile = width < 500;
    const viewport = { width, height: isMobile ? 844 : 900 };
    this.context = await browser.newContext({ viewport, colorScheme, isMobile, hasTouch: isMobile, reducedMotion: "reduce" });
    this.page = await this.context.newPage();
    this.page.setDefaultTimeout(60_000);
    await this.page.route(`${CALLBACK}**`, (route) => route.fulfill({ contentType: "text/html", body: "<title>Back</title>back at the client" }));
    const ours = [this.server.issuer, this.server.admin, new URL(CALLBACK).origin];
    this.page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      if (protocol !== "data:" && !ours.includes(origin)) this.elsewhere.push(request.url());
    });
    this.page.on("console", (message) => message.type() === "error" && this.complaints.push(message.text()));
    this.page.on("pageerror", (error) => this.complaints.push(String(error)));
  }

  async open(name, path) {
    await this.page.goto(new URL(path, this.server.issuer).href);
    await this.look(name);
  }

  /// Looks at the page that is shown.
  async look(name) {
    const { page, width, colorScheme, server } = this;
    await inspect(page, `${server.title}-${name}-${width}-${colorScheme}`);
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    if (paint) this.paints[name] = Math.round(paint);
    if (width === WIDTHS.screen && server.title.endsWith("normal")) {
      const stops = await tabThrough(page, name);
      assert.ok(stops >= (name.startsWith("console") ? 10 : 0), `${name}: the keyboard comes to ${stops} places`);
    }
    assert.deepEqual(await page.evaluate(broken), [], `${name}: words that break inside`);
    assert.deepEqual(await page.evaluate(cutOff), [], `${name}: tables that are cut off`);
    if (width === WIDTHS.phone) assert.deepEqual(await small(page), [], `${name}: too small for a finger`);
  }

  async end() {
    assert.deepEqual(this.elsewhere, []);
    assert.deepEqual(this.complaints.filter((text) => !/status of 4\d\d/.test(text)), []);
    await this.context.close();
    return this.paints;
  }
}

/// Words of usual length that go on in the next line without a hyphen, in the browser.
function broken() {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (walker.nextNode()) {
    const { textContent, parentElement } = walker.currentNode;
    if (parentElement.closest("pre, textarea, script, style, .visually-hidden") || !parentElement.checkVisibility()) continue;
    for (const { index, 0: word } of textContent.matchAll(/[\p{L}\p{N}]{2,20}(?![\p{L}\p{N}])/gu)) {
      if (/[\p{L}\p{N}]$/u.test(textContent.slice(0, index))) continue;
      range.setStart(walker.currentNode, index);
      range.setEnd(walker.currentNode, index + word.length);
      const tops = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (tops.size > 1) found.push(`${word} in ${textContent.slice(0, 80)}`);
    }
  }
  return found;
}

/// Tables that are wider than their place, in the browser.
function cutOff() {
  const wide = [...document.querySelectorAll(".wide")].filter((box) => box.scrollWidth > box.clientWidth + 1);
  return wide.map((box) => `${box.getAttribute("aria-label")}: ${box.scrollWidth} px in ${box.clientWidth}`);
}

/// Buttons, fields and links that stand alone and are less than 44 px high.
function small(page) {
  return page.evaluate(() => {
    const controls = [...document.querySelectorAll("button, input:not([type=hidden], [type=checkbox]), select, textarea, summary, a.button, nav a")];
    const short = controls.filter((control) => control.checkVisibility() && control.getBoundingClientRect().height < 43.5);
    return short.map((control) => control.outerHTML.slice(0, 120));
  });
}

/// The way of a user: a wrong password, the right one, consent, the account, and out.
async function user(visit) {
  const { page, server } = visit;
  const scope = server.title === "full" ? Object.keys(server.scopes).join(" ") : "crm:read crm:write billing:read";
  await page.goto(authorization(server, { prompt: "login consent", scope }));
  await visit.look("login");
  const signIn = async (password, then) => {
    await page.fill("#username", "ada");
    await page.fill("#password", password);
    await page.keyboard.press("Enter");
    await page.locator(then).waitFor();
  };
  await signIn("wrong", "[role=alert]");
  await visit.look("login-wrong");
  await page.reload();
  assert.ok(await page.getByText("user name or password is wrong").isVisible(), "a reload is a reload, not another try");
  await signIn(PASSWORD, "button[value=allow]");
  await visit.look("consent");
  for (const part of ["facts dd", "list label"]) {
    const broken = await page.$$eval(`.${part}`, (all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent));
    assert.deepEqual(broken, [], "text that does not fit");
  }
  await page.click("button[value=allow]");
  await page.waitForURL(`${CALLBACK}?**`);
  await visit.open("account", "/oauth/account");
  await page.getByRole("button", { name: "Withdraw" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("Applications that you allow").waitFor();
  await visit.open("user-approvals", "/oauth/account/approvals");
  await visit.open("user-questions", "/oauth/account/questions");
  await visit.open("enrol", "/oauth/enrol");
  await visit.open("error", authorization(server, { client_id: "nobody" }));
  await visit.open("sign-out", "/oauth/logout");
  await page.getByText("Stay signed in").click();
  await page.getByRole("heading", { name: /Your account/ }).waitFor();
  await page.goto(new URL("/oauth/logout", server.issuer).href);
  await page.click("button");
  await visit.look("signed-out");
}

/// The pages of the console; gives the bytes of each with its style and script.
async function operator(visit) {
  const sizes = {};
  for (const [name, path] of Object.entries(CONSOLE)) {
    await visit.open(`console-${name}`, `${visit.server.admin}/console${path}`);
    sizes[name] = await visit.page.evaluate(() => performance.getEntries().reduce((sum, entry) => sum + (entry.decodedBodySize ?? 0), 0));
  }
  const run = visit.page.locator(".runs a.name").first();
  await visit.page.goto(`${visit.server.admin}/console/runs`);
  if (await run.count()) {
    await run.click();
    await visit.look("console-run");
  }
  if (visit.server.title === "normal") {
    await visit.page.goto(`${visit.server.admin}/console/script`);
    await visit.page.fill("#script", "const some = 1;\nreturn await callTool('crm:user_list', { limit: some });");
    await visit.page.keyboard.press("Control+Enter");
    await visit.page.locator("#result").waitFor();
    await visit.look("console-pad-failed");
  }
  return sizes;
}

/// Everything that can be opened on the landing page.
async function opened(visit) {
  for (const summary of await visit.page.locator("details:not([name]) > summary").all()) await summary.click();
  await visit.page.locator("summary", { hasText: "Claude Desktop" }).click();
  await visit.look("landing-opened");
}

/// Calls `look` for every width and colour scheme; for those that differ most where no pictures are wanted.
async function visits(server, look) {
  for (const [where, width] of Object.entries(WIDTHS)) {
    for (const colorScheme of process.env.SCREENSHOTS || where === "phone" ? ["light", "dark"] : [where === "tablet" ? "light" : "dark"]) {
      const visit = new Visit(server, width, colorScheme);
      await visit.begin();
      await visit.open("landing", "/");
      await look(visit);
      console.log(`${server.title} on a ${where}, ${colorScheme}: first paint in ms`, JSON.stringify(await visit.end()));
    }
  }
}

for (const make of [normal, empty, full]) {
  test(`every page is fit for people: ${make.name}`, async () => {
    const server = await make();
    const anyone = await open(server.upstreams?.apps, `open-${make.name}`);
    try {
      await visits(server, async (visit) => {
        await user(visit);
        const sizes = await operator(visit);
        if (make === normal) for (const [name, bytes] of Object.entries(sizes)) assert.ok(bytes <= BYTES, `${name} has ${bytes} bytes`);
      });
      await visits(anyone, (visit) => (make === normal ? opened(visit) : undefined));
    } finally {
      await anyone.stop();
      await server.stop();
    }
  });
}

test("the lockout says how long it lasts", async () => {
  const server = await empty();
  try {
    const visit = new Visit(server, WIDTHS.phone, "light");
    await visit.begin();
    const { page } = visit;
    await page.goto(authorization(server));
    for (let tries = 0; tries < 3; tries += 1) {
      await page.fill("#username", "grace");
      await page.fill("#password", "wrong");
      await page.keyboard.press("Enter");
      await page.locator("[role=alert]").waitFor();
    }
    await page.getByText("Try again in 15 minutes.").waitFor();
    await visit.look("locked");
    await visit.end();
  } finally {
    await server.stop();
  }
});

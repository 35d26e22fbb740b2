// The pages of a login, in a real browser: by keyboard, without script, asking nobody else, and readable for everybody.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";

import { LOOKS, inspect, launch, tabTo } from "./inspect.mjs";
import { SCOPES, guarded } from "./oauth.mjs";
import { gatewright } from "./support.mjs";

const PASSWORD = "correct horse battery staple";
const SECRET = "a-secret-of-the-robot-0123456789";

let server, browser, client, callback;
before(async () => {
  // Where the client waits to be called back.
  client = createServer((_, response) => response.setHeader("content-type", "text/html").end("<title>Back</title>back at the client"));
  client.listen(0, "127.0.0.1");
  await once(client, "listening");
  callback = `http://127.0.0.1:${client.address().port}/callback`;
  const passwordHash = execFileSync(gatewright, ["user", "hash"], { input: `${PASSWORD}\n` }).toString().trim();
  server = await guarded({
    local: { login: "password", users: [{ username: "ada", name: "Ada Lovelace", passwordHash }] },
    scopes: { ...SCOPES, "crm:write": "Create and change users and accounts" },
    clients: [
      { clientId: "desktop", name: "Acme Desktop", redirectUris: ["http://127.0.0.1/callback"] },
      { clientId: "robot", clientSecret: SECRET, tokenEndpointAuthMethod: "client_secret_post", grantTypes: ["client_credentials"] },
    ],
    consent: { enabled: true },
    limits: { authorize: 10_000, login: 10_000 },
  }, "127.0.0.1", { approvals: { writes: "ask", approvers: "crm:write" } });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.stop();
  client?.close();
});

function ask(changes = {}) {
  const url = new URL("/oauth/authorize", server.issuer);
  url.search = new URLSearchParams({
    response_type: "code",
    client_id: "desktop",
    redirect_uri: callback,
    scope: "crm:read crm:write billing:read",
    state: "a-state",
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    code_challenge_method: "S256",
    ...changes,
  });
  return url.href;
}

/// A page whose requests and complaints are watched.
async function watched(look, settings = {}) {
  const context = await browser.newContext({ ...look, ...settings });
  const page = await context.newPage();
  const seen = { elsewhere: [], complaints: [] };
  page.on("request", (request) => {
    const { origin } = new URL(request.url());
    if (origin !== server.issuer && origin !== new URL(callback).origin) seen.elsewhere.push(request.url());
  });
  page.on("console", (message) => message.type() === "error" && seen.complaints.push(message.text()));
  return { context, page, seen };
}

for (const [look, settings] of Object.entries(LOOKS)) {
  test(`a person logs in, allows and signs out by keyboard (${look})`, async () => {
    const { context, page, seen } = await watched(settings);
    await page.goto(ask({ prompt: "consent" }));
    await inspect(page, `login-${look}`);
    assert.equal(await page.locator("script").count(), 0);
    assert.equal(await page.evaluate(() => document.activeElement.id), "username");
    await page.keyboard.type("ada");
    await tabTo(page, "#password");
    await page.keyboard.type("wrong password");
    await page.keyboard.press("Enter");
    await page.locator("[role=alert]").waitFor();
    await inspect(page, `login-wrong-${look}`);

    await tabTo(page, "#username");
    await page.keyboard.type("ada");
    await tabTo(page, "#password");
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press("Enter");
    await page.locator("button[value=allow]").waitFor();
    await inspect(page, `consent-${look}`);
    const text = await page.innerText("main");
    for (const told of ["Acme Desktop", "127.0.0.1", "ada", "Read the CRM", "Create and change users", "Read invoices"]) {
      assert.ok(text.includes(told), `${told}: ${text}`);
    }
    // Grants less than was asked for.
    await tabTo(page, "input[value='crm:write']");
    // Already unticked for a user who refused it before.
    const write = page.locator("input[value='crm:write']");
    if (await write.isChecked()) await page.keyboard.press("Space");
    assert.equal(await write.isChecked(), false);
    // The tools of an app are listed for those who open the list, by keyboard too.
    await tabTo(page, "summary");
    assert.match(await page.locator("summary:focus").innerText(), /^billing: \d+ of \d+ tools$/);
    await page.keyboard.press("Enter");
    const listed = await page.locator("details[open] li").allInnerTexts();
    assert.ok(listed.some((line) => line === "billing:invoices_list needs: Read invoices"), listed.join("; "));
    await inspect(page, `consent-tools-${look}`);
    await tabTo(page, "button[value=allow]");
    await page.keyboard.press("Enter");
    await page.waitForURL(`${callback}?**`);
    const answer = new URL(page.url());
    assert.equal(answer.searchParams.get("state"), "a-state");
    const body = new URLSearchParams({
      grant_type: "authorization_code",
      client_id: "desktop",
      redirect_uri: callback,
      code: answer.searchParams.get("code"),
      code_verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    });
    const tokens = await (await fetch(new URL("/oauth/token", server.issuer), { method: "POST", body })).json();
    assert.deepEqual(tokens.scope.split(" ").sort(), ["billing:read", "crm:read"]);

    await page.goto(new URL("/oauth/logout", server.issuer).href);
    await inspect(page, `sign-out-${look}`);
    await tabTo(page, "button");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Signed out" }).waitFor();
    await inspect(page, `signed-out-${look}`);

    const status = (await page.goto(ask({ client_id: "nobody" }))).status();
    assert.equal(status, 400);
    await inspect(page, `error-${look}`);
    assert.deepEqual(seen.elsewhere, []);
    const unexpected = seen.complaints.filter((text) => !/favicon|status of 40[01]/.test(text));
    assert.deepEqual(unexpected, []);
    await context.close();
  });
}

test("the whole flow works where scripts are switched off", async () => {
  const { context, page } = await watched(LOOKS.light, { javaScriptEnabled: false });
  await page.goto(ask({ state: "no-script", prompt: "consent" }));
  await page.fill("#username", "ada");
  await page.fill("#password", PASSWORD);
  await page.click("button[type=submit]");
  await page.click("button[value=allow]");
  await page.waitForURL(`${callback}?**`);
  assert.equal(new URL(page.url()).searchParams.get("state"), "no-script");
  await context.close();
});

test("a person who says no goes back to the client without a code", async () => {
  const { context, page } = await watched(LOOKS.light);
  await page.goto(ask({ prompt: "login consent" }));
  await page.fill("#username", "ada");
  await page.fill("#password", PASSWORD);
  await page.keyboard.press("Enter");
  await page.click("button[value=deny]");
  await page.waitForURL(`${callback}?**`);
  const answer = new URL(page.url()).searchParams;
  assert.deepEqual([answer.get("error"), answer.get("code")], ["access_denied", null]);
  await context.close();
});

/// Calls a tool that needs an approval as the robot, which cannot be asked: the text of the answer.
async function rename(name) {
  const form = { grant_type: "client_credentials", client_id: "robot", client_secret: SECRET, scope: "crm:write" };
  const token = await fetch(new URL("/oauth/token", server.issuer), { method: "POST", body: new URLSearchParams(form) });
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "robot", version: "1" },
  };
  const invoke = { tool: "crm:users_update", input: { id: "usr_0002", name } };
  const answer = await fetch(new URL("/mcp", server.issuer), {
    method: "POST",
    headers: {
      authorization: `Bearer ${(await token.json()).access_token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": "codecall:invoke",
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "codecall:invoke", arguments: invoke, _meta: meta },
    }),
  });
  return answer.text();
}

for (const [look, settings] of Object.entries(LOOKS)) {
  test(`a person approves a call of a robot, behind the login and by keyboard (${look})`, async () => {
    const { context, page, seen } = await watched(settings);
    const [approved, denied] = [`Approved in ${look}`, `Denied in ${look}`];
    for (const name of [approved, denied]) assert.match(await rename(name), /APPROVAL_REQUIRED/);
    await page.goto(new URL("/oauth/account/approvals", server.issuer).href);
    await page.fill("#username", "ada");
    await page.fill("#password", PASSWORD);
    await page.keyboard.press("Enter");
    await page.getByText(approved).waitFor();
    await inspect(page, `approvals-${look}`);
    assert.equal(await page.locator("script").count(), 0);
    for (const [name, button] of [[approved, "Approve"], [denied, "Deny"]]) {
      const entry = page.locator("li.approval", { hasText: name });
      await entry.getByRole("button", { name: button }).focus();
      await page.keyboard.press("Enter");
      await entry.waitFor({ state: "detached" });
    }
    await page.getByText("Nothing waits for you.").waitFor();
    await inspect(page, `approvals-none-${look}`);
    assert.doesNotMatch(await rename(approved), /APPROVAL/);
    assert.match(await rename(denied), /APPROVAL_DENIED/);
    assert.deepEqual(seen, { elsewhere: [], complaints: [] });
    await context.close();
  });
}

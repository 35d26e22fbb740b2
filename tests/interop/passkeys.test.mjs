// Passkeys in a real browser with a virtual authenticator: added on the account page, then enough to finish an OAuth flow.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { LOOKS, inspect, launch, tabTo } from "./inspect.mjs";
import { SCOPES, guarded } from "./oauth.mjs";
import { gatewright } from "./support.mjs";

const PASSWORD = "correct horse battery staple";

let server, browser, client, callback, folder, auth;
before(async () => {
  client = createServer((_, response) => response.setHeader("content-type", "text/html").end("<title>Back</title>back at the client"));
  client.listen(0, "127.0.0.1");
  await once(client, "listening");
  callback = `http://127.0.0.1:${client.address().port}/callback`;
  folder = await mkdtemp(join(tmpdir(), "gatewright-passkeys-"));
  const passwordHash = execFileSync(gatewright, ["user", "hash"], { input: `${PASSWORD}\n` }).toString().trim();
  const users = ["light", "dark", "phone", "script", "failing"].map((username) => ({ username, passwordHash }));
  auth = {
    local: { login: "password", passkeys: { enabled: true }, users: [...users, { username: "grace", name: "Grace Hopper" }] },
    tokenStorage: { type: "sqlite", config: { path: join(folder, "auth.db") } },
    scopes: SCOPES,
    clients: [{ clientId: "desktop", name: "Acme Desktop", redirectUris: ["http://127.0.0.1/callback"] }],
    limits: { authorize: 10_000, login: 10_000 },
  };
  server = await guarded(auth, "localhost");
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.stop();
  client?.close();
  await rm(folder, { recursive: true, force: true });
});

const at = (path) => new URL(path, server.issuer).href;

function ask() {
  const url = new URL(at("/oauth/authorize"));
  url.search = new URLSearchParams({
    response_type: "code",
    client_id: "desktop",
    redirect_uri: callback,
    scope: "crm:read",
    state: "a-state",
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    code_challenge_method: "S256",
  });
  return url.href;
}

/// A page with an authenticator that verifies its user; its requests and complaints are watched.
async function visit(look = LOOKS.light) {
  const context = await browser.newContext(look);
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const seen = { elsewhere: [], complaints: [] };
  page.on("request", (request) => {
    const { origin } = new URL(request.url());
    if (origin !== server.issuer && origin !== new URL(callback).origin) seen.elsewhere.push(request.url());
  });
  page.on("console", (message) => message.type() === "error" && seen.complaints.push(message.text()));
  const session = await context.newCDPSession(page);
  await session.send("WebAuthn.enable");
  const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  const verified = (isUserVerified) => session.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified });
  const credentials = async () => (await session.send("WebAuthn.getCredentials", { authenticatorId })).credentials;
  const close = async () => {
    assert.deepEqual(seen.elsewhere, []);
    assert.deepEqual(seen.complaints.filter((text) => !/favicon|status of 40[01]/.test(text)), []);
    await context.close();
  };
  return { page, verified, credentials, close };
}

/// Signs in with the password and opens the account page.
async function account(page, name) {
  await page.goto(at("/oauth/account"));
  await page.fill("#username", name);
  await page.fill("#password", PASSWORD);
  await page.click("button:text-is('Sign in')");
  await page.getByRole("heading", { name: /Your account/ }).waitFor();
}

async function add(page, name) {
  await page.fill("#name", name);
  await page.click("button:text-is('Add a passkey')");
  await page.getByRole("heading", { name, exact: true }).waitFor();
}

async function signOut(page) {
  await page.click("a:text-is('Sign out') >> nth=0");
  await page.getByRole("heading", { name: "Sign out?", exact: true }).waitFor();
  await page.click("button");
  await page.getByRole("heading", { name: "Signed out", exact: true }).waitFor();
}

for (const [look, settings] of Object.entries(LOOKS)) {
  test(`a person adds a passkey, signs out, and finishes an authorization with it (${look})`, async () => {
    const { page, credentials, close } = await visit(settings);
    await account(page, look);
    await inspect(page, `account-empty-${look}`);
    await add(page, "Work laptop");
    await inspect(page, `account-${look}`);
    const [made] = await credentials();
    assert.deepEqual([made.rpId, made.isResidentCredential], ["localhost", true]);
    await signOut(page);
    await inspect(page, `signed-out-passkeys-${look}`);

    await page.goto(ask());
    await inspect(page, `login-passkeys-${look}`);
    // By keyboard: the button is reached and pressed without a mouse.
    await tabTo(page, "form[data-passkey] button");
    await page.keyboard.press("Enter");
    await page.locator("button[value=allow]").waitFor();
    await inspect(page, `consent-passkeys-${look}`);
    assert.match(await page.innerText("main"), new RegExp(`Signed in as ${look}`));
    await page.click("button[value=allow]");
    await page.waitForURL(`${callback}?**`);
    const answer = new URL(page.url()).searchParams;
    const body = new URLSearchParams({
      grant_type: "authorization_code",
      client_id: "desktop",
      redirect_uri: callback,
      code: answer.get("code"),
      code_verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    });
    const tokens = await (await fetch(at("/oauth/token"), { method: "POST", body })).json();
    assert.equal(tokens.scope, "crm:read");

    await page.goto(at("/oauth/account"));
    assert.match(await page.innerText("main"), /last used on/);
    await page.click("summary");
    await page.fill("input[value='Work laptop']", "Old laptop");
    await page.click("button:text-is('Rename')");
    await page.getByRole("heading", { name: "Old laptop", exact: true }).waitFor();
    await page.click("summary");
    await page.click("button:text-is('Remove')");
    await page.getByText("You have none yet").waitFor();
    await close();
  });
}

test("a passkey that is not verified or not known signs nobody in, and the page says so", async () => {
  const { page, verified, close } = await visit();
  await account(page, "failing");
  await add(page, "Key");
  await page.click("summary");
  await page.click("button:text-is('Remove')");
  await page.getByText("You have none yet").waitFor();
  await signOut(page);
  await page.goto(ask());
  await page.click("form[data-passkey] button");
  await page.getByText("That passkey was not accepted.").waitFor();
  await inspect(page, "login-passkey-wrong-light");
  await verified(false);
  await page.click("form[data-passkey] button");
  await page.getByText("No passkey was used").waitFor();
  await inspect(page, "login-passkey-cancelled-light");
  await page.fill("#username", "failing");
  await page.fill("#password", PASSWORD);
  await page.keyboard.press("Enter");
  await page.locator("button[value=allow]").waitFor();
  await close();
});

test("an authenticator is added once for an account", async () => {
  const { page, close } = await visit();
  await account(page, "failing");
  await add(page, "Once");
  await page.fill("#name", "Twice");
  await page.click("button:text-is('Add a passkey')");
  await page.getByText("holds a passkey for this account already").waitFor();
  await close();
});

test("where scripts are switched off, the password works and the account page says what it needs", async () => {
  const context = await browser.newContext({ ...LOOKS.light, javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(at("/oauth/account"));
  assert.equal(await page.locator("form[data-passkey]").isVisible(), false);
  await account(page, "script");
  await page.getByText("with scripts turned on").waitFor();
  assert.equal(await page.locator("form[data-passkey]").isVisible(), false);
  await page.goto(ask());
  await page.click("button[value=allow]");
  await page.waitForURL(`${callback}?**`);
  await context.close();
});

test("no other script runs on a page with a passkey button", async () => {
  const { page } = await visit();
  const refused = [];
  page.on("console", (message) => refused.push(message.text()));
  await page.goto(ask());
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    document.body.append(script);
  });
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.ok(refused.some((text) => /Content Security Policy/.test(text)), refused.join("\n"));
  await page.context().close();
});

test("a user without a password begins with the link of the command line", async () => {
  const file = join(folder, "gatewright.json");
  const http = { publicUrl: server.issuer, port: Number(new URL(server.issuer).port) };
  await writeFile(file, JSON.stringify({ http, apps: { crm: { builtin: "crm" } }, auth: { mode: "orchestrated", type: "local", ...auth } }));
  const link = execFileSync(gatewright, ["user", "enrol", "grace", "--config", file]).toString().trim();
  assert.ok(link.startsWith(`${server.issuer}/oauth/enrol#`), link);
  const code = link.split("#")[1];
  const { page, close } = await visit();
  await page.goto(at("/oauth/enrol"));
  await inspect(page, "enrol-code-light");
  const asked = [];
  page.on("request", (request) => asked.push(`${request.url()} ${request.headers().referer ?? ""}`));
  await page.goto(link);
  await page.waitForSelector("#name");
  await inspect(page, "enrol-light");
  assert.ok(!asked.concat(page.url()).some((seen) => seen.includes(code)), "the code is in no address that is sent, nor left in the address bar");
  await page.fill("#name", "Phone");
  await page.click("button:text-is('Make a passkey')");
  await page.getByRole("heading", { name: "Phone", exact: true }).waitFor();
  await signOut(page);
  await page.goto(at("/oauth/account"));
  await page.click("form[data-passkey] button");
  await page.getByRole("heading", { name: "Phone", exact: true }).waitFor();
  assert.match(await page.innerText("main"), /Signed in as grace/);
  await page.goto(link);
  await page.getByText("This link is over or was used").waitFor();
  await close();
});

test("without script the code of a link is pasted, and the page says that a passkey needs one", async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(at("/oauth/enrol#not-a-code"));
  await page.fill("#token", "not-a-code");
  await page.click("button");
  await page.getByText("This link is over or was used").waitFor();
  await context.close();
});

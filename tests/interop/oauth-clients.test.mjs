// Real OAuth clients against our authorization server: discovery, registration, code, refresh, revocation.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { after, before, test } from "node:test";

import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as oauth from "oauth4webapi";
import * as openid from "openid-client";

import { Browser, CLIENTS, guarded } from "./oauth.mjs";

const CALLBACK = "http://127.0.0.1:49152/callback";
const GRANTS = ["authorization_code", "refresh_token"];
const insecure = { [oauth.allowInsecureRequests]: true };

let server;
before(async () => {
  server = await guarded();
});
after(() => server?.stop());

/// State that the official client asks its host to keep; `known` is a registration made beforehand.
class Kept {
  browser = new Browser();
  redirectUrl = CALLBACK;
  clientMetadata = { client_name: "Interop", redirect_uris: [CALLBACK], grant_types: GRANTS, token_endpoint_auth_method: "none" };
  constructor(known) {
    this.known = known;
  }
  state = () => "state-of-the-official-client";
  clientInformation = () => this.known;
  saveClientInformation = (information) => (this.known = information);
  tokens = () => this.held;
  saveTokens = (tokens) => (this.held = tokens);
  saveCodeVerifier = (verifier) => (this.verifier = verifier);
  codeVerifier = () => this.verifier;
  redirectToAuthorization = async (url) => (this.answer = await this.browser.authorize(url));
}

async function official(kept) {
  const client = new Client({ name: "interop", version: "1.0.0" });
  const first = new StreamableHTTPClientTransport(server.url, { authProvider: kept });
  await assert.rejects(client.connect(first), UnauthorizedError);
  assert.equal(kept.answer.searchParams.get("iss"), server.issuer);
  assert.equal(kept.answer.searchParams.get("state"), kept.state());
  await first.finishAuth(kept.answer.searchParams.get("code"));
  await client.connect(new StreamableHTTPClientTransport(server.url, { authProvider: kept }));
  return client;
}

async function usesTools(client) {
  const script = "return (await callTool('crm:users_list', { limit: 2 })).items.length;";
  const { structuredContent } = await client.callTool({ name: "codecall:execute", arguments: { script } });
  assert.deepEqual([structuredContent.status, structuredContent.result], ["ok", 2]);
}

const registrations = {
  "registers itself": () => undefined,
  "is registered beforehand": () => ({ client_id: CLIENTS.public.clientId }),
  "is registered beforehand with a secret": () => ({ client_id: CLIENTS.confidential.clientId, client_secret: CLIENTS.confidential.clientSecret }),
};
for (const [what, known] of Object.entries(registrations)) {
  test(`the TypeScript SDK logs in, uses tools and refreshes when it ${what}`, async () => {
    const kept = new Kept(known());
    const client = await official(kept);
    await usesTools(client);
    const before = kept.held;
    // The access token is lost: the SDK gets another one with the refresh token, without the user.
    kept.held = { ...before, access_token: "not-a-token" };
    kept.answer = undefined;
    await usesTools(client);
    assert.equal(kept.answer, undefined);
    assert.notEqual(kept.held.refresh_token, before.refresh_token);
    await client.close();
  });
}

async function discovered() {
  const resource = await oauth.processResourceDiscoveryResponse(server.url, await oauth.resourceDiscoveryRequest(server.url, insecure));
  assert.deepEqual(resource.authorization_servers, [server.issuer]);
  const issuer = new URL(resource.authorization_servers[0]);
  const answer = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure });
  return oauth.processDiscoveryResponse(issuer, answer);
}

/// The whole life of a grant, every answer checked by `oauth4webapi`.
async function wholeLife(client, authentication, { dpop, pushed } = {}) {
  const as = await discovered();
  const DPoP = dpop && oauth.DPoP(client, await oauth.generateKeyPair("ES256"));
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const parameters = new URLSearchParams({
    client_id: client.client_id,
    redirect_uri: CALLBACK,
    response_type: "code",
    scope: "crm:read billing:read",
    resource: server.url.href,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
  });
  const request = new URL(as.authorization_endpoint);
  request.search = parameters;
  if (pushed) {
    const answer = await oauth.pushedAuthorizationRequest(as, client, authentication, parameters, { DPoP, ...insecure });
    const { request_uri } = await oauth.processPushedAuthorizationResponse(as, client, answer);
    request.search = new URLSearchParams({ client_id: client.client_id, request_uri });
  }
  const answer = await new Browser().authorize(request);
  const callback = oauth.validateAuthResponse(as, client, answer, state);
  const redeem = () =>
    oauth.authorizationCodeGrantRequest(as, client, authentication, callback, CALLBACK, verifier, { DPoP, ...insecure });
  const tokens = await oauth.processAuthorizationCodeResponse(as, client, await redeem());
  assert.equal(tokens.token_type, dpop ? "dpop" : "bearer");
  assert.equal(tokens.scope, "crm:read billing:read");

  const claims = await oauth.validateJwtAccessToken(
    as,
    new Request(server.url, {
      headers: {
        authorization: `${dpop ? "DPoP" : "Bearer"} ${tokens.access_token}`,
        ...(dpop && { dpop: await proof(DPoP, as, tokens) }),
      },
    }),
    server.url.href,
    insecure,
  );
  assert.equal(claims.client_id, client.client_id);

  const list = (token) =>
    oauth.protectedResourceRequest(token, "POST", server.url, new Headers(MCP), LIST, { DPoP, ...insecure });
  const listed = await list(tokens.access_token);
  assert.equal(listed.status, 200);
  assert.equal((await listed.json()).result.tools.length, 4);

  const refreshed = await oauth.processRefreshTokenResponse(
    as,
    client,
    await oauth.refreshTokenGrantRequest(as, client, authentication, tokens.refresh_token, { DPoP, ...insecure }),
  );
  assert.equal((await list(refreshed.access_token)).status, 200);
  const revoked = await oauth.revocationRequest(as, client, authentication, refreshed.refresh_token, insecure);
  await oauth.processRevocationResponse(revoked);
  const again = await oauth.refreshTokenGrantRequest(as, client, authentication, refreshed.refresh_token, { DPoP, ...insecure });
  await assert.rejects(oauth.processRefreshTokenResponse(as, client, again), (error) => error.error === "invalid_grant");
  await refusedWithin(RECHECK_MS, () => list(refreshed.access_token));

  // A code that was used is used up.
  await assert.rejects(oauth.processAuthorizationCodeResponse(as, client, await redeem()), (error) => error.error === "invalid_grant");
}

/// Time for which another instance than the one that was told may go on taking a revoked token (docs/auth/checklist.md, F22).
const RECHECK_MS = 5_000;

/// Waits until the request is refused with a challenge; where one instance serves all, the first try has to be.
async function refusedWithin(ms, request) {
  const deadline = Date.now() + (server.instances > 1 ? ms : 0);
  for (;;) {
    const refused = await request().then(
      () => undefined,
      (error) => error,
    );
    if (refused) return assert.ok(refused instanceof oauth.WWWAuthenticateChallengeError, String(refused));
    assert.ok(Date.now() < deadline, "a revoked token is still taken");
    await new Promise((done) => setTimeout(done, 100));
  }
}

/// A proof for one request, made by the client library itself and caught on its way.
async function proof(DPoP, as, tokens) {
  let caught;
  const catcher = async (_, init) => {
    caught = new Headers(init.headers).get("dpop");
    return new Response("{}", { status: 200 });
  };
  await oauth.protectedResourceRequest(tokens.access_token, "GET", server.url, undefined, undefined, { DPoP, [oauth.customFetch]: catcher, ...insecure });
  return caught;
}

const MCP = {
  accept: "application/json, text/event-stream",
  "content-type": "application/json",
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": "tools/list",
};
const META = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };
const LIST = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: META } });

test("oauth4webapi goes through a grant's life as a public client", () =>
  wholeLife({ client_id: CLIENTS.public.clientId }, oauth.None()));

test("oauth4webapi goes through a grant's life with a secret", () =>
  wholeLife({ client_id: CLIENTS.confidential.clientId }, oauth.ClientSecretBasic(CLIENTS.confidential.clientSecret)));

test("oauth4webapi goes through a grant's life with tokens bound to its key (DPoP)", () =>
  wholeLife({ client_id: CLIENTS.public.clientId }, oauth.None(), { dpop: true }));

test("oauth4webapi goes through a grant's life with a pushed request", () =>
  wholeLife({ client_id: CLIENTS.public.clientId }, oauth.None(), { pushed: true }));

test("oauth4webapi registers itself and goes through a grant's life", async () => {
  const as = await discovered();
  const metadata = { client_name: "oauth4webapi", redirect_uris: [CALLBACK], grant_types: GRANTS, token_endpoint_auth_method: "client_secret_post" };
  const answer = await oauth.dynamicClientRegistrationRequest(as, metadata, insecure);
  const client = await oauth.processDynamicClientRegistrationResponse(answer);
  await wholeLife(client, oauth.ClientSecretPost(client.client_secret));
});

test("oauth4webapi goes through a grant's life as a client that is its metadata document", async () => {
  let document;
  const host = createServer((_, response) => response.setHeader("content-type", "application/json").end(JSON.stringify(document)));
  host.listen(0, "127.0.0.1");
  await once(host, "listening");
  const id = `http://127.0.0.1:${host.address().port}/client.json`;
  document = { client_id: id, client_name: "A document", redirect_uris: [CALLBACK], grant_types: GRANTS, token_endpoint_auth_method: "none" };
  try {
    await wholeLife({ client_id: id }, oauth.None());
  } finally {
    host.close();
  }
});

test("openid-client goes through discovery, code, refresh, userinfo and revocation", async () => {
  const execute = { execute: [openid.allowInsecureRequests] };
  const { clientId, clientSecret } = CLIENTS.confidential;
  const config = await openid.discovery(new URL(server.issuer), clientId, clientSecret, openid.ClientSecretBasic(clientSecret), execute);
  // The signature of each ID token is checked with the published keys, not only its claims.
  openid.enableNonRepudiationChecks(config);
  const verifier = openid.randomPKCECodeVerifier();
  const [state, nonce] = [openid.randomState(), openid.randomNonce()];
  const request = openid.buildAuthorizationUrl(config, {
    redirect_uri: CALLBACK,
    scope: "openid profile crm:read",
    resource: server.url.href,
    state,
    nonce,
    max_age: "3600",
    code_challenge: await openid.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
  });
  const answer = await new Browser().authorize(request);
  const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, maxAge: 3600, idTokenExpected: true };
  const tokens = await openid.authorizationCodeGrant(config, answer, checks);
  const { sub, aud, auth_time } = tokens.claims();
  assert.deepEqual([sub, aud], ["user:ada", clientId]);
  const { preferred_username } = await openid.fetchUserInfo(config, tokens.access_token, sub);
  assert.equal(preferred_username, "ada");
  const refreshed = await openid.refreshTokenGrant(config, tokens.refresh_token);
  assert.deepEqual([refreshed.claims().sub, refreshed.claims().auth_time], [sub, auth_time]);
  await openid.tokenRevocation(config, refreshed.refresh_token);
  await assert.rejects(openid.refreshTokenGrant(config, refreshed.refresh_token), (error) => error.error === "invalid_grant");
});

test("oauth4webapi checks the ID token and its signature, and refuses one with another nonce", async () => {
  const issuer = new URL(server.issuer);
  const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm: "oidc", ...insecure }));
  const client = { client_id: CLIENTS.public.clientId, default_max_age: 3600 };
  const login = async (asked, expected) => {
    const verifier = oauth.generateRandomCodeVerifier();
    const request = new URL(as.authorization_endpoint);
    request.search = new URLSearchParams({
      client_id: client.client_id,
      redirect_uri: CALLBACK,
      response_type: "code",
      scope: "openid",
      state: "s",
      nonce: asked,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    });
    const callback = oauth.validateAuthResponse(as, client, await new Browser().authorize(request), "s");
    const answer = await oauth.authorizationCodeGrantRequest(as, client, oauth.None(), callback, CALLBACK, verifier, insecure);
    const tokens = await oauth.processAuthorizationCodeResponse(as, client, answer, { expectedNonce: expected, requireIdToken: true });
    await oauth.validateApplicationLevelSignature(as, answer, insecure);
    return oauth.getValidatedIdTokenClaims(tokens);
  };
  assert.equal((await login("one", "one")).sub, "user:ada");
  await assert.rejects(login("one", "another"), /nonce/);
});

test("openid-client builds a logout that leads back to it", async () => {
  const execute = { execute: [openid.allowInsecureRequests] };
  const { clientId, clientSecret } = CLIENTS.confidential;
  const config = await openid.discovery(new URL(server.issuer), clientId, clientSecret, openid.ClientSecretBasic(clientSecret), execute);
  const verifier = openid.randomPKCECodeVerifier();
  const request = openid.buildAuthorizationUrl(config, {
    redirect_uri: CALLBACK,
    scope: "openid",
    state: "s",
    code_challenge: await openid.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
  });
  const browser = new Browser();
  const tokens = await openid.authorizationCodeGrant(config, await browser.authorize(request), { pkceCodeVerifier: verifier, expectedState: "s" });
  const [bye] = CLIENTS.confidential.postLogoutRedirectUris;
  const logout = openid.buildEndSessionUrl(config, { post_logout_redirect_uri: bye, id_token_hint: tokens.id_token, state: "bye" });
  assert.equal((await browser.authorize(logout)).href, `${bye}?state=bye`);
});

test("openid-client gets a token for itself with client_credentials", async () => {
  const { clientId, clientSecret } = CLIENTS.confidential;
  const config = await openid.discovery(new URL(server.issuer), clientId, clientSecret, openid.ClientSecretPost(clientSecret), {
    execute: [openid.allowInsecureRequests],
  }).catch((error) => error);
  // Registered for `client_secret_basic`: another way to show the secret is refused, whatever the secret.
  await assert.rejects(openid.clientCredentialsGrant(config, { scope: "crm:read" }), (error) => error.error === "invalid_client");
  const basic = await openid.discovery(new URL(server.issuer), clientId, clientSecret, openid.ClientSecretBasic(clientSecret), {
    execute: [openid.allowInsecureRequests],
  });
  const tokens = await openid.clientCredentialsGrant(basic, { scope: "crm:read", resource: server.url.href });
  assert.equal(tokens.scope, "crm:read");
});

test("a user who says no sends the client home with access_denied", async () => {
  const as = await discovered();
  const request = new URL(as.authorization_endpoint);
  request.search = new URLSearchParams({
    client_id: CLIENTS.public.clientId,
    redirect_uri: CALLBACK,
    response_type: "code",
    state: "s",
    code_challenge: await oauth.calculatePKCECodeChallenge(oauth.generateRandomCodeVerifier()),
    code_challenge_method: "S256",
  });
  const answer = await new Browser().authorize(request, { user: "grace", decision: "deny" });
  const client = { client_id: CLIENTS.public.clientId };
  assert.throws(() => oauth.validateAuthResponse(as, client, answer, "s"), (error) => error.error === "access_denied");
});

test("a grant without a tool's scope neither shows the tool nor lets a script call it", async () => {
  const as = await discovered();
  const client = { client_id: CLIENTS.confidential.clientId };
  const authentication = oauth.ClientSecretBasic(CLIENTS.confidential.clientSecret);
  const answer = await oauth.clientCredentialsGrantRequest(as, client, authentication, { scope: "billing:read" }, insecure);
  const { access_token } = await oauth.processClientCredentialsResponse(as, client, answer);
  const mcp = new Client({ name: "interop", version: "1.0.0" });
  const headers = { authorization: `Bearer ${access_token}` };
  await mcp.connect(new StreamableHTTPClientTransport(server.url, { requestInit: { headers } }));
  const call = async (name, args) => (await mcp.callTool({ name, arguments: args })).structuredContent;
  const found = await call("codecall:search", { query: "list users", topK: 100 });
  assert.deepEqual(found.tools.filter((tool) => tool.name.startsWith("crm:")), []);
  const script = "return await callTool('crm:users_list', {}, { throwOnError: false });";
  const executed = await call("codecall:execute", { script });
  assert.equal(executed.status, "ok");
  assert.equal(executed.result.success, false);
  await mcp.close();
});

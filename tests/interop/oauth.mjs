// A server that wants a login.

export { Browser } from "./browser.mjs";
export { freePort } from "./instances.mjs";
import { freePort } from "./instances.mjs";
import { serve } from "./support.mjs";

/// The demo's tools name the first two; nothing needs the third.
export const SCOPES = { "crm:read": "Read the CRM", "billing:read": "Read invoices", "extra": "Nothing in particular" };

export const CLIENTS = {
  public: { clientId: "interop-public", redirectUris: ["http://127.0.0.1/callback"] },
  confidential: {
    clientId: "interop-confidential",
    clientSecret: "kept-between-us-0123456789-abcdefghij",
    redirectUris: ["http://127.0.0.1/callback"],
    postLogoutRedirectUris: ["http://127.0.0.1/bye"],
    grantTypes: ["authorization_code", "refresh_token", "client_credentials"],
  },
};

/// Starts a server with the built-in authorization server; any user name passes its login.
export async function guarded(auth = {}, host = "127.0.0.1", more = {}) {
  const port = await freePort();
  const issuer = `http://${host}:${port}`;
  const server = await serve({
    http: { port, publicUrl: issuer },
    apps: { crm: { builtin: "crm" }, billing: { builtin: "billing" } },
    auth: {
      mode: "orchestrated",
      type: "local",
      tokenStorage: { type: "memory" },
      local: { login: "demo" },
      dcrEnabled: true,
      scopes: SCOPES,
      clients: Object.values(CLIENTS),
      cimd: { enabled: true, allowPrivate: true },
      ...auth,
    },
    ...more,
  });
  return { ...server, issuer };
}

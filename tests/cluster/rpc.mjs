// MCP over HTTP with one connection for each request: what a balancer without stickiness sees at its worst.
// Nothing here repeats a request.

import { request } from "node:http";

const MODERN = "2026-07-28";
export const OLD = "2025-11-25";

/// One exchange; `{status, headers, message}`. Throws when the connection breaks.
export function exchange(port, method, body, headers = {}, { timeout = 30_000, agent = false, headers: more = {} } = {}) {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? "" : JSON.stringify(body);
    const sent = request(
      {
        port,
        host: "127.0.0.1",
        path: "/mcp",
        method,
        agent,
        timeout,
        headers: {
          accept: "application/json, text/event-stream",
          ...(text ? { "content-type": "application/json", "content-length": Buffer.byteLength(text) } : {}),
          ...headers,
          ...more,
        },
      },
      (response) => {
        const chunks = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("error", reject);
        response.on("close", () => response.complete || reject(new Error("the answer broke off")));
        response.on("end", () => {
          const answer = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode, headers: response.headers, message: parse(answer) });
        });
      },
    );
    sent.on("timeout", () => sent.destroy(new Error("no answer in time")));
    sent.on("error", reject);
    sent.end(text);
  });
}

/// The JSON-RPC message of an answer, of either kind.
function parse(text) {
  const events = text.split("\n").filter((line) => /^data: ?\{/.test(line));
  const json = text.startsWith("{") ? text : events.at(-1)?.replace(/^data: ?/, "");
  return json ? JSON.parse(json) : undefined;
}

/// A request of the era without sessions.
export function modern(port, method, params, options) {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": options?.capabilities ?? {},
    "io.modelcontextprotocol/clientInfo": { name: "cluster", version: "1" },
  };
  const body = { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: meta } };
  const named = params.name ?? params.taskId;
  const name = named ? { "mcp-name": named } : {};
  return exchange(port, "POST", body, { "mcp-protocol-version": MODERN, "mcp-method": method, ...name }, options);
}

/// Opens a session of the older era; its id.
export async function open(port, options) {
  const params = { protocolVersion: OLD, capabilities: {}, clientInfo: { name: "cluster", version: "1" } };
  const opened = await exchange(port, "POST", { jsonrpc: "2.0", id: 0, method: "initialize", params }, {}, options);
  const session = opened.headers["mcp-session-id"];
  if (opened.status !== 200 || !session) throw new Error(`initialize: ${opened.status}`);
  const told = await inSession(port, session, "notifications/initialized", undefined, options);
  if (told.status !== 202) throw new Error(`initialized: ${told.status}`);
  return session;
}

/// A request, or a notification, in a session.
export function inSession(port, session, method, params, options) {
  const id = method.startsWith("notifications/") ? {} : { id: 1 };
  const headers = { "mcp-session-id": session, "mcp-protocol-version": OLD };
  return exchange(port, "POST", { jsonrpc: "2.0", ...id, method, ...(params ? { params } : {}) }, headers, options);
}

/// Ends a session.
export function end(port, session, options) {
  return exchange(port, "DELETE", undefined, { "mcp-session-id": session, "mcp-protocol-version": OLD }, options);
}

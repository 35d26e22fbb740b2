// An MCP server of both eras on Streamable HTTP, for suites to try everything on: it calls the outside world, asks the issuer
// who calls, counts, and tells subscribers of changes.
import http from "node:http";

const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";
const tools = ["fetch", "whoami", "count", "change"];
const streams = new Map();
let count = 0;

const text = (value) => ({ content: [{ type: "text", text: String(value) }] });

async function call(name, args, request) {
  if (name === "fetch") {
    const answer = await fetch(args.url, { headers: { "x-key": process.env.API_KEY ?? "none" } });
    return text(`${answer.status} ${await answer.text()}`);
  }
  if (name === "whoami") {
    const answer = await fetch(`${process.env.IDP_PROVIDER_URL}/userinfo`, {
      headers: { authorization: request.headers.authorization ?? "" },
    });
    return text(answer.ok ? (await answer.json()).sub : "a stranger");
  }
  if (name === "count") return text(++count);
  if (name === "change") {
    for (const [id, stream] of streams) {
      const params = { _meta: { [SUBSCRIPTION]: id } };
      const message = { jsonrpc: "2.0", method: "notifications/tools/list_changed", params };
      stream.write(`data: ${JSON.stringify(message)}\n\n`);
    }
    return text("changed");
  }
}

async function answer(message, request) {
  const { id, method, params } = message;
  const serverInfo = { name: "suite-server", version: "1" };
  const capabilities = { tools: { listChanged: true } };
  const results = {
    initialize: () => ({ protocolVersion: params.protocolVersion, capabilities, serverInfo }),
    "server/discover": () => ({ supportedVersions: ["2026-07-28"], capabilities, serverInfo }),
    ping: () => ({}),
    "tools/list": () => ({ tools: tools.map((name) => ({ name, inputSchema: { type: "object" } })) }),
    "tools/call": () => call(params.name, params.arguments, request),
  };
  const result = await results[method]?.();
  return result
    ? { jsonrpc: "2.0", id, result: { resultType: "complete", ttlMs: 0, cacheScope: "private", ...result } }
    : { jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } };
}

function listen({ id, params }, request, response) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const acknowledged = {
    jsonrpc: "2.0",
    method: "notifications/subscriptions/acknowledged",
    params: { notifications: params.notifications, _meta: { [SUBSCRIPTION]: id } },
  };
  response.write(`data: ${JSON.stringify(acknowledged)}\n\n`);
  streams.set(id, response);
  request.on("close", () => streams.delete(id));
}

const server = http.createServer(async (request, response) => {
  if (request.url !== "/mcp" || request.method !== "POST") return response.writeHead(404).end();
  let body = "";
  for await (const part of request) body += part;
  const message = JSON.parse(body);
  if (message.id === undefined) return response.writeHead(202).end();
  if (message.method === "subscriptions/listen") return listen(message, response, response);
  const token = request.headers.authorization?.replace("Bearer ", "");
  if (process.env.CLOSED && !token) {
    return response.writeHead(401, { "www-authenticate": "Bearer" }).end("who are you?");
  }
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(await answer(message, request)));
});
server.listen(Number(process.env.PORT), "127.0.0.1", () => console.log("up as", process.pid));

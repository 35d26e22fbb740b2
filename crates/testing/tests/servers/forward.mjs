// An MCP server without dependencies whose tool `forward` calls a tool of the server that its configuration names: `{tool, with}` gives the whole answer.
import { readFileSync } from "node:fs";
import http from "node:http";

const { crm } = JSON.parse(readFileSync(process.argv[2], "utf8"));

const ask = async (message, session) => {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  if (session) headers["mcp-session-id"] = session;
  const response = await fetch(crm, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", ...message }) });
  const text = await response.text();
  const data = text.split("\n").filter((line) => line.startsWith("data: {")).at(-1);
  return { session: response.headers.get("mcp-session-id"), answer: data ? JSON.parse(data.slice(6)) : text && JSON.parse(text) };
};

const forward = async ({ tool, with: input }) => {
  const hello = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "forward", version: "1" } };
  const { session } = await ask({ id: 1, method: "initialize", params: hello });
  await ask({ method: "notifications/initialized" }, session);
  const { answer } = await ask({ id: 2, method: "tools/call", params: { name: tool, arguments: input } }, session);
  return { content: [], structuredContent: answer.result };
};

const results = {
  initialize: (params) => ({
    protocolVersion: params.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "forward", version: "1" },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [{ name: "forward", inputSchema: { type: "object" } }] }),
  "tools/call": (params) => forward(params.arguments),
};

const server = http.createServer(async (request, response) => {
  if (request.method !== "POST") return response.writeHead(request.url === "/health" ? 200 : 405).end();
  let text = "";
  for await (const part of request) text += part;
  const { id, method, params } = JSON.parse(text);
  if (id === undefined) return response.writeHead(202).end();
  const result = await results[method]?.(params ?? {});
  const body = result ? { result } : { error: { code: -32601, message: "Method not found" } };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id, ...body }));
});
server.listen(process.env.PORT, "127.0.0.1");
process.on("SIGTERM", () => server.close(() => process.exit(0)));

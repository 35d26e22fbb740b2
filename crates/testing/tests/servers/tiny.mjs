// A small MCP server without dependencies. BREAK says how it misbehaves.
import http from "node:http";

const how = process.env.BREAK ?? "";
if (how === "exit") {
  console.error("no database: giving up");
  process.exit(3);
}
if (how === "sigterm") process.on("SIGTERM", () => console.log("not going"));

const answer = (message) => {
  if (how === "bare" && message.method === "tools/list") return { id: message.id, result: { tools: [] } };
  if (how === "both" && message.method === "tools/list") {
    return { jsonrpc: "2.0", id: message.id, result: { tools: [] }, error: { code: 1, message: "both" } };
  }
  if (how === "other-id" && message.method === "tools/list") return { jsonrpc: "2.0", id: "other", result: {} };
  if (how === "die" && message.method === "tools/list") process.kill(process.pid, "SIGKILL");
  const result = {
    initialize: {
      protocolVersion: how === "revision" ? "1999-01-01" : message.params?.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "tiny", version: "1" },
    },
    ping: {},
    "server/discover": how === "stateless" && {
      resultType: "complete",
      supportedVersions: ["2026-07-28"],
      capabilities: { tools: {} },
      ttlMs: 0,
      cacheScope: "private",
    },
    "tools/list": { tools: [{ name: "env", inputSchema: { type: how === "schema" ? "string" : "object" } }] },
    "tools/call": {
      content: [{ type: "text", text: process.env[message.params?.arguments?.name] ?? "unset" }],
    },
  }[message.method];
  return result
    ? { jsonrpc: "2.0", id: message.id, result }
    : { jsonrpc: "2.0", id: message.id, error: { code: -32601, message: "Method not found" } };
};

if (process.argv.includes("--stdio")) {
  if (how === "stdout") console.log("Server starting...");
  process.stdin.setEncoding("utf8");
  let text = "";
  process.stdin.on("data", (data) => {
    text += data;
    for (let end; (end = text.indexOf("\n")) >= 0; text = text.slice(end + 1)) {
      const message = JSON.parse(text.slice(0, end));
      if (message.id === undefined || how === "mute") continue;
      if (message.method === "tools/list" && how === "silence") continue;
      if (message.method === "tools/list" && how === "words") {
        console.log("let me see");
        continue;
      }
      console.log(JSON.stringify(answer(message)));
      if (message.method === "tools/list" && how === "twice") console.log(JSON.stringify(answer(message)));
    }
  });
} else {
  const users = { good: "ada", better: "bob" };
  let stream;
  const server = http.createServer((request, response) => {
    if (request.url === "/sse") {
      stream = response.writeHead(200, { "content-type": "text/event-stream" });
      return stream.write("event: endpoint\ndata: /messages?sessionId=1\n\n");
    }
    if (request.url.startsWith("/messages")) {
      let body = "";
      request.on("data", (data) => (body += data));
      return request.on("end", () => {
        response.writeHead(202).end();
        const message = JSON.parse(body);
        if (message.id !== undefined) stream.write(`data: ${JSON.stringify(answer(message))}\n\n`);
      });
    }
    if (request.url !== "/mcp") return response.writeHead(404).end();
    if (request.method !== "POST") return response.writeHead(405).end();
    const token = request.headers.authorization?.replace("Bearer ", "");
    if (how === "auth" && !users[token]) {
      response.writeHead(401, { "www-authenticate": 'Bearer error="invalid_token"' });
      return response.end("who are you?");
    }
    let body = "";
    request.on("data", (data) => (body += data));
    request.on("end", async () => {
      let message;
      try {
        message = JSON.parse(body);
      } catch {
        response.writeHead(400, { "content-type": "application/json" });
        return response.end(
          JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error" } }),
        );
      }
      if (message.id === undefined) return response.writeHead(202).end();
      if (how === "refuse" && message.method !== "initialize") {
        const [status, id] = message.method === "ping" ? [403, null] : [401, message.id];
        response.writeHead(status, { "content-type": "application/json", "www-authenticate": "Bearer" });
        const error = { code: -32001, message: "Unauthorized", data: { error: "invalid_token" } };
        return response.end(JSON.stringify({ jsonrpc: "2.0", id, error }));
      }
      if (how === "calls" && message.method === "tools/call") await fetch("https://nobody.example/called").catch(() => {});
      response.writeHead(200, { "content-type": how === "content-type" ? "text/plain" : "application/json" });
      response.end(JSON.stringify(answer(message)));
    });
  });
  const port = how === "port" ? 0 : Number(process.env.PORT);
  if (how !== "silent") server.listen(port, "127.0.0.1", () => console.log("up as", process.pid));
  else setInterval(() => {}, 1000);
  if (how === "children") {
    const { spawn } = await import("node:child_process");
    const child = spawn("sleep", ["1000"], { stdio: "ignore" });
    console.log("child", child.pid);
  }
}

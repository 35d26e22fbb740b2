// A small MCP server with state, without dependencies: over HTTP on PORT, or with --stdio.
import http from "node:http";

let [count, balance, waiting, next] = [0, 100, new Map(), 1];
const text = (value) => ({ content: [{ type: "text", text: String(value) }] });
const tool = (name, properties = {}) => ({ name, inputSchema: { type: "object", properties } });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

const tools = {
  count: () => text(++count),
  pid: () => text(process.pid),
  env: ({ name }) => text(process.env[name] ?? "unset"),
  add: ({ a, b }) => text(a + b),
  slow: async ({ ms }) => (await pause(ms), text("done")),
  // Checks and pays in two steps, as a racy server does.
  withdraw: async ({ amount }) => {
    const enough = balance >= amount;
    await pause(20);
    if (!enough) return { ...text("not enough"), isError: true };
    balance -= amount;
    return text(balance);
  },
  balance: () => text(balance),
  fetch: async ({ url, ...options }) => {
    try {
      const answer = await fetch(url, options);
      return text(`${answer.status} ${await answer.text()}`);
    } catch (error) {
      return { ...text(error.cause?.code ?? error.message), isError: true };
    }
  },
  progress: async (_, { token, tell }) => {
    for (const progress of [1, 2]) tell("notifications/progress", { progressToken: token, progress, total: 2 });
    return text("done");
  },
  say: ({ text: data }, { tell }) => (tell("notifications/message", { level: "info", data }), text("said")),
  ask: async ({ message }, { ask }) => {
    const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
    const answer = await ask("elicitation/create", { message, requestedSchema });
    return text(answer.result?.content?.name ?? answer.result?.action ?? answer.error.message);
  },
  sample: async ({ prompt }, { ask }) => {
    const messages = [{ role: "user", content: { type: "text", text: prompt } }];
    const answer = await ask("sampling/createMessage", { messages, maxTokens: 10 });
    return text(answer.result?.content.text ?? answer.error.message);
  },
  roots: async (_, { ask }) => text((await ask("roots/list")).result.roots.map((root) => root.uri).join(" ")),
  die: () => process.exit(7),
};

async function answer({ id, method, params }, session) {
  const results = {
    initialize: () => ({
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {}, logging: {} },
      serverInfo: { name: "bank", version: "1" },
    }),
    ping: () => ({}),
    "tools/list": () => ({ tools: Object.keys(tools).map((name) => tool(name)) }),
    "tools/call": () => tools[params.name]?.(params.arguments ?? {}, { ...session, token: params._meta?.progressToken }),
  };
  const result = await results[method]?.();
  const error = { code: method === "tools/call" ? -32602 : -32601, message: `no ${params?.name ?? method}` };
  return { jsonrpc: "2.0", id, ...(result ? { result } : { error }) };
}

const session = (send) => ({
  tell: (method, params) => send({ jsonrpc: "2.0", method, params }),
  ask: (method, params) =>
    new Promise((done) => {
      waiting.set(next, done);
      send({ jsonrpc: "2.0", id: next++, method, params });
    }),
});

if (process.argv.includes("--stdio")) {
  if (process.argv.includes("--chatty")) console.log("the bank is open");
  const send = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
  let buffer = "";
  process.stdin.on("data", (data) => {
    buffer += data;
    for (let end; (end = buffer.indexOf("\n")) >= 0; buffer = buffer.slice(end + 1)) {
      const message = JSON.parse(buffer.slice(0, end));
      if (message.method === undefined) waiting.get(message.id)?.(message);
      else if (message.id !== undefined) answer(message, session(send)).then(send);
      else if (message.method === "notifications/cancelled") console.error("cancelled", JSON.stringify(message.params));
    }
  });
  process.stdin.on("end", () => process.exit(0));
} else {
  http
    .createServer((request, response) => {
      if (request.method !== "POST" || request.url !== "/mcp") return response.writeHead(405).end();
      let body = "";
      request.on("data", (data) => (body += data));
      request.on("end", async () => {
        const message = JSON.parse(body);
        if (process.env.SHOW_HEADERS) console.log("authorization:", request.headers.authorization ?? "none");
        if (message.id === undefined) return response.writeHead(202).end();
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify(await answer(message, session(() => {}))));
      });
    })
    .listen(Number(process.env.PORT), "127.0.0.1", () => console.log("open on", process.env.PORT));
}

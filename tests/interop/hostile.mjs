// An MCP server whose every text tries to leave its place on a page, with as many tools as asked for and very long answers.

import { createInterface } from "node:readline";

const MANY = Number(process.argv[2] ?? 10);
const EVIL = `"><img src=x onerror="window.pwned=1"></textarea></script><script>window.pwned=1</script>{{7*7}}\u202egnp.exe\u0000\u001b[31m'-alert(1)-'`;

const schema = (title) => ({
  type: "object",
  title,
  properties: {
    [EVIL.slice(0, 60)]: { type: "string", description: EVIL, default: EVIL },
    link: { type: "string", format: "uri", description: "javascript:window.pwned=1", enum: ["javascript:window.pwned=1", EVIL] },
    size: { type: "integer", description: "length of the answer", default: 10 },
  },
});
const tools = Array.from({ length: MANY }, (_, at) => ({
  name: `tool_${at}`,
  title: EVIL,
  description: `Number ${at}. ${EVIL} ${"long words ".repeat(at === 1 ? 5_000 : 1)}`,
  inputSchema: schema(EVIL),
}));
tools.push({ name: EVIL, description: EVIL, inputSchema: { type: "object" } });

const answers = {
  initialize: (params) => ({
    protocolVersion: params.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: EVIL, title: EVIL, version: EVIL, websiteUrl: "javascript:window.pwned=1" },
    instructions: EVIL,
  }),
  "tools/list": () => ({ tools }),
  "tools/call": ({ arguments: { size = 10 } }) => {
    const text = EVIL + "<b>long</b> ".repeat(size / 12);
    return { content: [{ type: "text", text }], structuredContent: { [EVIL]: text }, ...(size === 13 ? { isError: true } : {}) };
  },
  ping: () => ({}),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method];
  const body = answer ? { result: answer(params ?? {}) } : { error: { code: -32601, message: EVIL } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...body })}\n`);
}

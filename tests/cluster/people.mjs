// An MCP server whose one tool names no output schema, and answers with what it was given.

import { createInterface } from "node:readline";

const tool = {
  name: "find",
  description: "Finds people.",
  inputSchema: { type: "object", properties: { answer: { type: "string" } }, required: ["answer"] },
};

const answers = {
  initialize: (params) => ({
    protocolVersion: params.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "people", version: "1" },
  }),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": ({ arguments: { answer } }) => ({ content: [{ type: "text", text: answer }] }),
  ping: () => ({}),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method];
  const body = answer ? { result: answer(params ?? {}) } : { error: { code: -32601, message: "no such method" } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...body })}\n`);
}

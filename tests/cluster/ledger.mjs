// An MCP server whose one tool has an effect that can be counted: it appends a line to a file.
// Written by hand so that nothing but our own gateway could repeat a call.

import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [file] = process.argv.slice(2);
const tool = {
  name: "add",
  description: "Adds one line to the ledger.",
  inputSchema: {
    type: "object",
    properties: { id: { type: "string" }, wait: { type: "number" } },
    required: ["id"],
    additionalProperties: false,
  },
};

const answers = {
  initialize: (params) => ({
    protocolVersion: params.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "ledger", version: "1" },
  }),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": async ({ arguments: { id, wait = 0 } }) => {
    appendFileSync(file, `${id}\n`);
    if (wait) await new Promise((done) => setTimeout(done, wait));
    return { content: [{ type: "text", text: id }], structuredContent: { id } };
  },
  ping: () => ({}),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method];
  const reply = (body) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...body })}\n`);
  if (!answer) reply({ error: { code: -32601, message: "no such method" } });
  else Promise.resolve(answer(params ?? {})).then((result) => reply({ result }));
}

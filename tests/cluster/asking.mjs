// An MCP server of the older era over stdio that asks its client during a call, and writes down each step with the process that made it.

import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [file] = process.argv.slice(2);
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const note = (step) => appendFileSync(file, `${process.pid} ${step}\n`);

const inputSchema = { type: "object", properties: { id: { type: "string" } }, required: ["id"] };
const tools = [
  { name: "add", description: "Writes a line.", inputSchema },
  { name: "order", description: "Asks for a name, and writes it down.", inputSchema },
];

/// The questions that are open, by the id of their request.
const asked = new Map();
let questions = 0;

function ask(id) {
  questions += 1;
  const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
  const params = { message: `Who orders ${id}?`, requestedSchema };
  send({ id: `q${questions}`, method: "elicitation/create", params });
  return new Promise((answer) => asked.set(`q${questions}`, answer));
}

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "asking", version: "1" },
  }),
  "tools/list": () => ({ tools }),
  "tools/call": async ({ name, arguments: { id } }) => {
    note(`${name} ${id}`);
    if (name === "add") return { content: [{ type: "text", text: id }] };
    const { action, content } = await ask(id);
    note(`${action} ${id}`);
    return { content: [{ type: "text", text: content?.name ?? action }] };
  },
  ping: () => ({}),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result } = JSON.parse(line);
  if (!method && asked.has(id)) {
    const answer = asked.get(id);
    asked.delete(id);
    answer(result ?? { action: "cancel" });
  } else if (method && id !== undefined) {
    const answer = answers[method];
    if (!answer) send({ id, error: { code: -32601, message: "no such method" } });
    else Promise.resolve(answer(params ?? {})).then((result) => send({ id, result }));
  }
}

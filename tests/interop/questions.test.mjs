// Questions of servers of both eras, answered by the official TypeScript clients: 1.x, and 2.x in both eras.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { INSTANCES, ready, serve } from "./support.mjs";

const { TOOLS, PYTHON } = process.env;
const info = { name: "interop", version: "1.0.0" };

let gateway;

before(async () => {
  const everything = join(TOOLS, "@modelcontextprotocol", "server-everything", "dist", "index.js");
  gateway = await serve({
    apps: {
      everything: { command: join(TOOLS, ".bin", "node"), args: [everything, "stdio"] },
      asks: { command: PYTHON, args: [join(import.meta.dirname, "fastmcp_asks.py")] },
      modern: { builtin: "everything" },
    },
  });
  await ready(gateway.url);
});

after(() => gateway?.stop());

const sample = () => ({ role: "assistant", content: { type: "text", text: "a sample" }, model: "test" });
const roots = () => ({ roots: [{ uri: "file:///w/ada" }] });

/// Clients whose user answers every form with Ada, each with the questions that it heard.
const CLIENTS = {
  "1.x": () => {
    const asked = [];
    const client = new Client(info, { capabilities: { elicitation: {}, sampling: {}, roots: {} } });
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => fill(params, asked));
    client.setRequestHandler(CreateMessageRequestSchema, sample);
    client.setRequestHandler(ListRootsRequestSchema, roots);
    return [client, asked, StreamableHTTPClientTransport];
  },
  "2.x, older era": () => second("legacy"),
  "2.x, newer era": () => second({ pin: "2026-07-28" }),
};

function second(mode) {
  const asked = [];
  const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
  const client = new Client2(info, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler("elicitation/create", ({ params }) => fill(params, asked));
  client.setRequestHandler("sampling/createMessage", sample);
  client.setRequestHandler("roots/list", roots);
  return [client, asked, Transport2];
}

function fill({ message, requestedSchema }, asked) {
  asked.push(message);
  const fields = Object.keys(requestedSchema.properties).filter((field) => ["name", "value", "color", "context"].includes(field));
  return { action: "accept", content: Object.fromEntries(fields.map((field) => [field, "Ada"])) };
}

for (const [version, make] of Object.entries(CLIENTS)) {
  test(`client ${version} answers questions of servers of both eras`, async (t) => {
    const [client, asked, Transport] = make();
    const address = new URL(gateway.url);
    address.searchParams.set("mode", "direct");
    await client.connect(new Transport(address));
    t.after(() => client.close());
    const text = async (name, args = {}) => {
      const result = await client.callTool({ name, arguments: args });
      return result.content.map((block) => block.text).join("\n");
    };
    assert.match(await text("everything:trigger-elicitation-request"), /Ada/);
    assert.match(await text("everything:trigger-sampling-request", { prompt: "hi" }), /a sample/);
    assert.match(await text("asks:greet"), /Hello, Ada!/);
    assert.match(await text("asks:order"), /Ada of Ada/);
    assert.match(await text("modern:test_input_required_result_elicitation"), /Hello, Ada!/);
    assert.match(await text("modern:test_input_required_result_sampling"), /a sample/);
    assert.match(await text("modern:test_input_required_result_list_roots"), /file:\/\/\/w\/ada/);
    // Its state is signed with a key of the process.
    const rounds = INSTANCES === 1 || !version.includes("newer") ? 2 : 0;
    if (rounds) assert.match(await text("modern:test_input_required_result_multi_round"), /likes/);
    assert.equal(asked.length, 1 + 1 + 2 + 1 + rounds, JSON.stringify(asked));
    const { prompts } = await client.listPrompts();
    const { name } = prompts.find((one) => one.name.endsWith("test_input_required_result_prompt"));
    const prompt = await client.getPrompt({ name });
    assert.equal(prompt.messages.length, 1);
  });

  test(`client ${version} answers questions of a tool that it invokes`, async (t) => {
    const [client, asked, Transport] = make();
    await client.connect(new Transport(gateway.url));
    t.after(() => client.close());
    const args = { tool: "asks:greet", input: {} };
    const { structuredContent } = await client.callTool({ name: "codecall:invoke", arguments: args });
    assert.match(JSON.stringify(structuredContent), /Hello, Ada!/);
    assert.deepEqual(asked, ["What is your name?"]);
  });
}

// The official TypeScript SDK's client, over HTTP and stdio.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { demo, gatewright } from "./support.mjs";

const META = ["codecall:search", "codecall:describe", "codecall:execute", "codecall:invoke"];

async function checkMetaTools(client) {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), META);

  const call = async (name, args) => (await client.callTool({ name, arguments: args })).structuredContent;
  const found = await call("codecall:search", { query: "list users" });
  assert.equal(found.tools[0].name, "crm:users_list");

  const described = await call("codecall:describe", { toolNames: ["crm:users_list", "codecall:search"] });
  assert.equal(described.tools[0].appId, "crm");
  assert.deepEqual(described.notFound, ["codecall:search"]);

  const script = "const page = await callTool('crm:users_list', { limit: 2 }); return page.items.length;";
  const executed = await call("codecall:execute", { script });
  assert.equal(executed.status, "ok");
  assert.equal(executed.result, 2);

  const invoked = await call("codecall:invoke", { tool: "crm:users_list", input: { limit: 1 } });
  assert.equal(invoked.status, "ok");
}

test("lists and calls the meta-tools over Streamable HTTP", async () => {
  const server = await demo();
  const client = new Client({ name: "interop", version: "1.0.0" });
  try {
    await client.connect(new StreamableHTTPClientTransport(server.url));
    await checkMetaTools(client);
    const { resources } = await client.listResources();
    assert.ok(resources.length > 0);
    const { contents } = await client.readResource({ uri: resources[0].uri });
    assert.equal(contents[0].uri, resources[0].uri);
    const { prompts } = await client.listPrompts();
    assert.ok(prompts.length > 0);
  } finally {
    await client.close();
    await server.stop();
  }
});

test("lists and calls the meta-tools over stdio", async () => {
  const folder = await mkdtemp(join(tmpdir(), "gatewright-"));
  const config = join(folder, "gatewright.yaml");
  await writeFile(config, "apps:\n  crm: { builtin: crm }\n");
  const client = new Client({ name: "interop", version: "1.0.0" });
  try {
    await client.connect(new StdioClientTransport({ command: gatewright, args: ["serve", "--stdio", "--config", config] }));
    await checkMetaTools(client);
  } finally {
    await client.close();
    await rm(folder, { recursive: true, force: true });
  }
});

test("is told when a plan calls tools, if it asked for progress", async () => {
  const server = await demo();
  const client = new Client({ name: "interop", version: "1.0.0" });
  try {
    await client.connect(new StreamableHTTPClientTransport(server.url));
    const seen = [];
    const script = "for (const n of [1, 2, 3]) { await callTool('crm:users_list', {}); } return 'done';";
    const params = { name: "codecall:execute", arguments: { script } };
    await client.callTool(params, undefined, { onprogress: (progress) => seen.push(progress) });
    assert.deepEqual(seen.map((progress) => progress.progress), [1, 2, 3]);
    assert.match(seen[0].message, /crm:users_list/);
  } finally {
    await client.close();
    await server.stop();
  }
});

// The client compares structured content with the listed output schema, of errors too, and throws the answer away when it does not fit.
test("reads every kind of refusal of a meta-tool", async () => {
  const folder = await mkdtemp(join(tmpdir(), "gatewright-"));
  const config = join(folder, "gatewright.yaml");
  const limits = META.map((tool) => `  - { tool: "${tool}", limit: 3, window: 1h }\n`).join("");
  await writeFile(config, `apps:\n  crm: { builtin: crm }\nrateLimits:\n${limits}`);
  const client = new Client({ name: "interop", version: "1.0.0" });
  const good = [{ query: "users" }, { toolNames: ["crm:users_list"] }, { script: "return 1" }, { tool: "crm:users_list", input: {} }];
  try {
    await client.connect(new StdioClientTransport({ command: gatewright, args: ["serve", "--stdio", "--config", config] }));
    await client.listTools();
    for (const [at, name] of META.entries()) {
      const call = (args) => client.callTool({ name, arguments: args });
      const codes = [];
      for (const args of [{ wrong: 1 }, { unknown: true }, good[at], good[at]]) {
        const { isError, structuredContent } = await call(args);
        if (!isError) continue;
        assert.notEqual(structuredContent.status ?? "ok", "ok", name);
        codes.push(structuredContent.error.code);
      }
      assert.deepEqual(codes, ["VALIDATION_ERROR", "VALIDATION_ERROR", "RATE_LIMIT"], name);
    }
  } finally {
    await client.close();
    await rm(folder, { recursive: true, force: true });
  }
});

test("reads the refusals of tools that have an output schema", async () => {
  const folder = await mkdtemp(join(tmpdir(), "gatewright-"));
  const config = join(folder, "gatewright.yaml");
  await writeFile(config, 'codecall: { mode: metadata_driven }\napps:\n  crm: { builtin: crm }\nrateLimits: [{ tool: "crm:*", limit: 1, window: 1h }]\n');
  const client = new Client({ name: "interop", version: "1.0.0" });
  try {
    await client.connect(new StdioClientTransport({ command: gatewright, args: ["serve", "--stdio", "--config", config] }));
    const { tools } = await client.listTools();
    assert.ok(tools.find((tool) => tool.name === "crm:users_get").outputSchema);
    const bad = await client.callTool({ name: "crm:users_get", arguments: {} });
    assert.deepEqual([bad.isError, bad._meta.code], [true, "VALIDATION_ERROR"]);
    await client.callTool({ name: "crm:users_list", arguments: {} });
    const limited = await client.callTool({ name: "crm:users_list", arguments: {} });
    assert.deepEqual([limited.isError, limited._meta.code], [true, "RATE_LIMIT"]);
  } finally {
    await client.close();
    await rm(folder, { recursive: true, force: true });
  }
});

// Real MCP servers of others behind one gateway: a script reads from one, transforms, and writes to another.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { ready, serve } from "./support.mjs";

const { TOOLS, PYTHON } = process.env;
const server = (name) => join(TOOLS, "@modelcontextprotocol", name, "dist", "index.js");

let folder, gateway, client;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "gatewright-files-"));
  await writeFile(join(folder, "people.csv"), "name,city\nAda,London\nGrace,New York\nLinus,Helsinki\n");
  const node = join(TOOLS, ".bin", "node");
  gateway = await serve({
    apps: {
      everything: { command: node, args: [server("server-everything"), "stdio"] },
      files: { command: node, args: [server("server-filesystem"), folder] },
      memory: { command: node, args: [server("server-memory")], env: { MEMORY_FILE_PATH: join(folder, "memory.json") } },
      words: { command: PYTHON, args: [join(import.meta.dirname, "fastmcp_words.py")] },
    },
    codecall: { vm: { timeoutMs: 20000 } },
  });
  await ready(gateway.url);
  client = new Client({ name: "interop", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(gateway.url));
});

after(async () => {
  await client?.close();
  await gateway?.stop();
  await rm(folder, { recursive: true, force: true });
});

const call = async (name, args) => (await client.callTool({ name, arguments: args })).structuredContent;

test("tools of all four servers are found by what they do", async () => {
  for (const [query, app] of [
    ["read the text of a file", "files"],
    ["add two numbers", "everything"],
    ["create entities in the knowledge graph", "memory"],
    ["count the words of a text", "words"],
  ]) {
    const { tools } = await call("codecall:search", { query });
    assert.ok(tools.some((tool) => tool.appId === app), `${query}: ${JSON.stringify(tools.map((tool) => tool.name))}`);
  }
});

test("a script reads from one server, transforms with another and writes to a third", async () => {
  const script = `
    const path = codecallContext.folder + '/people.csv';
    const read = await callTool('files:read_text_file', { path });
    const text = typeof read === 'string' ? read : read.content;
    const rows = text.trim().split('\\n').slice(1).map((line) => line.split(','));
    const shouted = await __safe_parallel(rows.map(([name]) => () => callTool('words:shout', { text: name })));
    const entities = rows.map(([name, city], n) => ({
      name, entityType: 'person', observations: ['lives in ' + city, 'is called ' + (shouted[n].result ?? shouted[n])],
    }));
    await callTool('memory:create_entities', { entities });
    const graph = await callTool('memory:read_graph', {});
    await callTool('files:write_file', { path: codecallContext.folder + '/report.txt', content: entities.map((e) => e.observations.join(', ')).join('\\n') });
    return graph.entities.map((entity) => entity.name).sort();`;
  const body = await call("codecall:execute", { script, context: { folder } });
  assert.equal(body.status, "ok", JSON.stringify(body, null, 1));
  assert.deepEqual(body.result, ["Ada", "Grace", "Linus"]);
  assert.match(await readFile(join(folder, "report.txt"), "utf8"), /lives in Helsinki, is called LINUS!/);
  assert.match(await readFile(join(folder, "memory.json"), "utf8"), /Grace/);
});

test("an error of a server is a tool error with its message", async () => {
  const body = await call("codecall:invoke", { tool: "files:read_text_file", input: { path: "/etc/shadow" } });
  assert.equal(body.status, "error");
  assert.match(body.error.message, /denied|outside/i);
});

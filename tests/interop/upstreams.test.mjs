// Real MCP servers of others behind one gateway: a script reads from one, transforms, and writes to another.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { freePort } from "./instances.mjs";
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

/// A client for which every tool is in the list, and its connection.
async function direct(url, answers = () => ({})) {
  const address = new URL(url);
  address.searchParams.set("mode", "direct");
  const own = new Client({ name: "interop", version: "1.0.0" }, { capabilities: { elicitation: {} } });
  own.setRequestHandler(ElicitRequestSchema, answers);
  await own.connect(new StreamableHTTPClientTransport(address));
  return own;
}

const RESEARCH = "everything:simulate-research-query";

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

test("an error names the folder on the server's command line, to clients with and without roots", async (t) => {
  const rooted = new Client({ name: "interop", version: "1.0.0" }, { capabilities: { roots: {} } });
  rooted.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: pathToFileURL(folder).href }] }));
  await rooted.connect(new StreamableHTTPClientTransport(gateway.url));
  t.after(() => rooted.close());
  const args = { tool: "files:read_text_file", input: { path: "/etc/shadow" } };
  const { structuredContent: kept } = await rooted.callTool({ name: "codecall:invoke", arguments: args });
  assert.ok(kept.error.message.includes(folder), kept.error.message);
  const script = "return await callTool('files:read_text_file', { path: '/etc/shadow' })";
  const { structuredContent: thrown } = await rooted.callTool({ name: "codecall:execute", arguments: { script } });
  assert.ok(thrown.error.message.includes(folder), thrown.error.message);
  const without = (await call("codecall:invoke", args)).error.message;
  assert.ok(without.includes(folder) && !without.includes("[path]"), without);
});

test("a tool that runs only as a task gives its result to a call, an invocation and a script", async (t) => {
  const own = await direct(gateway.url);
  t.after(() => own.close());
  const result = await own.callTool({ name: RESEARCH, arguments: { topic: "tides" } });
  assert.match(result.content[0].text, /Research Report: tides/, JSON.stringify(result));
  const { tools } = await own.listTools();
  assert.ok(tools.some((one) => one.name === RESEARCH));
  assert.ok(tools.every((one) => one.execution === undefined), "the gateway runs tasks itself and offers none");
  const invoked = await call("codecall:invoke", { tool: RESEARCH, input: { topic: "rivers" } });
  assert.match(JSON.stringify(invoked.result), /Research Report: rivers/, JSON.stringify(invoked));
  const script = `const read = (topic) => callTool('${RESEARCH}', { topic });
    return (await Promise.all([read('lakes'), read('seas')])).map((text) => text.split('\\n')[0]);`;
  const body = await call("codecall:execute", { script });
  assert.deepEqual(body.result, ["# Research Report: lakes", "# Research Report: seas"], JSON.stringify(body));
});

test("a question that a server asks from a task reaches the client of the call", async (t) => {
  const asked = [];
  const own = await direct(gateway.url, ({ params }) => {
    asked.push(params.message);
    return { action: "accept", content: { interpretation: "snake" } };
  });
  t.after(() => own.close());
  const result = await own.callTool({ name: RESEARCH, arguments: { topic: "python", ambiguous: true } });
  assert.equal(asked.length, 1);
  assert.match(result.content[0].text, /python \(snake\)/, JSON.stringify(result));
});

test("a server over HTTP runs its tasks for the gateway too", async (t) => {
  const port = await freePort();
  const node = join(TOOLS, ".bin", "node");
  const child = spawn(node, [server("server-everything"), "streamableHttp"], { env: { ...process.env, PORT: port }, stdio: "ignore" });
  t.after(() => child.kill("SIGKILL"));
  const address = `http://127.0.0.1:${port}/mcp`;
  while (!(await fetch(address).catch(() => undefined))) await new Promise((done) => setTimeout(done, 50));
  const second = await serve({ apps: { everything: { url: address } } });
  t.after(() => second.stop());
  await ready(second.url);
  const own = await direct(second.url);
  t.after(() => own.close());
  const result = await own.callTool({ name: RESEARCH, arguments: { topic: "tides" } });
  assert.match(result.content[0].text, /Research Report: tides/, JSON.stringify(result));
});

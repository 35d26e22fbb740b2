// Calls of `codecall:execute`, each by a client of its own, of every official SDK and era and of FastMCP.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CreateMessageRequestSchema, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const { PYTHON, PYTHON1 } = process.env;
const NEWER = "2026-07-28";
const info = { name: "interop", version: "1.0.0" };

/// The clients by name. `execute` makes one call; `follows` is true for those that support tasks (SEP-2663).
///
/// A call has `url`, `headers`, `arguments`, and the answers of the person and the model: `form` for every form, of whose content those fields are sent
/// that the form has, and `sample`. With the action `leave` the client is gone once it is asked, without another word. A client declares only the
/// capabilities that it has answers for, and tasks if `tasks` is true. The result has the structured content as `body`, and all that was `asked`.
export const CLIENTS = {
  "TypeScript SDK 1.x": { execute: typescript1 },
  "TypeScript SDK 2.x, older era": { execute: typescript2("legacy") },
  "TypeScript SDK 2.x, newer era": { execute: typescript2({ pin: NEWER }) },
  "Python SDK 1.x": { execute: python(PYTHON1, "sdk1", "legacy") },
  "Python SDK 2.x, older era": { execute: python(PYTHON, "sdk", "legacy") },
  "Python SDK 2.x, newer era": { execute: python(PYTHON, "sdk", NEWER), follows: true },
  "FastMCP's client, older era": { execute: python(PYTHON, "fastmcp", "legacy") },
  // Its default takes the newer era, which tasks need, if the server knows it.
  "FastMCP's client, newer era": { execute: python(PYTHON, "fastmcp", "auto"), follows: true },
};

async function typescript1({ url, headers, form, sample, arguments: args }) {
  const person = new Person(form, sample);
  const client = new Client(info, { capabilities: { ...(form && { elicitation: {} }), ...(sample && { sampling: {} }) } });
  if (form) client.setRequestHandler(ElicitRequestSchema, ({ params }) => person.fill(params));
  if (sample) client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => person.create(params));
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return called(client, args, person);
}

function typescript2(mode) {
  return async ({ url, headers, form, sample, arguments: args }) => {
    const person = new Person(form, sample);
    const capabilities = { ...(form && { elicitation: { form: {} } }), ...(sample && { sampling: {} }) };
    const client = new Client2(info, { capabilities, versionNegotiation: { mode } });
    if (form) client.setRequestHandler("elicitation/create", ({ params }) => person.fill(params));
    if (sample) client.setRequestHandler("sampling/createMessage", ({ params }) => person.create(params));
    await client.connect(new Transport2(url, { requestInit: { headers } }));
    return called(client, args, person);
  };
}

async function called(client, args, person) {
  const call = client.callTool({ name: "codecall:execute", arguments: args }).then(({ structuredContent: body }) => ({ body }));
  try {
    const result = await Promise.race([call, person.left]);
    return { ...result, asked: person.asked };
  } finally {
    // The call that it left open.
    call.catch(() => {});
    await client.close();
  }
}

/// The person who fills in forms, and the model, with all that they were asked.
class Person {
  asked = [];

  constructor(form, sample) {
    Object.assign(this, { form, sample });
    this.left = new Promise((leave) => (this.leave = leave));
  }

  fill({ message, requestedSchema }) {
    this.asked.push(message);
    const { action, content } = this.form;
    if (action === "leave") {
      this.leave({});
      return new Promise(() => {});
    }
    if (action !== "accept") return { action };
    const fields = Object.entries(content).filter(([field]) => field in requestedSchema.properties);
    return { action, content: Object.fromEntries(fields) };
  }

  create({ messages }) {
    this.asked.push(messages[0].content.text);
    return { role: "assistant", content: { type: "text", text: this.sample }, model: "test" };
  }
}

/// Running processes of clients in Python.
const processes = new Map();

function python(command, ...kind) {
  return async (call) => {
    if (call.form?.action === "leave") return killed(started(command, kind), call);
    const key = [command, ...kind].join(" ");
    if (!processes.has(key)) processes.set(key, started(command, kind));
    const { error, ...result } = await processes.get(key).send(call);
    if (error) throw new Error(error);
    return result;
  };
}

/// Kills the client when it was asked.
async function killed({ child, send }, call) {
  const result = await send(call);
  child.kill("SIGKILL");
  await once(child, "exit");
  return result;
}

function started(command, kind) {
  const child = spawn(command, [join(import.meta.dirname, "plan_client.py"), ...kind], { stdio: ["pipe", "pipe", "inherit"] });
  const open = new Map();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { number, ...result } = JSON.parse(line);
    open.get(number)(result);
    open.delete(number);
  });
  child.once("exit", (code) => {
    for (const answer of open.values()) answer({ error: `plan_client.py ended with ${code}` });
  });
  let calls = 0;
  const send = (call) =>
    new Promise((answer) => {
      const number = calls++;
      open.set(number, answer);
      child.stdin.write(`${JSON.stringify({ number, ...call })}\n`);
    });
  return { child, send };
}

/// Ends the processes of clients.
export async function close() {
  const running = [...processes.values()].map(({ child }) => child).filter(({ exitCode }) => exitCode === null);
  for (const { stdin } of running) stdin.end();
  await Promise.all(running.map((child) => once(child, "exit")));
}

// node front.mjs COMMAND...: runs a command with GATEWRIGHT_URL naming two instances behind a proxy.

// The suite of all 2026-07-28 requirements is left out: it has scenarios (tasks, request state) in which the app under test
// remembers between requests, and the app exists once in each instance. docs/operate/instances.md says so to operators.

import { spawn } from "node:child_process";
import { once } from "node:events";

import { instance } from "./instances.mjs";
import { proxy } from "./proxy.mjs";

// As tests/conformance/gatewright.yaml.
const config = {
  info: { name: "gatewright-conformance", version: "1.0.0" },
  codecall: { enabled: false },
  apps: { everything: { builtin: "everything", prefix: false } },
};
const instances = await Promise.all([instance(config), instance(config)]);
const front = await proxy(instances.map((one) => one.port));
const [command, ...args] = process.argv.slice(2);
const env = { ...process.env, CONFORMANCE_WITHOUT: "2026-07-28", GATEWRIGHT_URL: `http://127.0.0.1:${front.port}/mcp` };
const [code] = await once(spawn(command, args, { stdio: "inherit", env }), "exit");
console.log(`connections to each instance: ${front.counts.join(", ")}`);
await front.stop();
await Promise.all(instances.map((one) => one.stop()));
process.exit(code ?? 1);

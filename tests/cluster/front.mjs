// node front.mjs ERA COMMAND...: runs a command with GATEWRIGHT_URL naming two instances behind a proxy.
//
// The app under test remembers between requests (tasks, request state). It stands once, behind both instances, as
// docs/operate/instances.md says. Requests of the 2026-07-28 era cannot be answered by questions of the older one, so the app
// speaks the era of those who ask: `old` or `modern`.

import { spawn } from "node:child_process";
import { once } from "node:events";

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { cluster, freePort, instance } from "./instances.mjs";
import { modernOnly } from "./modern.mjs";
import { proxy } from "./proxy.mjs";
import { redis } from "./redis.mjs";

const [era, command, ...args] = process.argv.slice(2);
// As tests/conformance/gatewright.yaml.
const base = { info: { name: "gatewright-conformance", version: "1.0.0" }, codecall: { enabled: false } };
const app = await instance({ ...base, apps: { everything: { builtin: "everything", prefix: false } } });
const door = era === "modern" ? await modernOnly(app.port) : { url: app.url.href, stop: () => {} };
const [folder, redisPort] = [await mkdtemp(join(tmpdir(), "redis-")), await freePort()];
const store = await redis(redisPort, folder);
const config = { ...base, http: { cluster: cluster(redisPort) }, apps: { everything: { url: door.url, prefix: false } } };
const instances = await Promise.all([instance(config), instance(config)]);
const front = await proxy(instances.map((one) => one.port));
const env = { ...process.env, GATEWRIGHT_URL: `http://127.0.0.1:${front.port}/mcp` };
const [code] = await once(spawn(command, args, { stdio: "inherit", env }), "exit");
console.log(`connections to each instance: ${front.counts.join(", ")}`);
await front.stop();
await Promise.all(instances.map((one) => one.stop()));
await door.stop();
await app.stop();
store.kill("SIGKILL");
await rm(folder, { recursive: true, force: true });
process.exit(code ?? 1);

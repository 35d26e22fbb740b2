// Starts our binary, and ends it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { cluster, freePort, instance } from "./instances.mjs";
import { proxy } from "./proxy.mjs";
import { redis } from "./redis.mjs";
import { searched } from "./seen.mjs";

export const gatewright = process.env.GATEWRIGHT;

/// GATEWRIGHT_INSTANCES: how many instances stand behind a plain proxy in place of one server. Default 1.
export const INSTANCES = Number(process.env.GATEWRIGHT_INSTANCES ?? 1);

/// The instances take free ports; the proxy takes the configured one. What one server keeps in memory they keep in one Redis.
async function behindProxy(config) {
  const { port = 0, ...http } = config.http ?? {};
  const [folder, storePort] = [await mkdtemp(join(tmpdir(), "redis-")), await freePort()];
  const store = await redis(storePort, folder);
  const endStore = async () => {
    store.kill("SIGKILL");
    await once(store, "exit");
    await rm(folder, { recursive: true, force: true });
  };
  const shared = { ...config, http: { cluster: cluster(storePort), ...http } };
  if (config.auth && (config.auth.tokenStorage?.type ?? "memory") === "memory") {
    shared.auth = { ...config.auth, tokenStorage: { type: "redis", config: { host: "127.0.0.1", port: storePort } } };
  }
  const instances = await Promise.all(Array.from({ length: INSTANCES }, () => instance(shared)));
  const front = await proxy(instances.map((one) => one.port), port);
  const end = async () => {
    await front.stop();
    await Promise.all(instances.map((one) => one.stop()));
    await endStore();
  };
  return { url: new URL(`http://127.0.0.1:${front.port}/mcp`), instances: INSTANCES, stop: end };
}

/// Starts `gatewright demo` on a free port; gives its MCP endpoint and an end.
export async function demo() {
  if (INSTANCES > 1) {
    const apps = { crm: { builtin: "crm" }, billing: { builtin: "billing" }, support: { builtin: "support" } };
    return behindProxy({ info: { name: "gatewright-demo", version: "1" }, apps });
  }
  const child = spawn(gatewright, ["demo", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) {
    const found = line.match(/MCP endpoint\s+(\S+)/);
    if (found) return { url: new URL(found[1]), stop: () => stop(child) };
  }
  throw new Error("gatewright demo ended before it served");
}

/// Starts `gatewright serve` with a configuration; gives its MCP endpoint, the address for operators if it has `admin`, and an end.
export async function serve(config) {
  if (INSTANCES > 1) return behindProxy(config);
  const folder = await mkdtemp(join(tmpdir(), "gatewright-"));
  const file = join(folder, "gatewright.json");
  await writeFile(file, JSON.stringify({ ...config, http: { port: 0, ...config.http } }));
  const child = spawn(gatewright, ["serve", "--config", file], { stdio: ["ignore", "ignore", "pipe"] });
  const log = [];
  const lines = createInterface({ input: child.stderr }).on("line", (line) => log.push(line));
  let complete = false;
  lines.on("close", () => (complete = true));
  const { url, admin } = await new Promise((found, failed) => {
    const at = {};
    lines.on("line", (line) => {
      at.url ??= line.match(/http:\/\/\S+\/mcp/)?.[0];
      at.admin ??= line.match(/for operators on (http:\/\/\S+)/)?.[1];
      if (at.url && (at.admin || !config.admin)) found({ url: new URL(at.url), admin: at.admin });
    });
    lines.on("close", () => failed(new Error(`gatewright serve ended before it served:\n${log.join("\n")}`)));
  });
  const end = async () => {
    await stop(child);
    await rm(folder, { recursive: true, force: true });
    // What it wrote last may still be on its way when it has ended.
    if (!complete) await once(lines, "close", { signal: AbortSignal.timeout(60_000) });
    searched(log);
  };
  return { url, admin, instances: 1, stop: end };
}

async function stop(child) {
  if (child.exitCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}

/// Waits until `/readyz` says that every app is up.
export async function ready(url) {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const body = await (await fetch(new URL("/readyz", url))).json();
    if (body.status === "ready" || body.status === "ok") return body;
    if (Date.now() > deadline) throw new Error(`not ready: ${JSON.stringify(body)}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

// Instances of our binary with one configuration and one key.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

/// The secret that instances of a test share.
export const KEY = "the same thirty-two characters everywhere";

/// The `http.cluster` section of instances that share the Redis on `port`.
export const cluster = (port) => ({ key: KEY, redis: `redis://127.0.0.1:${port}` });

/// A port that was free a moment ago: the public address has to be known before the server starts.
export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/// Starts `gatewright serve` on a free port; gives the process, its port, its log and its configuration file.
export async function instance(config, { log = () => {} } = {}) {
  const folder = await mkdtemp(join(tmpdir(), "gatewright-"));
  const file = join(folder, "gatewright.json");
  const http = { port: 0, ...config.http };
  await writeFile(file, JSON.stringify({ ...config, http }));
  const child = spawn(process.env.GATEWRIGHT, ["serve", "--config", file], { stdio: ["ignore", "ignore", "pipe"] });
  const port = await new Promise((resolve, reject) => {
    const said = [];
    createInterface({ input: child.stderr }).on("line", (line) => {
      log(line);
      if (said.length < 100) said.push(line);
      const found = line.match(/serving MCP on http:\/\/[^/\s]*:(\d+)\//);
      if (found) resolve(Number(found[1]));
    });
    child.once("exit", () => reject(new Error(`gatewright serve ended:\n${said.join("\n")}`)));
  });
  const stop = async (signal = "SIGTERM") => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill(signal);
      await once(child, "exit");
    }
    await rm(folder, { recursive: true, force: true });
  };
  const instance = { child, port, file, stop, url: new URL(`http://127.0.0.1:${port}/mcp`) };
  await ready(instance);
  return instance;
}

/// Waits until every app is up.
export async function ready({ port }) {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const body = await (await fetch(`http://127.0.0.1:${port}/readyz`)).json().catch(() => ({}));
    if (body.status === "ready" || body.status === "ok") return;
    if (Date.now() > deadline) throw new Error(`not ready: ${JSON.stringify(body)}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

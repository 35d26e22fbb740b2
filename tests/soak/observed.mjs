// All that tells operators what happens: metrics and the console, an audit file that is rotated, a trace of every request. They must agree
// with each other when the load is over.

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, renameSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

import { freePort } from "../cluster/instances.mjs";

/// A collector that takes spans, and the configuration that has everything on.
export async function observed(folder) {
  const got = { batches: 0, bytes: 0 };
  const collector = createServer((request, response) => {
    got.batches += 1;
    request.on("data", (data) => (got.bytes += data.length));
    request.on("end", () => response.end());
  });
  await once(collector.listen(0, "127.0.0.1"), "listening");
  const port = await freePort();
  const file = join(folder, "audit.jsonl");
  const files = [];
  const config = {
    admin: { port, console: true },
    audit: { file },
    telemetry: { otlp: { endpoint: `http://127.0.0.1:${collector.address().port}`, sampleRatio: 1 } },
  };

  /// Moves the audit file away, as log rotation does; the server is to be sent SIGHUP then.
  function rotate() {
    files.push(join(folder, `audit-${files.length + 1}.jsonl`));
    renameSync(file, files.at(-1));
  }

  /// Calls of tools that the metrics have counted.
  async function counted() {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const found = text.matchAll(/^mcp_server_operation_duration_seconds_count\{.*mcp_method_name="tools\/call".*\} (\d+)$/gm);
    return [...found].reduce((sum, [, count]) => sum + Number(count), 0);
  }

  /// Calls of tools that the audit holds; an error when a line is not as it was written.
  function audited() {
    const all = [...files, file].filter((name) => existsSync(name));
    execFileSync(process.env.GATEWRIGHT, ["audit", "verify", ...all], { stdio: ["ignore", "ignore", "pipe"] });
    const counts = execFileSync("grep", ["-c", "-h", '"event":"execution"', ...all]).toString();
    return counts.trim().split("\n").reduce((sum, count) => sum + Number(count), 0);
  }

  return { config, rotate, counted, audited, got, close: () => collector.close() };
}

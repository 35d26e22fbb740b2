// A Redis of a test's own.

import { spawn } from "node:child_process";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/// Starts a Redis that keeps its data in `folder` over a restart.
export async function redis(port, folder) {
  const args = ["--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--dir", folder];
  const child = spawn("redis-server", args.map(String), { stdio: "ignore" });
  for (let tries = 0; ; tries += 1) {
    const answers = await new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1", () => socket.write("PING\r\n"));
      socket.once("data", (data) => resolve(String(data).startsWith("+PONG")));
      socket.once("error", () => resolve(false));
      socket.once("data", () => socket.destroy());
    });
    if (answers) return child;
    if (tries === 200 || child.exitCode !== null) throw new Error("redis-server does not answer");
    await sleep(50);
  }
}

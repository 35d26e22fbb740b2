// What goes wrong, one after the other: each fault begins, lasts, ends, and names the answers it may spoil.

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { getPriority, setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import { redis } from "../cluster/redis.mjs";

/// The living children of a process: `{pid, command}`.
export function children(pid) {
  const found = [];
  for (const name of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (Number(parent) !== pid || state === "Z") continue;
      found.push({ pid: Number(name), command: readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ") });
    } catch {
      // It ended meanwhile.
    }
  }
  return found;
}

export const upstreams = (pid) => children(pid).filter((child) => child.command.includes("ledger.mjs"));
export const workers = (pid) => children(pid).filter((child) => / worker( |$)/.test(child.command));

const signal = (all, name) => {
  if (all.length === 0) throw new Error(`nobody to send ${name} to`);
  for (const { pid } of all) process.kill(pid, name);
};

/// Sends a request so slowly that it never ends, until it is cut off.
function slow({ port }, until) {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write("POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{");
  const drip = setInterval(() => socket.writable && socket.write(" "), 200);
  return until.then(() => {
    clearInterval(drip);
    socket.destroy();
  });
}

/// Connects, says nothing, and reads nothing.
function halfOpen({ port }, until) {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  return until.then(() => socket.destroy());
}

/// The faults. `spoils(kind, body)` says whether an answer of this kind may fail while the fault lasts, and until its end + 5 s.
export function faults(soak) {
  const ledger = (kind, code) =>
    kind === "upstream" && /^(TOOL_NOT_FOUND|UPSTREAM_STARTING|UPSTREAM_DOWN|TOOL_EXECUTION_ERROR|TIMEOUT|EXECUTION_ABORTED)$/.test(code);
  const replaceConfig = (change) => {
    const config = JSON.parse(readFileSync(soak.server.file, "utf8"));
    change(config);
    writeFileSync(`${soak.server.file}.new`, JSON.stringify(config));
    renameSync(`${soak.server.file}.new`, soak.server.file);
    process.kill(soak.server.child.pid, "SIGHUP");
  };
  const never = () => false;
  return [
    {
      name: "upstream killed (SIGKILL)",
      run: async () => signal(upstreams(soak.server.child.pid), "SIGKILL"),
      spoils: ledger,
    },
    {
      name: "workers killed (SIGKILL, all of them)",
      run: async () => signal(workers(soak.server.child.pid), "SIGKILL"),
      // With every worker gone at once, runs wait for new ones; on a busy machine some wait too long and are told so.
      spoils: (kind, code) => kind === "script" && /^(WORKER_|QUEUE_TIMEOUT$)/.test(code),
    },
    {
      name: "configuration reloaded",
      run: async () => replaceConfig((config) => (config.codecall.vm.timeoutMs ^= 1)),
      spoils: never,
    },
    {
      name: "upstream hung (SIGSTOP, 2 s)",
      run: async () => {
        const hung = upstreams(soak.server.child.pid);
        signal(hung, "SIGSTOP");
        await sleep(2_000);
        signal(hung, "SIGCONT");
      },
      spoils: ledger,
    },
    {
      name: "20 slow and 50 half-open connections (2 s)",
      run: async () => {
        const until = sleep(2_000);
        const bad = [...Array.from({ length: 20 }, () => slow), ...Array.from({ length: 50 }, () => halfOpen)];
        await Promise.all(bad.map((open) => open(soak.server, until)));
      },
      spoils: never,
    },
    {
      name: "Redis restarted (1 s away)",
      run: async () => {
        soak.redis.kill("SIGTERM");
        await new Promise((done) => soak.redis.once("exit", done));
        await sleep(1_000);
        soak.redis = await redis(soak.redisPort, soak.folder);
        // The harness may have a priority of its own, which is inherited.
        if (getPriority() !== soak.priority) setPriority(soak.redis.pid, soak.priority);
      },
      // Without its store the authorization server issues nothing, and lets nobody in with a token that it has not checked lately.
      spoils: (kind, code) => code === "temporarily_unavailable" || (kind === "token" && /^(http-50[03]|server_error)$/.test(code)),
    },
    {
      name: "bad configuration refused",
      run: async () => {
        const good = readFileSync(soak.server.file, "utf8");
        replaceConfig((config) => (config.codecall.vm.timeoutMs = "soon"));
        await sleep(500);
        writeFileSync(`${soak.server.file}.new`, good);
        renameSync(`${soak.server.file}.new`, soak.server.file);
        process.kill(soak.server.child.pid, "SIGHUP");
      },
      spoils: never,
    },
    ...(soak.observed ? [rotated(soak)] : []),
  ];
}

function rotated(soak) {
  const run = async () => {
    soak.observed.rotate();
    process.kill(soak.server.child.pid, "SIGHUP");
  };
  return { name: "audit file rotated", run, spoils: () => false };
}

/// Open descriptors and resident memory (KiB) of a process.
export function usage(pid) {
  const descriptors = readdirSync(`/proc/${pid}/fd`).length;
  const resident = Number(readFileSync(`/proc/${pid}/status`, "utf8").match(/VmRSS:\s+(\d+)/)[1]);
  return { descriptors, resident };
}

export const machine = () =>
  execFileSync("nproc").toString().trim() + " cores, load average " + readFileSync("/proc/loadavg", "utf8").split(" ").slice(0, 3).join(" ");

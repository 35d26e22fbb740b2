// Who used the processor: the server, what it started, this program, and others, who have no place in a measurement.

import { readdirSync, readFileSync } from "node:fs";
import { cpus } from "node:os";

import { children } from "./faults.mjs";

/// Ticks per second of /proc on every Linux (USER_HZ).
const HZ = 100;
export const CORES = cpus().length;

/// Seconds of processor time of a process and of its children that have ended.
function spent(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { own: (Number(fields[11]) + Number(fields[12])) / HZ, ended: (Number(fields[13]) + Number(fields[14])) / HZ };
  } catch {
    return { own: 0, ended: 0 };
  }
}

/// Seconds that the threads of a process were ready to run and had to wait for a core.
function waited(pid) {
  let nanoseconds = 0;
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[1]);
  } catch {
    // A thread ended meanwhile, or the kernel does not say.
  }
  return nanoseconds / 1e9;
}

/// All of the machine: busy, and taken by other machines on the same hardware. Interrupts belong to no process; nearly all are our own packets.
function machine() {
  const [, user, nice, system, , , , , steal] = readFileSync("/proc/stat", "utf8").split("\n")[0].split(/\s+/).map(Number);
  return { busy: (user + nice + system) / HZ, steal: steal / HZ };
}

/// Tells, each time it is asked, how many cores each used since the last time; `waited` is how many more the server could have used.
export function processor(soak) {
  const now = () => {
    const pid = soak.server.child.pid;
    const server = spent(pid);
    const below = children(pid).reduce((sum, child) => sum + spent(child.pid).own, 0);
    const all = machine();
    return {
      at: Date.now(),
      server: server.own,
      waited: waited(pid),
      children: below + server.ended,
      redis: spent(soak.redis.pid).own,
      harness: spent(process.pid).own,
      busy: all.busy,
      steal: all.steal,
    };
  };
  let last = now();
  return () => {
    const next = now();
    const seconds = (next.at - last.at) / 1_000;
    const cores = (name) => Math.max(0, (next[name] - last[name]) / seconds);
    const found = { server: cores("server"), waited: cores("waited"), children: cores("children"), redis: cores("redis"), harness: cores("harness") };
    const ours = found.server + found.children + found.redis + found.harness;
    found.others = Math.max(0, cores("busy") - ours) + cores("steal");
    last = next;
    return found;
  };
}

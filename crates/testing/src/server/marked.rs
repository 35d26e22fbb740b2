//! Processes of a server, wherever they went: a mark in their environment finds those that left the process group (Linux).

use rustix::process::{Pid, Signal, getpgid, kill_process};

/// The variable with the mark. Children inherit it.
pub(super) const VARIABLE: &str = "GATEWRIGHT_TESTING_SERVER";

/// Processes with this mark outside of the process group. Empty on systems other than Linux.
pub(super) fn outside(mark: &str, group: u32) -> Vec<Pid> {
    let wanted = format!("{VARIABLE}={mark}").into_bytes();
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = processes.flatten().filter_map(|one| one.file_name().to_str()?.parse::<i32>().ok());
    let has_mark = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
    };
    let is_outside =
        |pid: &Pid| getpgid(Some(*pid)).is_ok_and(|of| of.as_raw_nonzero().get().cast_unsigned() != group);
    numbers.filter(has_mark).filter_map(Pid::from_raw).filter(is_outside).collect()
}

/// Sends a signal to each process.
pub(super) fn signal(processes: &[Pid], signal: Signal) {
    for process in processes {
        let _ = kill_process(*process, signal);
    }
}

/// A shell command that kills the group and all processes with the mark.
pub(super) fn kill_command(mark: &str, group: u32) -> String {
    format!(
        "kill -s KILL -- -{group}; for e in /proc/[0-9]*/environ; do \
         grep -q -a '{VARIABLE}={mark}' \"$e\" && e=${{e#/proc/}} && kill -s KILL \"${{e%/environ}}\"; done"
    )
}

//! Set-up of a child between fork and exec. The only unsafe code of this crate.
#![expect(
    unsafe_code,
    reason = "a parent-death signal can only be asked for by the child itself, before exec"
)]

use std::io;

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use tokio::process::Command;

/// Makes the child of `command` the head of its own process group, and has the kernel kill it when this process ends
/// in whatever way (`PR_SET_PDEATHSIG`).
///
/// The kernel sends that signal when the *thread* that started the child ends: spawn from a thread that lives as long
/// as the process.
pub(super) fn tie_to_us(command: &mut Command) {
    let us: Pid = getpid();
    command.process_group(0);
    let before_exec = move || {
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)?;
        if getppid() != Some(us) {
            // We ended between fork and the line above: no signal will come.
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()));
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe work is allowed. The closure makes two system calls
    // (`prctl`, `getppid`), builds errors without allocating, takes no lock and touches no memory shared with the
    // parent but the copied `us`.
    unsafe {
        command.pre_exec(before_exec);
    }
}

//! System calls that take a process's capabilities away.
//!
//! Order matters. `enter` runs on the main thread before any other exists, so that threads inherit what it does; `lock` runs on
//! the thread that serves, last, because afterwards no file can be opened and no thread started.
#![expect(unsafe_code, reason = "system calls without a safe wrapper; each block says why it holds")]

use std::{
    io,
    os::{
        fd::{AsFd, AsRawFd},
        unix::net::UnixStream,
    },
};

#[cfg(target_os = "linux")]
use super::rules;
use super::sandbox::{Plan, SandboxReport};

/// Ties the process to its parent, drops inherited descriptors, limits it, closes the file system; gives the socket found on
/// standard input.
///
/// # Errors
/// The parent is gone already, or standard input is not usable.
pub(crate) fn enter(plan: &mut Plan) -> io::Result<UnixStream> {
    #[cfg(target_os = "linux")]
    linux::enter(plan)?;
    #[cfg(not(target_os = "linux"))]
    {
        let _ = plan.parent;
        plan.early.missing.push("this system has no worker sandbox".to_owned());
    }
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Reads what has arrived on `stream`, without waiting.
///
/// # Errors
/// `WouldBlock` when nothing has; otherwise what the system says.
pub(crate) fn receive_now(stream: &UnixStream, room: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the descriptor is open as long as `stream` lives, and the call writes at most `room.len()` bytes into `room`.
    let read =
        unsafe { libc::recv(stream.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), libc::MSG_DONTWAIT) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Takes the last capabilities away: afterwards the process can compute, and read and write its socket.
pub(crate) fn lock(plan: &Plan) -> SandboxReport {
    #[allow(unused_mut, reason = "changed on Linux only")]
    let mut report = plan.early.clone();
    #[cfg(target_os = "linux")]
    linux::lock(&mut report, plan.address_space);
    report
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use seccompiler::apply_filter_all_threads;

    use super::{Plan, SandboxReport, rules};

    pub(super) fn enter(plan: &mut Plan) -> io::Result<()> {
        // Where memory runs out, the kernel ends a worker and not the server. Nothing depends on it.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        // SAFETY: `prctl` with these options takes plain numbers and touches no memory of ours.
        let tied = unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
                && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
        };
        if !tied {
            return Err(io::Error::last_os_error());
        }
        // The parent may have died before the signal was asked for.
        if std::os::unix::process::parent_id() != plan.parent {
            return Err(io::ErrorKind::NotConnected.into());
        }
        // SAFETY: closes descriptors 3 and up. Nothing in this process owns one yet: this runs first in `main`.
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
        utc();
        one_arena();
        match rules::confine() {
            Ok(true) => plan.early.landlock = true,
            Ok(false) => {
                plan.early.missing.push("Landlock: this kernel does not enforce all of it".to_owned())
            }
            Err(error) => plan.early.missing.push(format!("Landlock: {error}")),
        }
        Ok(())
    }

    /// Fixes local time to UTC while the time-zone files are still readable: the engine asks for it later.
    #[expect(
        clippy::disallowed_methods,
        reason = "the engine's time zone has no other way in; the variable is gone again at once"
    )]
    fn utc() {
        unsafe extern "C" {
            fn tzset();
        }
        // SAFETY: this is the only thread of the process, so nothing reads the environment at the same time.
        unsafe {
            std::env::set_var("TZ", "UTC0");
            tzset();
            std::env::remove_var("TZ");
        }
    }

    /// One heap for all threads that grows in large steps: realms come and go, and a system call per page would cost more than
    /// they do.
    fn one_arena() {
        // SAFETY: plain numbers, before any other thread exists.
        unsafe {
            #[cfg(target_env = "gnu")]
            {
                libc::mallopt(libc::M_ARENA_MAX, 1);
                libc::mallopt(libc::M_TOP_PAD, 512 * 1024);
                libc::mallopt(libc::M_TRIM_THRESHOLD, 1024 * 1024);
            }
        }
    }

    pub(super) fn lock(report: &mut SandboxReport, address_space: u64) {
        // Files after Landlock's ruleset, which needs a descriptor of its own.
        let limits = [
            (libc::RLIMIT_AS, address_space),
            (libc::RLIMIT_CORE, 0),
            (libc::RLIMIT_FSIZE, 0),
            (libc::RLIMIT_NPROC, 0),
            (libc::RLIMIT_NOFILE, 4),
        ];
        report.rlimits = limits.into_iter().all(|(resource, value)| {
            let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
            // SAFETY: `limit` lives through the call, which only reads it.
            unsafe { libc::setrlimit(resource, &limit) == 0 }
        });
        if !report.rlimits {
            report.missing.push(format!("rlimits: {}", io::Error::last_os_error()));
        }
        match rules::filter()
            .and_then(|filter| apply_filter_all_threads(&filter).map_err(|error| error.to_string()))
        {
            Ok(()) => report.seccomp = true,
            Err(error) => report.missing.push(format!("seccomp: {error}")),
        }
    }
}

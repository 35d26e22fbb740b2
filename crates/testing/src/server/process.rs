//! A child process that ends with the test, whatever way the test ends.
//!
//! The child leads a process group, and the whole group is ended with it. Should this process die without unwinding, a
//! watchdog does it: a shell that waits for the end of a pipe only this process holds.

use std::{
    io::Write,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::log_ring::LogRing;

pub(crate) struct Process {
    child: Child,
    pid: u32,
    watchdog: Option<std::process::Child>,
    /// How long it may take to end by itself.
    grace: Duration,
    ended: Ended,
}

/// How the last process of a server ended.
pub(crate) type Ended = Arc<Mutex<Option<ExitStatus>>>;

/// Standard input and output of a stdio server.
pub(crate) type Pipes = Option<(ChildStdin, ChildStdout)>;

impl Process {
    /// Starts `command`. With `piped` standard input and output are the caller's, else output goes to `log`.
    pub(crate) fn spawn(
        mut command: Command,
        piped: bool,
        log: &LogRing,
        grace: Duration,
        ended: &Ended,
    ) -> std::io::Result<(Self, Pipes)> {
        command
            .process_group(0)
            .kill_on_drop(true)
            .stdin(if piped { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        *crate::lock(ended) = None;
        let pid = child.id().unwrap_or_default();
        let watchdog = watch(pid);
        if let Some(stderr) = child.stderr.take() {
            log.follow(stderr);
        }
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let pipes = match (piped, stdin, stdout) {
            (true, Some(stdin), Some(stdout)) => Some((stdin, stdout)),
            (_, _, stdout) => {
                if let Some(stdout) = stdout {
                    log.follow(stdout);
                }
                None
            }
        };
        Ok((Self { child, pid, watchdog, grace, ended: ended.clone() }, pipes))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// How it ended, if it did.
    pub(crate) fn exited(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok().flatten();
        if status.is_some() { self.note(status) } else { None }
    }

    /// Waits until it ended by itself.
    pub(crate) async fn wait(&mut self) -> Option<ExitStatus> {
        let status = self.child.wait().await.ok();
        self.note(status)
    }

    fn note(&self, status: Option<ExitStatus>) -> Option<ExitStatus> {
        *crate::lock(&self.ended) = status;
        status
    }

    /// Asks it to end (SIGTERM to the group) and makes it end (SIGKILL) when it does not.
    pub(crate) async fn stop(mut self) {
        self.signal(Signal::TERM);
        let _ = tokio::time::timeout(self.grace, self.child.wait()).await;
        self.signal(Signal::KILL);
        self.wait().await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.pid.cast_signed()) {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(mut watchdog) = self.watchdog.take() {
            if let Some(mut pipe) = watchdog.stdin.take() {
                let _ = pipe.write_all(b"done\n");
            }
            let _ = watchdog.wait();
        }
    }
}

fn watch(group: u32) -> Option<std::process::Child> {
    use std::os::unix::process::CommandExt;
    std::process::Command::new("/bin/sh")
        .arg("-c")
        .arg(format!("read done || kill -s KILL -- -{group}"))
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()
}

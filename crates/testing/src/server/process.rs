//! A child process that ends with the test, however the test ends.
//!
//! The child leads a process group, and the whole group is stopped with it, and what left it (see `marked`). If this process dies
//! without unwinding, a watchdog stops them: a shell that waits for the end of a pipe that only this process holds open.

use std::{
    io::Write,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::{log_ring::LogRing, marked};
use crate::base::{lock, text::random_text};

pub(crate) struct Process {
    child: Child,
    pid: u32,
    /// The value of [`marked::VARIABLE`] in the environment of the child and its descendants.
    mark: String,
    watchdog: Option<std::process::Child>,
    /// Time between SIGTERM and SIGKILL.
    grace: Duration,
    last_exit: LastExit,
    /// True if the process goes on when this one ends.
    is_left: bool,
}

/// Exit status of a server's last process.
pub(crate) type LastExit = Arc<Mutex<Option<ExitStatus>>>;

/// Standard input and output of a stdio server.
pub(crate) type Pipes = Option<(ChildStdin, ChildStdout)>;

/// The place of a process's standard output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Output<'a> {
    /// The caller gets it, with standard input.
    Pipes,
    /// The log.
    Log,
    /// A file, with standard error, which a process can still write to when this one is gone.
    File(&'a Path),
    /// Named pipes for standard input and output, which outlive this process, and a file for standard error.
    Named { input: &'a Path, output: &'a Path, errors: &'a Path },
}

impl Process {
    /// Starts `command`.
    pub(crate) fn spawn(
        mut command: Command,
        output: Output<'_>,
        log: &LogRing,
        grace: Duration,
        last_exit: &LastExit,
    ) -> std::io::Result<(Self, Pipes)> {
        let mark = random_text();
        let piped = matches!(output, Output::Pipes);
        command.env(marked::VARIABLE, &mark).process_group(0).stdin(if piped {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        match output {
            Output::Pipes | Output::Log => {
                command.kill_on_drop(true).stdout(Stdio::piped()).stderr(Stdio::piped());
            }
            // It may be left running, and is killed by its group until then.
            Output::File(path) => {
                let file = std::fs::File::create(path)?;
                command.stdout(file.try_clone()?).stderr(file);
            }
            Output::Named { input, output, errors } => {
                // Open for reading and writing, so that it sees no end between two clients.
                let both = |path: &Path| std::fs::File::options().read(true).write(true).open(path);
                command.stdin(both(input)?).stdout(both(output)?).stderr(std::fs::File::create(errors)?);
            }
        }
        let mut child = command.spawn()?;
        *lock(last_exit) = None;
        let pid = child.id().unwrap_or_default();
        let watchdog = watchdog(&mark, pid);
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
        Ok((Self { child, pid, mark, watchdog, grace, last_exit: last_exit.clone(), is_left: false }, pipes))
    }

    /// Leaves the process running when this one ends. Somebody else has to stop it.
    pub(crate) fn leave_running(&mut self) {
        self.is_left = true;
        self.dismiss_watchdog();
    }

    /// Shell commands that kill the process, its group and what left it.
    pub(super) fn kill_command(&self) -> String {
        marked::kill_command(&self.mark, self.pid)
    }

    fn dismiss_watchdog(&mut self) {
        if let Some(mut watchdog) = self.watchdog.take() {
            if let Some(mut pipe) = watchdog.stdin.take() {
                let _ = pipe.write_all(b"done\n");
            }
            let _ = watchdog.wait();
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The exit status, if the process has ended.
    pub(crate) fn exited(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok().flatten();
        if status.is_some() { self.note(status) } else { None }
    }

    /// Waits until the process ends by itself.
    pub(crate) async fn wait(&mut self) -> Option<ExitStatus> {
        let status = self.child.wait().await.ok();
        self.note(status)
    }

    fn note(&self, status: Option<ExitStatus>) -> Option<ExitStatus> {
        *lock(&self.last_exit) = status;
        status
    }

    /// Stops the process group and what left it: SIGTERM, then SIGKILL after the grace period.
    pub(crate) async fn stop(mut self) {
        self.signal(Signal::TERM);
        let grace = self.grace;
        let ended = async {
            let _ = self.child.wait().await;
            while !marked::outside(&self.mark, self.pid).is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(grace, ended).await;
        self.signal(Signal::KILL);
        self.wait().await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.pid.cast_signed()) {
            let _ = kill_process_group(group, signal);
        }
        marked::signal(&marked::outside(&self.mark, self.pid), signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_left {
            self.signal(Signal::KILL);
        }
        self.dismiss_watchdog();
    }
}

/// Starts a shell that kills the server when this process is gone.
fn watchdog(mark: &str, group: u32) -> Option<std::process::Child> {
    use std::os::unix::process::CommandExt;
    std::process::Command::new("/bin/sh")
        .arg("-c")
        .arg(format!("read done || {{ {}; }}", marked::kill_command(mark, group)))
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()
}

/// Advice for a program that cannot be run.
pub(super) fn spawn_advice(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "give a path to an executable, the name of a binary cargo built \
            (`cargo build --bins`), a .js, .mjs, .ts or .py file, or a command on PATH"
            .into(),
        std::io::ErrorKind::PermissionDenied => "make the file executable (`chmod +x`)".into(),
        _ => "run the command by hand".into(),
    }
}

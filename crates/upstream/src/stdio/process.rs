//! One child process: its group, its standard error, and its end.
//!
//! Three things end the group: [`Process::end`], dropping a [`Process`], and our own death in whatever way. For the
//! last one the child has a parent-death signal, and a guard (`sh`, waiting on a pipe that closes with us) kills the
//! rest of the group: processes the child started have no such signal.

use std::{
    collections::{HashMap, VecDeque},
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gatewright_core::{DownReason, Line, LineReader};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncRead,
    process::{Child, ChildStdin, ChildStdout, Command},
};

use super::{spawner, sys};
use crate::{UpstreamConfig, redactor::Redactor};

/// Time for a child to end by itself once its input is closed, and again after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);
/// Lines of standard error kept for messages.
const KEPT_LINES: usize = 3;
const LONGEST_LINE: usize = 160;
/// Longest line of standard error that is looked at, in bytes.
const MOST_READ: usize = 64 << 10;

/// The last lines a child wrote to its standard error.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastWords(Arc<Mutex<VecDeque<String>>>);

impl LastWords {
    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// `it last wrote: a | b`, or nothing.
    pub(crate) fn said(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        if lines.is_empty() { String::new() } else { format!("it last wrote: {}", lines.join(" | ")) }
    }
}

/// A running child and everything it started.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
    guard: Option<Child>,
    words: LastWords,
    ended: bool,
    stderr: Option<tokio::task::JoinHandle<()>>,
}

impl Process {
    /// Starts the command of `config`.
    pub(crate) async fn start(
        id: &str,
        config: &UpstreamConfig,
        parent: &HashMap<String, String>,
        redactor: &Redactor,
    ) -> Result<(Self, ChildStdin, ChildStdout), DownReason> {
        let program = config.command.as_deref().unwrap_or_default();
        let environment = config.environment(parent);
        let mut command = Command::new(program);
        command
            .args(&config.args)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(cwd) = &config.cwd {
            command.current_dir(cwd);
        }
        sys::tie_to_us(&mut command);
        let mut child = spawner::spawn(command).await.map_err(|error| {
            let hint = match error.kind() {
                std::io::ErrorKind::NotFound => {
                    "; install it, or add its folder to the `PATH` of the gateway"
                }
                _ => "",
            };
            DownReason::from(format!("its command cannot be started: {error}{hint}"))
                .with_details(&format!("the command is `{}`", redactor.line(program, 80)))
        })?;
        let group = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("its command was started without its pipes".into());
        };
        let words = LastWords::default();
        let listening = listen(id.to_owned(), stderr, words.clone(), redactor.clone());
        let stderr = Some(tokio::spawn(listening));
        let guard = match group {
            Some(group) => guard(group).await,
            None => None,
        };
        Ok((Self { child, group, guard, words, ended: false, stderr }, stdin, stdout))
    }

    pub(crate) fn words(&self) -> LastWords {
        self.words.clone()
    }

    /// The exit status of the child, if it ends within `longest`.
    pub(crate) async fn exit_within(&mut self, longest: Duration) -> Option<ExitStatus> {
        let status = tokio::time::timeout(longest, self.child.wait()).await.ok()?.ok();
        // What it wrote last may still be in the pipe. A process it left behind can hold that open: not for long.
        if let Some(stderr) = &mut self.stderr
            && tokio::time::timeout(Duration::from_millis(100), stderr).await.is_ok()
        {
            self.stderr = None;
        }
        status
    }

    /// Ends the group. The child's input must be closed already: that is its cue. Then come 2 s, SIGTERM, 2 s, SIGKILL.
    pub(crate) async fn end(mut self) {
        if self.exit_within(PATIENCE).await.is_none() {
            self.signal(Signal::TERM);
            let _ = self.exit_within(PATIENCE).await;
        }
        // Whatever is left of the group, when the child itself is gone too.
        self.signal(Signal::KILL);
        let _ = self.child.wait().await;
        self.ended = true;
        if let Some(mut guard) = self.guard.take() {
            let _ = guard.kill().await;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group may be gone already.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(stderr) = &self.stderr {
            stderr.abort();
        }
        if !self.ended {
            self.signal(Signal::KILL);
        }
    }
}

/// A process that waits until we are gone, and kills what is left of `group` then. Without `/bin/sh` there is none:
/// the child itself still has its parent-death signal.
async fn guard(group: Pid) -> Option<Child> {
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(format!("read -r _; kill -9 -{}", group.as_raw_nonzero()))
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    match spawner::spawn(command).await {
        Ok(guard) => Some(guard),
        Err(error) => {
            tracing::debug!(%error, "no guard for the process group of an app");
            None
        }
    }
}

/// Keeps the last lines of standard error, and hands all to the log at debug.
async fn listen(id: String, stderr: impl AsyncRead + Unpin, words: LastWords, redactor: Redactor) {
    let mut lines = LineReader::new(stderr, MOST_READ);
    while let Ok(Some(line)) = lines.next().await {
        let line = match line {
            Line::Whole(line) if line.trim_ascii().is_empty() => continue,
            Line::Whole(line) => redactor.line(&String::from_utf8_lossy(&line), LONGEST_LINE),
            // Its ends may be parts of secrets.
            Line::TooLong { .. } => format!("(a line of over {MOST_READ} bytes)"),
        };
        if !line.is_empty() {
            tracing::debug!(app.id = %id, line, "standard error of an app");
            words.push(line);
        }
    }
}

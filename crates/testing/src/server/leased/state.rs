//! The state of a shared server, in a file.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::server::{port, state::ServerInfo};

const FILE: &str = "state.json";

/// Process, address and files of a shared server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StateFile {
    pub(super) pid: u32,
    /// The start of the process, which tells it from a later one with its id.
    started_at: Option<String>,
    pub(super) port: u16,
    pub(super) base_url: String,
    pub(super) lease: PathBuf,
    pub(super) log: PathBuf,
}

impl StateFile {
    pub(super) fn new(info: &ServerInfo, lease: &Path, log: &Path) -> Self {
        Self {
            pid: info.pid,
            started_at: started_at(info.pid),
            port: info.port,
            base_url: info.base_url.clone(),
            lease: lease.to_owned(),
            log: log.to_owned(),
        }
    }

    /// The state in a server's directory; `None` without a readable one.
    pub(super) fn read(place: &Path) -> Option<Self> {
        serde_json::from_str(&std::fs::read_to_string(place.join(FILE)).ok()?).ok()
    }

    /// The directory of the process's own files.
    pub(super) fn directory(&self) -> &Path {
        self.lease.parent().unwrap_or(Path::new("."))
    }

    pub(super) fn write(&self, place: &Path) -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(place)?;
        serde_json::to_writer(&mut file, self)?;
        file.persist(place.join(FILE)).map_err(|error| error.error)?;
        Ok(())
    }

    /// True if this very process runs, and (on Linux) its group listens on the port, if it has one.
    pub(super) fn is_alive(&self) -> bool {
        self.is_same_process() && {
            let ports = port::listening(self.pid);
            self.port == 0 || ports.is_empty() || ports.contains(&self.port)
        }
    }

    fn is_same_process(&self) -> bool {
        let alive = Pid::from_raw(self.pid.cast_signed()).is_some_and(|pid| test_kill_process(pid).is_ok());
        alive && self.started_at == started_at(self.pid)
    }

    /// Kills the process group, unless the process is another by now.
    pub(super) fn kill(&self) {
        if self.is_same_process()
            && let Some(group) = Pid::from_raw(self.pid.cast_signed())
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The start time of a process, from field 22 of `stat`, counted after the name in parentheses. `None` on systems other than Linux.
pub(super) fn started_at(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19).map(str::to_owned)
}

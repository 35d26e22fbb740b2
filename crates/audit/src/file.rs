//! The file that is written.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use serde::Serialize;
use serde_json::json;

use crate::{
    TORN,
    chain::{carried, sealed, sha256_hex},
};

/// Bytes at the end of a file in which its last line is looked for.
const TAIL: u64 = 16 * 1024 * 1024;

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The system refuses.
    #[error("the audit file {path} cannot be used: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process holds it.
    #[error("another process writes the audit file {0}; give each instance a file of its own")]
    Held(PathBuf),
    /// It is something else.
    #[error("{0} is not an audit file: its last line has no digest; name a new file")]
    Foreign(PathBuf),
}

/// An audit file that is open to append to.
#[derive(Debug)]
pub struct AuditFile {
    held: Mutex<Held>,
    sync: bool,
}

#[derive(Debug)]
struct Held {
    file: File,
    chain: String,
}

impl AuditFile {
    /// Opens `path`, or makes it, and goes on from its last line.
    ///
    /// # Errors
    /// When it cannot be read or written, another process holds it, or it holds something else.
    pub fn open(path: &Path) -> Result<Self, AuditError> {
        let told = |source| AuditError::Io { path: path.to_owned(), source };
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(told)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(AuditError::Held(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(told(source)),
        }
        let (mut last, mut torn) = tail(&mut file).map_err(told)?;
        // Only the line break is missing: the line itself is whole.
        let whole =
            torn.as_deref().and_then(|torn| std::str::from_utf8(torn).ok()).filter(|t| carried(t).is_some());
        if let Some(line) = whole.map(str::to_owned) {
            file.write_all(b"\n").map_err(told)?;
            (last, torn) = (Some(line), None);
        }
        let chain = match last {
            Some(line) => carried(&line).ok_or_else(|| AuditError::Foreign(path.to_owned()))?,
            None => String::new(),
        };
        let audit = Self { held: Mutex::new(Held { file, chain }), sync: false };
        if let Some(torn) = torn {
            tracing::warn!(path = %path.display(), bytes = torn.len(), "the last line of the audit file was cut in two; it stays, and is named in the next");
            audit.write(b"\n").map_err(told)?;
            audit.append(&json!({"event": TORN, "sha256": sha256_hex(&torn), "bytes": torn.len()}));
        }
        Ok(audit)
    }

    /// Writes each line to the disk before going on.
    #[must_use]
    pub fn sync_each(mut self, sync: bool) -> Self {
        self.sync = sync;
        self
    }

    /// Appends a JSON object as one line. What cannot be written is told in the log; the caller goes on.
    pub fn append(&self, object: &impl Serialize) {
        let text = match serde_json::to_string(object) {
            Ok(text) if text.len() > 2 && text.starts_with('{') => text,
            _ => return tracing::error!("an audit event is not a JSON object with members; it is not kept"),
        };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (line, chain) = sealed(&held.chain, &text);
        let written = held.file.write_all(line.as_bytes());
        let written = written.and_then(|()| if self.sync { held.file.sync_data() } else { Ok(()) });
        match written {
            Ok(()) => held.chain = chain,
            Err(error) => tracing::error!(%error, "an audit event could not be written"),
        }
    }

    fn write(&self, bytes: &[u8]) -> std::io::Result<()> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).file.write_all(bytes)
    }
}

/// The last whole line with a digest or the note of a torn one, and what comes after the last line break.
fn tail(file: &mut File) -> std::io::Result<(Option<String>, Option<Vec<u8>>)> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    let (whole, torn) = match end.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => (&end[..at], &end[at + 1..]),
        None => (&end[..0], &end[..]),
    };
    let last = whole.rsplit(|byte| *byte == b'\n').next().filter(|line| !line.is_empty());
    let last = last.map(|line| String::from_utf8_lossy(line).into_owned());
    Ok((last, (!torn.is_empty()).then(|| torn.to_owned())))
}

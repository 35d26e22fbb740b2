//! The file of a cassette: opened, replayed entry by entry, or recorded.

use std::path::PathBuf;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A cassette cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the cassette {file} cannot be used: {problem}; delete it to record a new one")]
pub struct CassetteError {
    /// The file.
    pub file: String,
    /// The problem.
    pub problem: String,
}

/// The protocol of the recorded messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Protocol {
    Http,
    Mcp,
}

/// One recorded exchange. Recorders redact its secrets before they keep it.
pub(crate) trait Entry: Serialize + DeserializeOwned {
    /// The `kind` of a cassette with such entries.
    const PROTOCOL: Protocol;
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File<E> {
    version: u32,
    kind: Protocol,
    entries: Vec<E>,
}

const VERSION: u32 = 1;

/// An open cassette. One that records is written by [`Cassette::save`] and when it is dropped.
#[derive(Debug)]
pub(crate) struct Cassette<E: Entry> {
    file: PathBuf,
    recording: bool,
    /// True if the file is out of date. A new cassette is written even if it stays empty.
    unsaved: bool,
    entries: Vec<E>,
}

impl<E: Entry> Cassette<E> {
    /// Opens a cassette: replays an existing file, records a missing one.
    pub(crate) fn open(file: PathBuf) -> Result<Self, CassetteError> {
        let unusable = |problem: String| CassetteError { file: file.display().to_string(), problem };
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { file, recording: true, unsaved: true, entries: Vec::new() });
            }
            Err(error) => return Err(unusable(error.to_string())),
        };
        let found: File<Value> = serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))?;
        if found.version != VERSION {
            return Err(unusable(format!("it has version {}, this crate reads {VERSION}", found.version)));
        }
        if found.kind != E::PROTOCOL {
            return Err(unusable(format!("it holds {:?} messages, not {:?}", found.kind, E::PROTOCOL)));
        }
        let entries = found.entries.into_iter().map(serde_json::from_value).collect::<Result<_, _>>();
        let entries = entries.map_err(|error| unusable(error.to_string()))?;
        Ok(Self { file, recording: false, unsaved: false, entries })
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.recording
    }

    /// Takes the first entry that `matches`, so that each is replayed once.
    pub(crate) fn replay(&mut self, matches: impl Fn(&E) -> bool) -> Option<E> {
        if self.recording {
            return None;
        }
        self.entries.iter().position(matches).map(|at| self.entries.remove(at))
    }

    pub(crate) fn record(&mut self, entry: E) {
        self.entries.push(entry);
        self.unsaved = true;
    }

    /// Writes the entries recorded since the last save.
    pub(crate) fn save(&mut self) {
        if !std::mem::take(&mut self.unsaved) {
            return;
        }
        let file = File { version: VERSION, kind: E::PROTOCOL, entries: self.entries.iter().collect() };
        let written = serde_json::to_string_pretty(&file)
            .map_err(std::io::Error::other)
            .and_then(|text| std::fs::write(&self.file, text + "\n"));
        if let Err(error) = written {
            eprintln!("the cassette {} cannot be written: {error}", self.file.display());
        }
    }
}

impl<E: Entry> Drop for Cassette<E> {
    fn drop(&mut self) {
        self.save();
    }
}

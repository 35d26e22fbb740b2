//! The file of a cassette: opened, replayed entry by entry, or recorded.

use std::{io::Write as _, path::PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    options::{RecordMode, RecordOptions},
    redact::{Redactor, Secrets},
};

/// A cassette cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the cassette {file} cannot be used: {problem}; {advice}")]
pub struct CassetteError {
    /// The file.
    pub file: String,
    /// The problem.
    pub problem: String,
    /// How to solve it.
    pub advice: &'static str,
}

/// The protocol of the recorded messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Protocol {
    Http,
    Mcp,
}

/// One recorded exchange, without the secrets that its places show.
pub(crate) trait Entry: Serialize + DeserializeOwned {
    /// The `kind` of a cassette with such entries.
    const PROTOCOL: Protocol;

    /// The request, for reports.
    #[cfg(feature = "http-mock")]
    fn name(&self) -> String;

    /// True if the other entry answers the same request.
    fn is_same_request(&self, other: &Self) -> bool;

    /// Replaces every text of the entry.
    fn map_text(&mut self, scrub: &dyn Fn(&str) -> String);
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File<E> {
    version: u32,
    kind: Protocol,
    entries: Vec<E>,
}

const VERSION: u32 = 1;
/// Requests named in a report.
#[cfg(feature = "http-mock")]
const MOST_NAMED: usize = 10;

/// An open cassette. One that records is written by [`Cassette::finish`]; without that when it is dropped, unless the thread panics.
#[derive(Debug)]
pub(crate) struct Cassette<E: Entry> {
    file: PathBuf,
    mode: RecordMode,
    recording: bool,
    /// True if the file is out of date. A new cassette is written even if it stays empty.
    unsaved: bool,
    /// True if only [`Cassette::finish`] may write it.
    managed: bool,
    entries: Vec<E>,
    pub(crate) redactor: Redactor,
    pub(crate) secrets: Secrets,
}

impl<E: Entry> Cassette<E> {
    /// Opens a cassette, to replay or to record it.
    pub(crate) fn open(file: PathBuf, options: &RecordOptions) -> Result<Self, CassetteError> {
        let found = match options.mode {
            RecordMode::All => None,
            RecordMode::None | RecordMode::New => read(&file)?,
        };
        if found.is_none() && options.mode == RecordMode::None {
            return Err(CassetteError {
                file: file.display().to_string(),
                problem: "it does not exist".into(),
                advice: "record it with the mode `new`, and keep it with the tests",
            });
        }
        let recording = found.is_none();
        Ok(Self {
            file,
            mode: options.mode,
            recording,
            unsaved: recording,
            managed: false,
            entries: found.unwrap_or_default(),
            redactor: Redactor::new(&options.redaction),
            secrets: Secrets::default(),
        })
    }

    /// Leaves writing to [`Cassette::finish`], which knows whether the test passed.
    #[cfg(feature = "suites")]
    pub(crate) fn manage(&mut self) {
        self.managed = true;
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

    /// Writes a recording whose test passed, and returns notes for the report, such as the entries that no request used. After a run of
    /// some tests only (not `complete`), older entries stay in the file, and unused ones are not named. The error says why the file
    /// cannot be written.
    #[cfg(feature = "http-mock")]
    pub(crate) fn finish(&mut self, passed: bool, complete: bool) -> Result<Vec<String>, String> {
        let file = self.file.display();
        if self.recording {
            if !passed {
                self.unsaved = false;
                return Ok(vec![format!("the cassette {file} was not written, because a test failed")]);
            }
            return self.save(!complete).map(|()| Vec::new());
        }
        if !passed || !complete || self.entries.is_empty() {
            return Ok(Vec::new());
        }
        let mut names: Vec<String> = self.entries.iter().take(MOST_NAMED).map(Entry::name).collect();
        if self.entries.len() > MOST_NAMED {
            names.push(format!("and {} more", self.entries.len() - MOST_NAMED));
        }
        Ok(vec![format!(
            "the cassette {file} has {} answers that nothing asked for; record it again: {}",
            self.entries.len(),
            names.join(", ")
        )])
    }

    /// Writes a recording that nobody manages.
    pub(crate) fn save_unmanaged(&mut self) {
        if !self.managed
            && let Err(problem) = self.save(false)
        {
            eprintln!("{problem}");
        }
    }

    /// Writes the entries recorded since the last save: all or nothing, through a temporary file beside it.
    fn save(&mut self, keep_old: bool) -> Result<(), String> {
        if !std::mem::take(&mut self.unsaved) {
            return Ok(());
        }
        let failed =
            |problem: String| format!("the cassette {} cannot be written: {problem}", self.file.display());
        let scrub = self.secrets.scrubber();
        self.entries.iter_mut().for_each(|entry| entry.map_text(&scrub));
        let mut old = Vec::new();
        if keep_old && self.mode == RecordMode::All {
            old = read::<E>(&self.file).map_err(|error| error.to_string())?.unwrap_or_default();
            old.retain(|old| !self.entries.iter().any(|new| new.is_same_request(old)));
        }
        let entries = old.iter().chain(&self.entries).collect();
        let file = File { version: VERSION, kind: E::PROTOCOL, entries };
        let text = serde_json::to_string_pretty(&file).map_err(|error| failed(error.to_string()))? + "\n";
        let dir = self.file.parent().filter(|dir| !dir.as_os_str().is_empty());
        let dir = dir.unwrap_or(std::path::Path::new("."));
        let write = || -> std::io::Result<()> {
            let readable = std::os::unix::fs::PermissionsExt::from_mode(0o666);
            let mut temporary = tempfile::Builder::new().permissions(readable).tempfile_in(dir)?;
            temporary.write_all(text.as_bytes())?;
            temporary.persist(&self.file).map(drop).map_err(|error| error.error)
        };
        write().map_err(|error| failed(error.to_string()))
    }
}

/// Reads a file; `None` if it does not exist.
fn read<E: Entry>(file: &std::path::Path) -> Result<Option<Vec<E>>, CassetteError> {
    let unusable = |problem: String| CassetteError {
        file: file.display().to_string(),
        problem,
        advice: "delete it to record a new one",
    };
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
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
    entries.map(Some).map_err(|error| unusable(error.to_string()))
}

impl<E: Entry> Drop for Cassette<E> {
    fn drop(&mut self) {
        // A test that failed leaves the file as it was.
        if !std::thread::panicking() {
            self.save_unmanaged();
        }
    }
}

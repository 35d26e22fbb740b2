//! The file that is written.

use std::{
    cell::RefCell,
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;
use serde_json::json;

use super::chain::{CONTINUES, LOST, TORN, parts, seal, sha256_hex};

/// Bytes of a line, at most.
const MOST_LINE: usize = 4 * 1024 * 1024;
/// Bytes at the end of a file in which its last whole line is looked for. Two parts of lines may follow it.
const TAIL: u64 = 4 * MOST_LINE as u64;
/// Beginning of the note about a cut line.
const NOTE: &[u8] = b"{\"event\":\"audit.torn\"";

/// An audit file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The operating system refuses.
    #[error("the audit file {path} cannot be used: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Another process has the file open.
    #[error("another process writes the audit file {0}; give each instance a file of its own")]
    Locked(PathBuf),
    /// The file is no audit file.
    #[error("{0} is not an audit file: its last line has no digest; name a new file")]
    Foreign(PathBuf),
}

/// Bytes of a line's room that a thread keeps for the next; most lines need some 500.
const MOST_KEPT: usize = 64 * 1024;

thread_local! {
    static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Events lost between two warnings.
const SAY_AGAIN: u64 = 10_000;

/// An audit file that is open to append to.
#[derive(Debug)]
pub struct AuditFile {
    path: PathBuf,
    writer: Mutex<Writer>,
    sync: bool,
}

#[derive(Debug)]
struct Writer {
    file: File,
    chain: String,
    /// Bytes of the file up to the end of its last whole line.
    length: u64,
    /// A write failed, and may have left a part of a line.
    is_dirty: bool,
    /// Unfinished last line of an earlier process.
    unfinished: Option<Unfinished>,
    /// Events that could not be written since the last that could.
    lost: u64,
}

impl AuditFile {
    /// Opens `path`, or makes it for its owner alone (mode 600), and goes on from its last line.
    ///
    /// # Errors
    /// When it cannot be read or written, another process holds it, or it holds something else.
    pub fn open(path: &Path) -> Result<Self, AuditError> {
        Ok(Self { path: path.to_owned(), writer: Mutex::new(Writer::open(path)?), sync: false })
    }

    /// Writes each line to the disk before going on.
    #[must_use]
    pub fn sync_each(mut self, sync: bool) -> Self {
        self.sync = sync;
        self
    }

    /// Goes on in the file that now has the path, when the one that is open was moved away (log rotation). Its first line from
    /// here says which digest the old file ends with. Says whether there was one to go on in.
    ///
    /// # Errors
    /// As [`AuditFile::open`]; then the old file goes on.
    pub fn reopen(&self) -> Result<bool, AuditError> {
        let mut writer = self.writer();
        let failed = |source| AuditError::Io { path: self.path.clone(), source };
        let open = writer.file.metadata().map_err(failed)?;
        let is_same = std::fs::metadata(&self.path)
            .is_ok_and(|named| (named.dev(), named.ino()) == (open.dev(), open.ino()));
        if is_same {
            return Ok(false);
        }
        let mut new = Writer::open(&self.path)?;
        let mut line = json!({"event": CONTINUES, "previous": writer.chain}).to_string().into_bytes();
        if let Err(source) = new.put(&mut line, self.sync) {
            // Only as its first line does it say what the file continues.
            let _ = new.file.set_len(new.length);
            return Err(failed(source));
        }
        new.lost = writer.lost;
        *writer = new;
        Ok(true)
    }

    /// Appends a JSON object as one line, of 4 MiB at most. What cannot be written is failed in the log, counted, and noted in the file once there is
    /// room again; the caller goes on.
    pub fn append(&self, object: &impl Serialize) {
        LINE.with_borrow_mut(|line| {
            line.clear();
            self.append_as(line, object);
            if line.capacity() > MOST_KEPT {
                *line = Vec::new();
            }
        });
    }

    fn append_as(&self, line: &mut Vec<u8>, object: &impl Serialize) {
        if serde_json::to_writer(&mut *line, object).is_err() || line.len() <= 2 || !line.starts_with(b"{") {
            return tracing::error!("an audit event is not a JSON object with members; it is not kept");
        }
        let mut writer = self.writer();
        let fits = if line.len() > MOST_LINE { Err(io::ErrorKind::InvalidInput.into()) } else { Ok(()) };
        let written =
            fits.and_then(|()| writer.recover(self.sync)).and_then(|()| writer.put(line, self.sync));
        if let Err(error) = written {
            if writer.lost.is_multiple_of(SAY_AGAIN) {
                let (path, lost) = (self.path.display(), writer.lost + 1);
                tracing::error!(%path, lost, %error, "audit events cannot be written and are lost");
            }
            writer.lost += 1;
        }
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    fn open(path: &Path) -> Result<Self, AuditError> {
        let failed = |source| AuditError::Io { path: path.to_owned(), source };
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(AuditError::Locked(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let tail =
            Tail::of(&mut file).map_err(failed)?.ok_or_else(|| AuditError::Foreign(path.to_owned()))?;
        let end = file.metadata().map_err(failed)?.len();
        let unfinished = match (tail.lacks_break, tail.is_torn) {
            (true, _) => Some(Unfinished::Whole),
            (false, true) => Some(Unfinished::Torn { end }),
            (false, false) => None,
        };
        if tail.is_torn {
            tracing::warn!(path = %path.display(), "the last line of the audit file was cut in two; it stays, and is named in the next");
        }
        let is_dirty = unfinished.is_some();
        let mut writer = Self { file, chain: tail.chain, length: tail.length, is_dirty, unfinished, lost: 0 };
        match writer.recover(false) {
            // A full disk keeps nobody from starting, as it keeps nobody from going on.
            Err(error) if is_full(&error) => {
                tracing::error!(path = %path.display(), %error, "the audit file cannot be written now; it is tried again with each event");
            }
            recovered => recovered.map_err(failed)?,
        }
        Ok(writer)
    }

    /// Writes bytes that end a line.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.is_dirty = true;
        self.file.write_all(bytes)?;
        self.is_dirty = false;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Writes an object's text as one line; `line` is that line then.
    fn put(&mut self, line: &mut Vec<u8>, sync: bool) -> io::Result<()> {
        let chain = seal(&self.chain, line);
        self.write(line)?;
        self.chain = chain;
        if sync { self.file.sync_data() } else { Ok(()) }
    }

    /// After a failure: takes the part of a line away, or notes it where that is not allowed (an append-only file), and says how
    /// many events are missing.
    fn recover(&mut self, sync: bool) -> io::Result<()> {
        if self.is_dirty {
            match self.unfinished {
                Some(Unfinished::Whole) => {
                    self.file.write_all(b"\n")?;
                    self.length += 1;
                }
                Some(Unfinished::Torn { end }) => {
                    // What earlier tries left of the note goes, the cut line stays.
                    let _ = self.file.set_len(end);
                    self.note_torn()?;
                }
                None => {
                    if self.file.metadata()?.len() > self.length && self.file.set_len(self.length).is_err() {
                        self.note_torn()?;
                    }
                }
            }
            self.unfinished = None;
            self.is_dirty = false;
        }
        if self.lost > 0 {
            let mut line = json!({"event": LOST, "count": self.lost}).to_string().into_bytes();
            self.put(&mut line, sync)?;
            tracing::warn!(lost = self.lost, "audit events are written again; some are lost");
            self.lost = 0;
        }
        Ok(())
    }

    /// Names what comes after the last whole line, and ends it.
    fn note_torn(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.length))?;
        let mut torn = Vec::new();
        self.file.read_to_end(&mut torn)?;
        // Its members in this order: `NOTE`.
        let note =
            format!("{{\"event\":\"{TORN}\",\"sha256\":\"{}\",\"bytes\":{}}}", sha256_hex(&torn), torn.len());
        let mut line = note.into_bytes();
        let chain = seal(&self.chain, &mut line);
        // In one piece, so that a crash leaves no line without its note.
        line.insert(0, b'\n');
        self.write(&line)?;
        self.length += torn.len() as u64;
        self.chain = chain;
        Ok(())
    }
}

/// The last line of a file that a crash ended.
#[derive(Debug)]
enum Unfinished {
    /// It lacks its line break alone.
    Whole,
    /// It was cut in two; the file ended here.
    Torn { end: u64 },
}

/// Returns true for a lack of room, which may change.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The end of a file.
#[derive(Default)]
struct Tail {
    /// Digest of the last whole line.
    chain: String,
    /// End of that line in the file.
    length: u64,
    /// It has no line break.
    lacks_break: bool,
    /// Something comes after it.
    is_torn: bool,
}

impl Tail {
    /// None for a file that holds something else.
    fn of(file: &mut File) -> io::Result<Option<Self>> {
        let start = file.metadata()?.len().saturating_sub(TAIL);
        file.seek(SeekFrom::Start(start))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        if end.is_empty() {
            return Ok(Some(Self::default()));
        }
        let digest = |line: &[u8]| Some(parts(std::str::from_utf8(line).ok()?)?.1.to_owned());
        let last = end.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if let Some(chain) = digest(&end[last..]) {
            let length = start + end.len() as u64;
            return Ok(Some(Self { chain, length, lacks_break: true, is_torn: false }));
        }
        // A note of a cut line can itself be cut: then two lines follow the last whole one.
        let is_note = [&end[last..], NOTE]
            .iter()
            .map(|text| text.len())
            .min()
            .is_some_and(|least| last > 0 && least > 0 && end[last..][..least] == NOTE[..least]);
        let mut at = last;
        for _ in 0..=usize::from(is_note) {
            let before =
                end[..at.saturating_sub(1)].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            match digest(&end[before..at.saturating_sub(1)]) {
                Some(chain) => {
                    let length = start + at as u64;
                    let is_torn = at < end.len();
                    return Ok(Some(Self { chain, length, lacks_break: false, is_torn }));
                }
                None => at = before,
            }
        }
        let is_first = start == 0 && at == 0 && end[0] == b'{' && (last == 0 || is_note);
        Ok(is_first.then_some(Self { is_torn: true, ..Self::default() }))
    }
}

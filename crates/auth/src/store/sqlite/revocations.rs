//! Announcement of revocations between processes: a number in the file, read again when the file has changed.
//!
//! SQLite reports to a connection whether another one has written (`PRAGMA data_version`), from shared memory and without waiting for a
//! writer. The connection used here writes nothing, so it also notices the process's own revocations.

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

/// Last state of the file.
pub(super) struct Watch(Mutex<Seen>);

struct Seen {
    connection: Connection,
    /// Name of the record.
    name: String,
    version: i64,
    record: Vec<u8>,
    count: u64,
}

impl Watch {
    /// Watches the record called `name` in the file at `path`.
    pub(super) fn open(path: &Path, name: String) -> Result<Self, rusqlite::Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::ZERO)?;
        connection.execute_batch("PRAGMA query_only = ON")?;
        Ok(Self(Mutex::new(Seen { connection, name, version: 0, record: Vec::new(), count: 0 })))
    }

    /// Number that grows with each write of the record, and with each failure to read it.
    pub(super) fn count(&self) -> u64 {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.look() {
            Ok(false) => {}
            Ok(true) => seen.count += 1,
            Err(error) => {
                tracing::warn!(%error, "what ended cannot be read from the token store");
                seen.count += 1;
            }
        }
        seen.count
    }
}

impl Seen {
    /// Returns whether the record has changed since the last call.
    fn look(&mut self) -> Result<bool, rusqlite::Error> {
        let version = self
            .connection
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get::<_, i64>(0))?;
        if version == self.version {
            return Ok(false);
        }
        let record: Option<Vec<u8>> = self
            .connection
            .prepare_cached("SELECT value FROM records WHERE key = ?1")?
            .query_row(params![self.name], |row| row.get(0))
            .optional()?;
        let record = record.unwrap_or_default();
        self.version = version;
        let is_other = record != self.record;
        self.record = record;
        Ok(is_other)
    }
}

//! The store of one node that survives restarts: one SQLite file.
//!
//! Every step is one immediate transaction, so that two processes on one file see each step whole. Announcement of revocations is in
//! `revocations`.

mod revocations;

use std::{
    fs::OpenOptions,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use self::revocations::Watch;
use tokio::sync::Semaphore;

use super::{
    CodeStore, Counters, Digest, FamilyId, Hit, Key, Listing, Records, Redeemed, RefreshTokenStore,
    RevocationFeed, Rotated, Rotation, StoreError,
    atomic::{self, Transaction, ms},
};
use crate::clock::Clock;

const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE IF NOT EXISTS records (
        key TEXT PRIMARY KEY, value BLOB NOT NULL, expires_ms INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS records_expiry ON records (expires_ms);";

/// Record that is written with each revocation.
const ENDINGS: &str = "endings";
/// Lifetime of the revision. An instance that starts later has nothing cached.
const KEPT: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Writes between two removals of expired records.
const SWEEP_EVERY: u64 = 1024;

/// A store in one SQLite file.
pub struct SqliteStore {
    database: Arc<Mutex<Database>>,
    /// The turn of a step. Those that wait for it take no thread.
    turn: Arc<Semaphore>,
    watch: Watch,
    clock: Arc<dyn Clock>,
    prefix: Arc<str>,
}

struct Database {
    connection: Connection,
    steps: u64,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens `path`, or creates it for its owner alone (mode 600). `prefix` comes before the names of all records.
    ///
    /// # Errors
    /// The file cannot be opened or is not a database.
    pub fn open(path: &Path, prefix: &str, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        create_private(path).map_err(|error| StoreError::Unavailable(error.into()))?;
        let connection = Connection::open(path).map_err(unavailable)?;
        connection.busy_timeout(Duration::from_secs(5)).map_err(unavailable)?;
        connection.execute_batch(SCHEMA).map_err(unavailable)?;
        let database = Arc::new(Mutex::new(Database { connection, steps: 0 }));
        let watch = Watch::open(path, format!("{prefix}{ENDINGS}")).map_err(unavailable)?;
        let turn = Arc::new(Semaphore::new(1));
        Ok(Self { database, turn, watch, clock, prefix: prefix.into() })
    }

    /// Runs one step in one transaction, off the async threads.
    async fn step<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut InTransaction<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        // Never closed.
        let turn = self.turn.clone().acquire_owned().await.ok();
        let (database, prefix, now_ms) = (self.database.clone(), self.prefix.clone(), self.clock.now_ms());
        let work = move || {
            // The step goes on if nobody waits for it any more.
            let _turn = turn;
            let mut database = database.lock().unwrap_or_else(PoisonError::into_inner);
            database.steps += 1;
            let sweep = database.steps.is_multiple_of(SWEEP_EVERY);
            let transaction = database
                .connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(unavailable)?;
            if sweep {
                transaction
                    .execute("DELETE FROM records WHERE expires_ms <= ?1", params![signed(now_ms)])
                    .map_err(unavailable)?;
            }
            let outcome = run(&mut InTransaction { transaction: &transaction, prefix: &prefix, now_ms })?;
            transaction.commit().map_err(unavailable)?;
            Ok(outcome)
        };
        tokio::task::spawn_blocking(work).await.map_err(|gone| StoreError::Unavailable(gone.into()))?
    }
}

/// Creates the file when it does not exist. SQLite's journals beside it get its mode. One that exists is not opened: whoever closes a
/// file gives up all POSIX locks that the process has on it, those of SQLite's connections as well, and then any other program that
/// closes the database takes itself for the last one and removes the journal from under them.
fn create_private(path: &Path) -> std::io::Result<()> {
    use std::io::{Error, ErrorKind};
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => return Ok(()),
        // Opening a pipe waits for who reads it.
        Ok(_) => return Err(Error::other("it is not a regular file")),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_symlink() && !path.exists() => {
            // A link to a file that does not exist yet.
            options.create_new(false).create(true).open(path).map(drop)
        }
        // Another thread or process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        opened => opened.map(drop),
    }
}

fn unavailable(error: rusqlite::Error) -> StoreError {
    StoreError::Unavailable(error.into())
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

struct InTransaction<'a> {
    transaction: &'a rusqlite::Transaction<'a>,
    prefix: &'a str,
    now_ms: u64,
}

impl InTransaction<'_> {
    fn name(&self, key: &Key) -> String {
        format!("{}{}", self.prefix, key.as_str())
    }
}

impl Transaction for InTransaction<'_> {
    fn get(&mut self, key: &Key) -> Result<Option<(Vec<u8>, u64)>, StoreError> {
        let name = self.name(key);
        self.transaction
            .prepare_cached("SELECT value, expires_ms FROM records WHERE key = ?1 AND expires_ms > ?2")
            .and_then(|mut query| {
                query
                    .query_row(params![name, signed(self.now_ms)], |row| {
                        Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
                    })
                    .optional()
            })
            .map_err(unavailable)
    }

    fn set(&mut self, key: &Key, value: &[u8], expires_ms: u64) -> Result<(), StoreError> {
        let name = self.name(key);
        self.transaction
            .prepare_cached("INSERT OR REPLACE INTO records (key, value, expires_ms) VALUES (?1, ?2, ?3)")
            .and_then(|mut query| query.execute(params![name, value, signed(expires_ms)]))
            .map_err(unavailable)?;
        Ok(())
    }

    fn remove(&mut self, key: &Key) -> Result<(), StoreError> {
        let name = self.name(key);
        self.transaction
            .prepare_cached("DELETE FROM records WHERE key = ?1")
            .and_then(|mut query| query.execute(params![name]))
            .map_err(unavailable)?;
        Ok(())
    }

    fn now_ms(&self) -> u64 {
        self.now_ms
    }
}

#[async_trait]
impl Records for SqliteStore {
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let keys = keys.to_vec();
        self.step(move |t| keys.iter().map(|key| Ok(t.get(key)?.map(|(value, _)| value))).collect()).await
    }

    async fn put(&self, key: &Key, value: &[u8], ttl: Duration) -> Result<(), StoreError> {
        let (key, value) = (key.clone(), value.to_vec());
        self.step(move |t| t.set(&key, &value, t.now_ms + ms(ttl))).await
    }

    async fn put_many(&self, records: &[(Key, &[u8], Duration)]) -> Result<(), StoreError> {
        let records: Vec<_> =
            records.iter().map(|(key, value, ttl)| (key.clone(), value.to_vec(), ms(*ttl))).collect();
        let write = move |t: &mut InTransaction<'_>| {
            let now_ms = t.now_ms;
            records.iter().try_for_each(|(key, value, ttl)| t.set(key, value, now_ms + ttl))
        };
        self.step(write).await
    }

    async fn put_new(&self, key: &Key, value: &[u8], ttl: Duration) -> Result<bool, StoreError> {
        let (key, value) = (key.clone(), value.to_vec());
        self.step(move |t| atomic::put_new(t, &key, &value, ttl)).await
    }

    async fn replace(
        &self,
        key: &Key,
        expected: &[u8],
        value: &[u8],
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        let (key, expected, value) = (key.clone(), expected.to_vec(), value.to_vec());
        self.step(move |t| atomic::replace(t, &key, &expected, &value, ttl)).await
    }

    async fn take(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        let key = key.clone();
        self.step(move |t| atomic::take(t, &key)).await
    }

    async fn remove_many(&self, keys: &[Key]) -> Result<(), StoreError> {
        let keys = keys.to_vec();
        self.step(move |t| keys.iter().try_for_each(|key| t.remove(key))).await
    }
}

#[async_trait]
impl Listing for SqliteStore {
    async fn list(&self, kind: &'static str, most: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        self.step(move |t| {
            // Names of the kind lie between `kind:` and `kind;`, the next character.
            let (from, to) = (format!("{}{kind}:", t.prefix), format!("{}{kind};", t.prefix));
            let sql = "SELECT value FROM records WHERE key > ?1 AND key < ?2 AND expires_ms > ?3 LIMIT ?4";
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let mut query = t.transaction.prepare_cached(sql).map_err(unavailable)?;
            let found = query.query_map(params![from, to, signed(t.now_ms), most], |row| row.get(0));
            found.and_then(Iterator::collect).map_err(unavailable)
        })
        .await
    }
}

#[async_trait]
impl Counters for SqliteStore {
    async fn hit(&self, key: &Key, window: Duration) -> Result<Hit, StoreError> {
        let key = key.clone();
        self.step(move |t| atomic::hit(t, &key, window)).await
    }
}

#[async_trait]
impl CodeStore for SqliteStore {
    async fn redeem(
        &self,
        code: &Digest,
        family: &FamilyId,
        refresh: &Digest,
    ) -> Result<Redeemed, StoreError> {
        let (code, family, refresh) = (code.clone(), family.clone(), refresh.clone());
        self.step(move |t| atomic::redeem(t, &code, &family, &refresh)).await
    }
}

#[async_trait]
impl RefreshTokenStore for SqliteStore {
    async fn rotate(&self, rotation: Rotation<'_>) -> Result<Rotated, StoreError> {
        let (old, family) = (rotation.old.clone(), rotation.family.clone());
        let (new, sealed) = (rotation.new.clone(), rotation.sealed.to_vec());
        let Rotation { ttl, now_ms, grace, .. } = rotation;
        self.step(move |t| {
            let rotation =
                Rotation { old: &old, family: &family, new: &new, sealed: &sealed, ttl, now_ms, grace };
            atomic::rotate(t, &rotation)
        })
        .await
    }
}

#[async_trait]
impl RevocationFeed for SqliteStore {
    async fn announce(&self) {
        let counted = self.step(|t| atomic::hit(t, &Key::single(ENDINGS), KEPT)).await;
        if let Err(error) = counted {
            tracing::warn!(%error, "other processes could not be told of an ending; they look again within 5 seconds");
        }
    }

    fn revision(&self) -> u64 {
        self.watch.count()
    }
}

//! Records that instances of one gateway share: the interface of a store, which others implement.

use std::time::Duration;

use crate::AppFuture;

/// A failure of [`SharedRecords`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// The store does not answer in time, or answered with an error. A write may have been made all the same.
    #[error("the store of shared records does not answer")]
    Unavailable,
    /// The store has no room.
    #[error("the store of shared records is full")]
    Full,
}

/// A record to write.
#[derive(Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// Its name.
    pub key: String,
    /// Its contents.
    pub value: Vec<u8>,
    /// Time after which it expires.
    pub ttl: Duration,
}

impl std::fmt::Debug for NewRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewRecord").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Answer of [`SharedRecords`].
pub type RecordsFuture<'a, T> = AppFuture<'a, Result<T, RecordsError>>;

/// Named records with a lifetime that instances share. Names are texts of any length without secrets in them.
pub trait SharedRecords: Send + Sync + 'static {
    /// The records `keys`, in their order.
    fn get_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, Vec<Option<Vec<u8>>>>;

    /// Writes `records`, in no order. If it fails, some may have been written.
    fn put_many<'a>(&'a self, records: &'a [NewRecord]) -> RecordsFuture<'a, ()>;

    /// Atomic: writes `after` if the record is `before`, where `None` is none. Returns `false` if it is another. Of two concurrent calls
    /// with the same `before` exactly one returns `true`.
    fn replace<'a>(
        &'a self,
        key: &'a str,
        before: Option<&'a [u8]>,
        after: &'a [u8],
        ttl: Duration,
    ) -> RecordsFuture<'a, bool>;

    /// Removes the records `keys`.
    fn remove_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, ()>;
}

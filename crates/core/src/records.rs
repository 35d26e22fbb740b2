//! Records that instances of one gateway share: the interface of a store, which others implement, and one in memory.

use std::{
    collections::HashMap,
    future::ready,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

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

/// Records of [`MemoryRecords`], at most.
const MOST_IN_MEMORY: usize = 100_000;

/// Least time between two looks for expired records in a full store: each looks at all.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(1);

/// Records in the memory of this process, at most 100,000.
#[derive(Default)]
pub struct MemoryRecords(Mutex<Records>);

#[derive(Default)]
struct Records {
    all: HashMap<String, (Vec<u8>, Instant)>,
    /// Time of the last look for expired records.
    swept: Option<Instant>,
}

impl std::fmt::Debug for MemoryRecords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryRecords").finish_non_exhaustive()
    }
}

impl MemoryRecords {
    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    fn put(&mut self, key: &str, value: &[u8], ttl: Duration) -> Result<(), RecordsError> {
        let now = Instant::now();
        if self.all.len() >= MOST_IN_MEMORY && !self.all.contains_key(key) {
            if self.swept.is_none_or(|swept| now.duration_since(swept) >= BETWEEN_SWEEPS) {
                self.all.retain(|_, (_, until)| *until > now);
                self.swept = Some(now);
            }
            if self.all.len() >= MOST_IN_MEMORY {
                return Err(RecordsError::Full);
            }
        }
        self.all.insert(key.to_owned(), (value.to_vec(), now + ttl));
        Ok(())
    }

    /// The record `key`, if it is alive.
    fn alive(&self, key: &str) -> Option<&[u8]> {
        self.all.get(key).filter(|(_, until)| *until > Instant::now()).map(|(value, _)| value.as_slice())
    }
}

impl SharedRecords for MemoryRecords {
    fn get_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, Vec<Option<Vec<u8>>>> {
        let records = self.lock();
        let found = keys.iter().map(|key| records.alive(key).map(<[u8]>::to_vec)).collect();
        Box::pin(ready(Ok(found)))
    }

    fn put_many<'a>(&'a self, new: &'a [NewRecord]) -> RecordsFuture<'a, ()> {
        let mut records = self.lock();
        let put = new.iter().try_for_each(|one| records.put(&one.key, &one.value, one.ttl));
        Box::pin(ready(put))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        before: Option<&'a [u8]>,
        after: &'a [u8],
        ttl: Duration,
    ) -> RecordsFuture<'a, bool> {
        let mut records = self.lock();
        let replaced = match records.alive(key) == before {
            true => records.put(key, after, ttl).map(|()| true),
            false => Ok(false),
        };
        Box::pin(ready(replaced))
    }

    fn remove_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, ()> {
        let mut records = self.lock();
        keys.iter().for_each(|key| drop(records.all.remove(key)));
        Box::pin(ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_full_store_is_searched_for_expired_records_once_a_second() {
        let store = MemoryRecords::default();
        let record = |key: String, millis: u64| NewRecord {
            key,
            value: Vec::new(),
            ttl: Duration::from_millis(millis),
        };
        let all: Vec<_> = (0..MOST_IN_MEMORY).map(|n| record(n.to_string(), 100)).collect();
        store.put_many(&all).await.unwrap();
        let more = [record("more".to_owned(), 100)];
        assert_eq!(store.put_many(&more).await, Err(RecordsError::Full));
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(store.put_many(&more).await, Err(RecordsError::Full));
        assert_eq!(store.get_many(&["0".to_owned()]).await, Ok(vec![None]));
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(store.put_many(&more).await, Ok(()));
        assert_eq!(store.lock().all.len(), 1);
    }
}

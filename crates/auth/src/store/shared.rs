//! Records of other parts of the gateway, kept beside those of the authorization server.

use std::{future::Future, sync::Arc, time::Duration};

use gatewright_core::{NewRecord, RecordsError, RecordsFuture, SharedRecords};

use super::{Key, Store, StoreError};

/// Longest wait for the store.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Records of one kind in a token store.
pub struct StoreRecords {
    store: Arc<dyn Store>,
    kind: &'static str,
}

impl std::fmt::Debug for StoreRecords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreRecords").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl StoreRecords {
    /// Records in `store` under the name `kind`, which no other part uses.
    pub fn new(store: Arc<dyn Store>, kind: &'static str) -> Self {
        Self { store, kind }
    }

    fn key(&self, key: &str) -> Key {
        Key::named(self.kind, &[key])
    }

    fn keys(&self, keys: &[String]) -> Vec<Key> {
        keys.iter().map(|key| self.key(key)).collect()
    }
}

impl SharedRecords for StoreRecords {
    fn get_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, Vec<Option<Vec<u8>>>> {
        Box::pin(async move {
            if keys.is_empty() {
                return Ok(Vec::new());
            }
            in_time(self.store.get_many(&self.keys(keys))).await
        })
    }

    fn put_many<'a>(&'a self, records: &'a [NewRecord]) -> RecordsFuture<'a, ()> {
        Box::pin(async move {
            let records: Vec<(Key, &[u8], Duration)> = records
                .iter()
                .map(|record| (self.key(&record.key), record.value.as_slice(), record.ttl))
                .collect();
            in_time(self.store.put_many(&records)).await
        })
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        before: Option<&'a [u8]>,
        after: &'a [u8],
        ttl: Duration,
    ) -> RecordsFuture<'a, bool> {
        Box::pin(async move {
            let key = self.key(key);
            match before {
                Some(before) => in_time(self.store.replace(&key, before, after, ttl)).await,
                None => in_time(self.store.put_new(&key, after, ttl)).await,
            }
        })
    }

    fn remove_many<'a>(&'a self, keys: &'a [String]) -> RecordsFuture<'a, ()> {
        Box::pin(async move {
            if keys.is_empty() {
                return Ok(());
            }
            in_time(self.store.remove_many(&self.keys(keys))).await
        })
    }
}

async fn in_time<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, RecordsError> {
    let answer = tokio::time::timeout(TIMEOUT, answer).await.map_err(|_| RecordsError::Unavailable)?;
    answer.map_err(|error| match error {
        StoreError::Full => RecordsError::Full,
        StoreError::Unavailable(_) | StoreError::Corrupt => {
            tracing::debug!(%error, "a shared record cannot be read or written");
            RecordsError::Unavailable
        }
    })
}

//! Sealed JSON values in shared records, which are only replaced as they were read.

use std::{sync::Arc, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use crate::{RecordSealer, RecordsError, SealKey, SharedRecords};

/// Tries to change a record that others change as well.
const MOST_TRIES: usize = 32;
/// Records that are read at once.
const BATCH: usize = 64;
/// Life of the empty record that takes the place of one that is removed.
const REMOVED: Duration = Duration::from_secs(1);

/// A change of a record.
pub(super) enum Write<T> {
    Leave,
    Put(T, Duration),
    Remove,
}

/// Records sealed with keys of one key.
pub(super) struct SealedRecords {
    records: Arc<dyn SharedRecords>,
    key: SealKey,
}

impl SealedRecords {
    pub(super) fn new(records: Arc<dyn SharedRecords>, key: SealKey) -> Self {
        Self { records, key }
    }

    pub(super) fn key(&self) -> &SealKey {
        &self.key
    }

    /// The records `keys` that there are.
    pub(super) async fn read_many<T: DeserializeOwned>(
        &self,
        keys: &[String],
    ) -> Result<Vec<T>, RecordsError> {
        let mut values = Vec::new();
        for keys in keys.chunks(BATCH) {
            let records = self.records.get_many(keys).await?;
            values.extend(keys.iter().zip(records).filter_map(|(key, record)| self.open::<T>(key, record?)));
        }
        Ok(values)
    }

    /// Replaces the record `key` by what `step` makes of it. Of concurrent changes each sees the one before.
    pub(super) async fn change<T, R>(
        &self,
        key: &str,
        mut step: impl FnMut(Option<T>) -> (Write<T>, R) + Send,
    ) -> Result<R, RecordsError>
    where
        T: Serialize + DeserializeOwned + Send,
        R: Send,
    {
        for _ in 0..MOST_TRIES {
            let (before, value) = self.read::<T>(key).await?;
            let (write, result) = step(value);
            let (after, life) = match write {
                Write::Leave => return Ok(result),
                Write::Put(value, life) => (self.seal(key, &value), life),
                Write::Remove if before.is_none() => return Ok(result),
                Write::Remove => (Vec::new(), REMOVED),
            };
            if self.records.replace(key, before.as_deref(), &after, life).await? {
                return Ok(result);
            }
        }
        Err(RecordsError::Unavailable)
    }

    /// The record `key` as it is, and opened.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<(Option<Vec<u8>>, Option<T>), RecordsError> {
        let before = self.records.get_many(&[key.to_owned()]).await?.pop().flatten();
        let value = before.clone().and_then(|record| self.open(key, record));
        Ok((before, value))
    }

    fn open<T: DeserializeOwned>(&self, key: &str, record: Vec<u8>) -> Option<T> {
        if record.is_empty() {
            return None;
        }
        serde_json::from_slice(&self.sealer(key).open(key.as_bytes(), record)?).ok()
    }

    fn seal(&self, key: &str, value: &impl Serialize) -> Vec<u8> {
        let text = serde_json::to_vec(value).expect("records can be written as JSON");
        self.sealer(key).seal(key.as_bytes(), text)
    }

    fn sealer(&self, key: &str) -> RecordSealer {
        RecordSealer::new(&self.key, "approvals", key.as_bytes())
    }
}

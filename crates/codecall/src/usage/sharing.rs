//! Sharing counts between instances: each adds its own to records that all of them read.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use gatewright_core::{RecordsError, SharedRecords, read_json};
use gatewright_search::{MOST_PAIRS, Usage};

use super::SearchUsage;
use crate::rounds::Round;

/// Records of the counts, by term.
const PARTS: u64 = 16;
/// Tries to add to a record that other instances write as well.
const MOST_TRIES: usize = 5;
/// Longest record that is read or written, in bytes.
const LONGEST: usize = 256 * 1024;
/// Time after which a record is forgotten that nobody adds to.
const TTL: Duration = Duration::from_secs(90 * 24 * 3_600);

/// Counts that are shared through a store.
pub(crate) struct SharedUsage {
    usage: Arc<SearchUsage>,
    store: Arc<dyn SharedRecords>,
}

impl SharedUsage {
    /// `usage`, shared through `store` from now on.
    pub(crate) fn new(usage: Arc<SearchUsage>, store: Arc<dyn SharedRecords>) -> Self {
        usage.set_shared();
        Self { usage, store }
    }

    /// Adds what is new here to one record, and returns the outcome.
    async fn exchange(
        &self,
        number: u64,
        name: &String,
        mut record: Option<Vec<u8>>,
    ) -> Result<Usage, RecordsError> {
        for _ in 0..MOST_TRIES {
            let mut together = record.as_deref().map(read).unwrap_or_default();
            let fresh = self.usage.take_fresh(number, PARTS);
            if fresh.is_empty() {
                return Ok(together);
            }
            together.add(&fresh, SystemTime::now());
            together.trim(MOST_PAIRS / PARTS as usize);
            let after = serde_json::to_vec(&together).unwrap_or_default();
            match self.store.replace(name, record.as_deref(), &after, TTL).await {
                Ok(true) => return Ok(together),
                is_written => {
                    self.usage.put_back(&fresh);
                    is_written?;
                }
            }
            // Another instance was quicker.
            record = self.store.get_many(std::slice::from_ref(name)).await?.pop().flatten();
        }
        Ok(record.as_deref().map(read).unwrap_or_default())
    }
}

impl Round for SharedUsage {
    const PERIOD: Duration = Duration::from_secs(60);
    const NAME: &'static str = "use of tools after searches";

    async fn round(&mut self) -> Result<(), RecordsError> {
        let names: Vec<String> = (0..PARTS).map(|number| format!("v1 {number}")).collect();
        let records = self.store.get_many(&names).await?;
        let mut together = Usage::default();
        for ((number, name), record) in (0..).zip(&names).zip(records) {
            together.add(&self.exchange(number, name, record).await?, SystemTime::now());
        }
        self.usage.take_over(together);
        Ok(())
    }
}

/// A record; empty for one that cannot be read, such as one of another version. It is written anew.
fn read(record: &[u8]) -> Usage {
    let is_short = record.len() <= LONGEST;
    is_short.then(|| read_json(record).ok()).flatten().unwrap_or_default()
}

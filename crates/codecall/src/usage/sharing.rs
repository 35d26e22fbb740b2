//! Sharing counts between instances: each adds its own to records that all of them read.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use gatewright_core::{RecordsError, SharedRecords, read_json};
use gatewright_search::{MOST_PAIRS, Usage};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::SearchUsage;

/// Time between two rounds.
const PERIOD: Duration = Duration::from_secs(60);
/// Records of the counts, by term.
const PARTS: u64 = 16;
/// Tries to add to a record that other instances write as well.
const MOST_TRIES: usize = 5;
/// Longest record that is read or written, in bytes.
const LONGEST: usize = 256 * 1024;
/// Time after which a record is forgotten that nobody adds to.
const TTL: Duration = Duration::from_secs(90 * 24 * 3_600);
/// Longest time of the last round, when the gateway stops.
const LAST_ROUND: Duration = Duration::from_secs(2);

/// The task that shares counts.
#[derive(Debug, Default)]
pub(crate) struct UsageSharing(Mutex<Option<(CancellationToken, JoinHandle<()>)>>);

impl UsageSharing {
    /// Shares `usage` through `store` from now on.
    pub(crate) fn start(&self, usage: Arc<SearchUsage>, store: Arc<dyn SharedRecords>) {
        usage.set_shared();
        let stop = CancellationToken::new();
        let task = tokio::spawn(Rounds { usage, store }.run(stop.clone()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((stop, task));
    }

    /// Shares what is left, and ends.
    pub(crate) async fn close(&self) {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((stop, task)) = running {
            stop.cancel();
            let _ = task.await;
        }
    }
}

struct Rounds {
    usage: Arc<SearchUsage>,
    store: Arc<dyn SharedRecords>,
}

impl Rounds {
    async fn run(self, stop: CancellationToken) {
        let mut is_down = false;
        loop {
            let failed = self.round().await.is_err();
            if failed && !is_down {
                tracing::warn!("use of tools after searches is not shared: the store does not answer");
            }
            is_down = failed;
            tokio::select! {
                () = tokio::time::sleep(PERIOD) => {}
                () = stop.cancelled() => break,
            }
        }
        let _ = tokio::time::timeout(LAST_ROUND, self.round()).await;
    }

    /// Adds what is new here to the records, and takes over what all instances counted.
    async fn round(&self) -> Result<(), RecordsError> {
        let names: Vec<String> = (0..PARTS).map(|number| format!("v1 {number}")).collect();
        let records = self.store.get_many(&names).await?;
        let mut together = Usage::default();
        for ((number, name), record) in (0..).zip(&names).zip(records) {
            together.add(&self.exchange(number, name, record).await?, SystemTime::now());
        }
        self.usage.take_over(together);
        Ok(())
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

/// A record; empty for one that cannot be read, such as one of another version. It is written anew.
fn read(record: &[u8]) -> Usage {
    let is_short = record.len() <= LONGEST;
    is_short.then(|| read_json(record).ok()).flatten().unwrap_or_default()
}

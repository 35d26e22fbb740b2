//! Scripts whose approvals are settled: somebody decided, or nobody did in time.
//!
//! A script that waits in the background has no process that could notice. Whoever settles an approval notes the scripts that wait for it in one
//! record. This process is woken at once; other instances read the record from time to time, and whoever goes on with a script removes it. So
//! looking costs the same however many scripts wait.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ApprovalStore, record::now_ms, sealed::Write, waiting::Entry};
use crate::RecordsError;

/// Name of the record.
const SETTLED: &str = "settled";
/// Scripts in the record; the oldest make room. One that is not there goes on with the next look of its client.
const MOST: usize = 1_000;
/// Longest time that a decision takes after its scripts were noted.
const DECIDING_MS: u64 = 60_000;
/// Life of the record after its last change.
const LIFE: Duration = Duration::from_secs(24 * 3_600);

/// A script that can go on, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledRun {
    /// The id of the script's execution.
    pub run: String,
    /// Another one each time an approval is settled: a later one is not removed with an earlier one.
    mark: u64,
    /// Milliseconds since 1970-01-01 UTC.
    at_ms: u64,
}

impl SettledRun {
    /// Returns `true` while whoever noted it may not have got to the decision yet.
    pub fn is_recent(&self) -> bool {
        now_ms() < self.at_ms.saturating_add(DECIDING_MS)
    }
}

impl ApprovalStore {
    /// Notes that approvals which `runs` wait for are settled, and wakes whoever waits for [`ApprovalStore::woken`].
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn settle(&self, runs: &[String]) -> Result<(), RecordsError> {
        self.note(runs).await?;
        if !runs.is_empty() {
            self.woken.notify_one();
        }
        Ok(())
    }

    /// Notes the scripts that wait for an approval which is about to be decided on: the process that decides may end right behind the decision.
    pub(super) async fn announce(&self, id: &str) -> Result<(), RecordsError> {
        let runs = |list: &mut Vec<Entry>| {
            let runs = list.iter().find(|entry| entry.id == id).map(|entry| entry.runs.clone());
            (false, runs.unwrap_or_default())
        };
        let runs = self.change_list(runs).await?;
        self.note(&runs).await
    }

    async fn note(&self, runs: &[String]) -> Result<(), RecordsError> {
        if runs.is_empty() {
            return Ok(());
        }
        let at_ms = now_ms();
        let mark = getrandom::u64().unwrap_or(at_ms);
        self.records
            .change(SETTLED, |settled: Option<Vec<SettledRun>>| {
                let mut settled = settled.unwrap_or_default();
                settled.retain(|one| !runs.contains(&one.run));
                settled.extend(runs.iter().map(|run| SettledRun { run: run.clone(), mark, at_ms }));
                settled.drain(..settled.len().saturating_sub(MOST));
                (Write::Put(settled, LIFE), ())
            })
            .await
    }

    /// Resolves once an approval was settled in this process since the last time that it resolved.
    pub async fn woken(&self) {
        self.woken.notified().await;
    }

    /// The scripts that nobody went on with since an approval of theirs was settled.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn settled(&self) -> Result<Vec<SettledRun>, RecordsError> {
        Ok(self.records.read(SETTLED).await?.1.unwrap_or_default())
    }

    /// Removes scripts that somebody went on with, or that need nobody to.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn unsettle(&self, done: &[SettledRun]) -> Result<(), RecordsError> {
        if done.is_empty() {
            return Ok(());
        }
        self.records
            .change(SETTLED, |settled: Option<Vec<SettledRun>>| {
                let mut settled = settled.unwrap_or_default();
                let before = settled.len();
                settled.retain(|one| !done.contains(one));
                let write = match settled.len() {
                    0 if before > 0 => Write::Remove,
                    after if after == before => Write::Leave,
                    _ => Write::Put(settled, LIFE),
                };
                (write, ())
            })
            .await
    }

    /// Ends the approvals that nobody decided on in time. Returns the time until the next one expires; none if none waits.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn expire(&self) -> Result<Option<Duration>, RecordsError> {
        let next = self.change_list(|list| (false, list.iter().map(|entry| entry.expires_ms).min())).await?;
        Ok(next.map(|at_ms| Duration::from_millis(at_ms.saturating_sub(now_ms()))))
    }
}

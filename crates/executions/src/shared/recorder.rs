//! Keeps ordinary executions that have ended: many at once, in the background.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gatewright_core::NewRecord;
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{
    directory::Directory,
    index::{Entry, SHARDS},
    journals::{chunk_key, head_key},
    seal::Sealer,
};
use crate::{
    ExecutionError, ExecutionId, Head,
    journal::{HEAD_BYTES, Journal},
    reading::{Execution, Reader},
};

/// Time in which executions are collected, to be written together.
const COLLECT: Duration = Duration::from_millis(250);
/// Wait after the store did not answer.
const PAUSE: Duration = Duration::from_secs(1);
/// Executions that are written at once.
const BATCH: usize = 256;
/// Bytes of theirs: they are copied twice until they are written.
const BATCH_BYTES: u64 = 1024 * 1024;
/// Executions that may wait to be written; more are not kept.
const MOST: usize = 4_096;
/// Bytes that may wait to be written; beyond them, executions are kept without their journals.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Executions that have ended and are not written yet.
#[derive(Default)]
struct Pending {
    queue: Mutex<Queue>,
    added: Notify,
}

#[derive(Default)]
struct Queue {
    ended: VecDeque<Arc<Ended>>,
    bytes: u64,
    is_full: bool,
}

struct Ended {
    head: Head,
    journal: Journal,
}

impl Ended {
    fn bytes(&self) -> u64 {
        self.journal.bytes() + HEAD_BYTES
    }
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an execution. One that finds no room is not kept, or without its journal.
    fn push(&self, mut head: Head, mut journal: Journal) {
        let mut queue = self.lock();
        let is_long = queue.bytes + journal.bytes() > MOST_BYTES;
        let is_left_out = queue.ended.len() >= MOST;
        if (is_long || is_left_out) && !std::mem::replace(&mut queue.is_full, true) {
            tracing::warn!(
                "executions end faster than the store takes them: some are missing from the list of executions, or have no calls there"
            );
        }
        if is_left_out {
            return;
        }
        if is_long {
            (journal, head.complete) = (Journal::default(), false);
        }
        head.bytes = journal.bytes();
        head.records = u32::from(journal.bytes() > 0);
        let ended = Arc::new(Ended { head, journal });
        queue.bytes += ended.bytes();
        queue.ended.push_back(ended);
        self.added.notify_one();
    }

    fn get(&self, id: ExecutionId) -> Option<Execution> {
        let found = self.lock().ended.iter().find(|ended| ended.head.id == id).cloned()?;
        Some(Execution { head: found.head.clone(), chunks: found.journal.chunks() })
    }

    /// Some of them, of [`BATCH_BYTES`] about.
    fn first(&self, most: usize) -> Vec<Arc<Ended>> {
        let mut bytes = 0;
        let fits = |ended: &&Arc<Ended>| {
            let fits = bytes < BATCH_BYTES;
            bytes += ended.bytes();
            fits
        };
        self.lock().ended.iter().take(most).take_while(fits).cloned().collect()
    }

    fn remove_first(&self, count: usize) {
        let mut queue = self.lock();
        for _ in 0..count {
            let Some(ended) = queue.ended.pop_front() else { break };
            queue.bytes -= ended.bytes();
        }
        queue.is_full &= !queue.ended.is_empty();
    }
}

/// The task that writes what is pending.
pub(super) struct Recorder {
    pending: Arc<Pending>,
    stop: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Recorder {
    /// A task that writes what is pending from now on.
    pub(super) fn start(directory: Arc<Directory>) -> Self {
        let (pending, stop) = (Arc::<Pending>::default(), CancellationToken::new());
        let writer = Writer { directory, pending: pending.clone(), stop: stop.clone() };
        Self { pending, stop, task: Mutex::new(Some(tokio::spawn(writer.run()))) }
    }

    /// Keeps an execution that has ended.
    pub(super) fn keep(&self, head: Head, journal: Journal) {
        self.pending.push(head, journal);
    }

    /// The execution `id`, if it is still to be written.
    pub(super) fn get(&self, id: ExecutionId) -> Option<Execution> {
        self.pending.get(id)
    }

    /// Returns an error if the execution `id` is still to be written, and so has ended.
    pub(super) fn check(&self, id: ExecutionId, reader: Reader<'_>) -> Result<(), ExecutionError> {
        match self.get(id) {
            Some(execution) if reader.may_see(&execution.head) => Err(ExecutionError::Ended),
            Some(_) => Err(ExecutionError::NotFound),
            None => Ok(()),
        }
    }

    /// Writes the rest, and ends.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct Writer {
    directory: Arc<Directory>,
    pending: Arc<Pending>,
    stop: CancellationToken,
}

impl Writer {
    async fn run(self) {
        loop {
            tokio::select! {
                () = self.pending.added.notified() => {}
                () = self.stop.cancelled() => {}
            }
            self.wait(COLLECT).await;
            loop {
                let batch = self.pending.first(BATCH);
                if batch.is_empty() {
                    break;
                }
                match self.write(&batch).await {
                    Ok(()) => self.pending.remove_first(batch.len()),
                    Err(_) if self.stop.is_cancelled() => {
                        tracing::warn!("the latest executions were not kept: the store does not answer");
                        return;
                    }
                    Err(_) => self.wait(PAUSE).await,
                }
            }
            if self.stop.is_cancelled() {
                return;
            }
        }
    }

    /// Waits for `time`, or until the end.
    async fn wait(&self, time: Duration) {
        let _ = tokio::time::timeout(time, self.stop.cancelled()).await;
    }

    async fn write(&self, batch: &[Arc<Ended>]) -> Result<(), ExecutionError> {
        let records: Vec<NewRecord> = batch.iter().flat_map(|ended| self.records(ended)).collect();
        self.directory.journals.records.put_many(&records).await?;
        let mut shards: [Vec<Entry>; SHARDS] = Default::default();
        for ended in batch {
            let entry = self.directory.entry(&ended.head);
            shards[entry.ended_shard()].push(entry);
        }
        let new = shards.iter().enumerate().filter(|(_, new)| !new.is_empty());
        futures::future::try_join_all(new.map(|(shard, new)| self.directory.add_ended(shard, new))).await?;
        Ok(())
    }

    /// The head and the journal of an execution. None once it has expired.
    fn records(&self, ended: &Ended) -> Vec<NewRecord> {
        let (Ended { head, journal }, journals) = (ended, &self.directory.journals);
        let Ok(ttl) = journals.life(head) else { return Vec::new() };
        let sealer = Sealer::new(&journals.key, head.id);
        let head_record = NewRecord { key: head_key(head.id), value: sealer.head(head), ttl };
        let frames = (head.records > 0).then(|| journal.frames().to_vec());
        let chunk = frames.map(|frames| sealer.chunk(0, frames));
        let chunk = chunk.map(|value| NewRecord { key: chunk_key(head.id, 0), value, ttl });
        std::iter::once(head_record).chain(chunk).collect()
    }
}

#[cfg(test)]
mod tests {
    use gatewright_core::Principal;

    use super::*;
    use crate::{Executions, ExecutionsConfig, NewExecution};

    #[tokio::test]
    async fn executions_without_room_keep_their_heads_and_few_bytes_are_written_at_once() {
        let executions = Executions::in_memory(ExecutionsConfig::default());
        let head = async || {
            let owner = Principal::local();
            let lease = executions.create(&owner, NewExecution::default(), b"start").await.unwrap();
            executions.head(&lease.id().to_string(), Reader::Operator).await.unwrap()
        };
        let pending = Pending::default();
        let chunk = vec![7; 300_000];
        for _ in 0..60 {
            let mut journal = Journal::default();
            journal.push(&chunk, u64::MAX).unwrap();
            pending.push(head().await, journal);
        }
        let queue = pending.lock();
        let (bytes, count) = (queue.bytes, queue.ended.len());
        let complete = queue.ended.iter().filter(|ended| ended.head.complete).count();
        drop(queue);
        assert!(bytes <= MOST_BYTES + 60 * HEAD_BYTES, "{bytes}");
        assert_eq!((count, complete), (60, 55));
        assert_eq!(pending.first(BATCH).len(), 4);
        pending.remove_first(60);
        assert_eq!(pending.lock().bytes, 0);
    }
}

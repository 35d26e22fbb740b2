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
/// Executions that may wait to be written; more are not kept.
const MOST: usize = 4_096;
/// Bytes that may wait to be written.
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

    /// Adds an execution. One that finds no room is not kept.
    fn push(&self, mut head: Head, journal: Journal) {
        head.bytes = journal.bytes();
        head.records = u32::from(journal.bytes() > 0);
        let ended = Arc::new(Ended { head, journal });
        let mut queue = self.lock();
        if queue.ended.len() >= MOST || queue.bytes + ended.bytes() > MOST_BYTES {
            if !std::mem::replace(&mut queue.is_full, true) {
                tracing::warn!(
                    "executions end faster than the store takes them: some are missing from the list of executions"
                );
            }
            return;
        }
        queue.bytes += ended.bytes();
        queue.ended.push_back(ended);
        self.added.notify_one();
    }

    fn get(&self, id: ExecutionId) -> Option<Execution> {
        let found = self.lock().ended.iter().find(|ended| ended.head.id == id).cloned()?;
        Some(Execution { head: found.head.clone(), chunks: found.journal.chunks() })
    }

    fn first(&self, most: usize) -> Vec<Arc<Ended>> {
        self.lock().ended.iter().take(most).cloned().collect()
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

//! The holder of a shared execution.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Mutex, MutexGuard},
    task::AbortHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    directory::Directory,
    journals::{Journals, Read, Stored, chunk_key, lease_key},
    seal::Sealer,
};
use crate::{CallCounts, Ending, ExecutionError, ExecutionId, Head, WaitingFor, journal::Journal};

/// A lease of a shared execution.
pub(crate) struct SharedLease {
    directory: Arc<Directory>,
    id: ExecutionId,
    token: Vec<u8>,
    sealer: Sealer,
    writing: Mutex<Writing>,
    renewal: AbortHandle,
}

struct Writing {
    stored: Stored,
    /// Number of the next record.
    next: u32,
    bytes: u64,
    /// The execution waits or has ended.
    is_over: bool,
    /// A record that was being written when its caller gave up, and its size.
    doubtful: Option<(Vec<u8>, u64)>,
}

impl SharedLease {
    pub(super) fn new(
        directory: Arc<Directory>,
        stored: Stored,
        read: &Read,
        token: Vec<u8>,
        lost: CancellationToken,
    ) -> Self {
        let (id, expires_ms) = (stored.head.id, stored.head.expires_ms);
        let renewal = tokio::spawn(renew(directory.journals.clone(), id, token.clone(), expires_ms, lost))
            .abort_handle();
        let writing = Mutex::new(Writing {
            stored,
            next: read.next,
            bytes: read.bytes,
            is_over: false,
            doubtful: None,
        });
        let sealer = Sealer::new(&directory.journals.key, id);
        Self { directory, id, token, sealer, writing, renewal }
    }

    pub(crate) async fn append(&self, chunk: &[u8]) -> Result<(), ExecutionError> {
        let mut writing = self.settled().await?;
        let mut journal = Journal::default();
        let most = self.directory.journals.config.max_journal_bytes.saturating_sub(writing.bytes);
        journal.push(chunk, most)?;
        let record = self.sealer.chunk(writing.next, journal.frames().to_vec());
        writing.doubtful = Some((record, journal.bytes()));
        self.settle(&mut writing).await
    }

    /// Locks the journal, once it is known whether the last record was written.
    async fn settled(&self) -> Result<MutexGuard<'_, Writing>, ExecutionError> {
        let mut writing = self.writing.lock().await;
        if writing.is_over {
            return Err(ExecutionError::LeaseLost);
        }
        self.settle(&mut writing).await?;
        Ok(writing)
    }

    async fn settle(&self, writing: &mut Writing) -> Result<(), ExecutionError> {
        let Some((record, bytes)) = &writing.doubtful else { return Ok(()) };
        let life =
            self.directory.journals.life(&writing.stored.head).map_err(|_| ExecutionError::LeaseLost)?;
        if !self.directory.journals.write_new(&chunk_key(self.id, writing.next), record, life).await? {
            return Err(ExecutionError::LeaseLost);
        }
        writing.bytes += bytes;
        writing.next += 1;
        writing.doubtful = None;
        Ok(())
    }

    pub(crate) async fn wait(&self, waiting: &[WaitingFor], calls: CallCounts) -> Result<(), ExecutionError> {
        let mut writing = self.settled().await?;
        let now_ms = self.directory.journals.clock.now_ms();
        self.change(&mut writing, |head| head.wait(waiting, calls, now_ms)).await?;
        self.directory.journals.release(self.id, &self.token).await;
        if let Err(error) = self.directory.relist(&writing.stored.head).await {
            tracing::debug!(%error, "the size of an execution that waits was not counted");
        }
        Ok(())
    }

    pub(crate) async fn end(&self, ending: &Ending, calls: CallCounts) -> Result<(), ExecutionError> {
        let mut writing = self.settled().await?;
        let now_ms = self.directory.journals.clock.now_ms();
        self.change(&mut writing, |head| head.end(ending, Some(calls), now_ms)).await?;
        self.directory.journals.release(self.id, &self.token).await;
        self.directory.list_as_ended(&writing.stored.head).await;
        Ok(())
    }

    async fn change(
        &self,
        writing: &mut Writing,
        change: impl FnOnce(&mut Head),
    ) -> Result<(), ExecutionError> {
        let mut head = Head { records: writing.next, bytes: writing.bytes, ..writing.stored.head.clone() };
        change(&mut head);
        match self.directory.journals.swap(&mut writing.stored, head).await {
            Ok(true) => {
                writing.is_over = true;
                self.renewal.abort();
                Ok(())
            }
            Ok(false) | Err(ExecutionError::NotFound) => Err(ExecutionError::LeaseLost),
            Err(error) => Err(error),
        }
    }
}

impl Drop for SharedLease {
    /// As when a process dies: the lease runs out.
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

/// Renews a lease until it is lost, which `lost` then tells.
async fn renew(
    journals: Arc<Journals>,
    id: ExecutionId,
    token: Vec<u8>,
    expires_ms: u64,
    lost: CancellationToken,
) {
    let (key, lease) = (lease_key(id), journals.config.lease);
    let mut renewed = Instant::now();
    loop {
        tokio::time::sleep(lease / 3).await;
        let started = Instant::now();
        match journals.records.replace(&key, Some(&token), &token, lease).await {
            Ok(true) if journals.clock.now_ms() < expires_ms => renewed = started,
            Ok(_) => break,
            // Others may take over once the lease has run out: stop before.
            Err(_) if renewed.elapsed() + lease / 3 + Duration::from_secs(1) > lease => break,
            Err(_) => {}
        }
    }
    lost.cancel();
}

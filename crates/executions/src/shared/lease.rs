//! The holder of a shared execution.

use std::{sync::Arc, time::Duration};

use gatewright_core::RecordsError;
use tokio::{
    sync::{Mutex, MutexGuard},
    task::AbortHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    directory::Directory,
    journals::{Journals, Read, Stored, chunk_key, head_key, lease_key},
    seal::Sealer,
};
use crate::{CallCounts, Ending, ExecutionError, ExecutionId, Head, WaitingFor, journal::Journal};

/// Pause before a step of a run that has begun is tried again while the store does not answer.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest time that a run waits for its store.
const PATIENCE: Duration = Duration::from_secs(600);

/// Steps in which the room of an execution grows, in bytes.
const STEP: u64 = 256 * 1024;
/// Bytes that a run may add before its room grows for the first time: most need no more.
const SLACK: u64 = 16 * 1024;

/// A lease of a shared execution. While the store does not answer, its steps wait: the numbers of records keep two holders from writing, however
/// long that takes.
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
    /// Bytes that it is listed with.
    listed: u64,
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
        let head = stored.record.clone();
        let renewal = renew(directory.journals.clone(), id, token.clone(), (head, expires_ms), lost);
        let renewal = tokio::spawn(renewal).abort_handle();
        let writing = Mutex::new(Writing {
            stored,
            next: read.next,
            bytes: read.bytes,
            listed: read.bytes + SLACK,
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
        self.make_room(&mut writing, journal.bytes()).await?;
        let record = self.sealer.chunk(writing.next, journal.frames().to_vec());
        writing.doubtful = Some((record, journal.bytes()));
        self.settle(&mut writing).await
    }

    pub(crate) async fn confirm(&self, lost: &CancellationToken) -> Result<(), ExecutionError> {
        let (key, life) = (lease_key(self.id), self.directory.journals.config.lease);
        while !lost.is_cancelled() {
            // One that ran out is taken again, or lost, when its renewal has an answer.
            let held = self.directory.journals.records.replace(&key, Some(&self.token), &self.token, life);
            if let Ok(true) = held.await {
                return Ok(());
            }
            lost.run_until_cancelled(tokio::time::sleep(PAUSE)).await;
        }
        Err(ExecutionError::LeaseLost)
    }

    /// Has the execution listed with room for `more` bytes.
    async fn make_room(&self, writing: &mut Writing, more: u64) -> Result<(), ExecutionError> {
        if writing.bytes + more <= writing.listed {
            return Ok(());
        }
        let exactly = writing.bytes + more;
        let step = exactly.next_multiple_of(STEP).min(self.directory.journals.config.max_journal_bytes);
        let reserve = |bytes| {
            let head = Head { bytes, ..writing.stored.head.clone() };
            async move { self.directory.reserve(&head, true).await.map(|()| bytes) }
        };
        let reserved = match reserve(step).await {
            Err(ExecutionError::TooMany | ExecutionError::Full) => reserve(exactly).await,
            reserved => reserved,
        };
        match reserved {
            Ok(bytes) => writing.listed = bytes,
            // The next chunk that is written is counted with it.
            Err(ExecutionError::Unavailable) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Writes a record, and waits while the store does not answer. Returns `false` if another one is in its place.
    async fn write(
        &self,
        key: &str,
        before: Option<&[u8]>,
        after: &[u8],
        life: Duration,
    ) -> Result<bool, ExecutionError> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.directory.journals.write(key, before, after, life).await {
                Err(ExecutionError::Unavailable) if Instant::now() < until => tokio::time::sleep(PAUSE).await,
                written => return written,
            }
        }
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
        if !self.write(&chunk_key(self.id, writing.next), None, record, life).await? {
            return Err(ExecutionError::LeaseLost);
        }
        writing.bytes += bytes;
        writing.next += 1;
        writing.doubtful = None;
        Ok(())
    }

    pub(crate) async fn read(&self) -> Result<Vec<Vec<u8>>, ExecutionError> {
        let (writing, until) = (self.settled().await?, Instant::now() + PATIENCE);
        loop {
            let mut read = Read::default();
            match self.directory.journals.read_journal(&writing.stored.head, &mut read).await {
                Ok(()) => return Ok(read.chunks),
                Err(ExecutionError::Unavailable) if Instant::now() < until => tokio::time::sleep(PAUSE).await,
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) async fn give_back(&self) -> Result<(), ExecutionError> {
        let mut writing = self.settled().await?;
        writing.is_over = true;
        self.renewal.abort();
        self.directory.journals.release(self.id, &self.token).await;
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
        let life = self.directory.journals.life(&head).map_err(|_| ExecutionError::LeaseLost)?;
        let record = self.sealer.head(&head);
        if !self.write(&head_key(self.id), Some(&writing.stored.record), &record, life).await? {
            return Err(ExecutionError::LeaseLost);
        }
        writing.stored = Stored { head, record };
        writing.is_over = true;
        self.renewal.abort();
        Ok(())
    }
}

impl Drop for SharedLease {
    /// As when a process dies: the lease runs out.
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

/// Renews a lease until it is lost, which `lost` then tells. One that ran out while the store did not answer is taken again if nobody had it meanwhile: the
/// `head` of the execution is what it was.
async fn renew(
    journals: Arc<Journals>,
    id: ExecutionId,
    token: Vec<u8>,
    (head, expires_ms): (Vec<u8>, u64),
    lost: CancellationToken,
) {
    let (key, lease) = (lease_key(id), journals.config.lease);
    let mut renewed = Instant::now();
    loop {
        tokio::time::sleep(lease / 3).await;
        let started = Instant::now();
        let held = async {
            if journals.records.replace(&key, Some(&token), &token, lease).await? {
                return Ok(true);
            }
            if !journals.records.replace(&key, None, &token, lease).await? {
                return Ok(false);
            }
            let now = journals.records.get_many(&[head_key(id)]).await?.pop().flatten();
            Ok::<bool, RecordsError>(now.as_ref() == Some(&head))
        };
        match held.await {
            Ok(true) if journals.clock.now_ms() < expires_ms => renewed = started,
            Ok(_) => break,
            Err(_) if renewed.elapsed() > PATIENCE => break,
            Err(_) => {}
        }
    }
    lost.cancel();
}

//! The journal of a run in an execution.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gatewright_agentscript::{HostFuture, Journal, JournalEntry, JournalError};
use gatewright_executions::{CallCounts, Draft, Ending, ExecutionError, ExecutionId, Lease, WaitingFor};

use super::record::{Chunk, Past, RunStart};

/// The place of the journal of a run.
#[derive(Debug)]
pub(crate) enum Stored {
    /// In memory, until the run waits or ends. A journal that becomes too long is dropped, and the run goes on without.
    Draft(Box<Draft>),
    /// In the store, before anything else happens.
    Lease(Arc<Lease>),
    /// Nowhere any more.
    Over,
}

/// Writes the journal of a run.
#[derive(Debug)]
pub(crate) struct RunJournal {
    id: ExecutionId,
    stored: Mutex<Stored>,
    /// Bytes of a draft, which is in this process's memory, and the most that it may have.
    bytes: AtomicU64,
    most_bytes: u64,
    /// It is part of the journal of the run around it, and kept nowhere else.
    is_within: bool,
    /// Answers that are written with the first step of the run: until then they can be given again.
    answers: Mutex<Option<Chunk>>,
}

/// Part of the memory of a run in the host that a journal in memory may take.
const SHARE: u64 = 8;
/// Pause before a run that has to wait tries again to keep its journal, and how often it does.
const PAUSE: Duration = Duration::from_secs(1);
const TRIES: usize = 60;

impl RunJournal {
    /// Begins the journal of a run that may have `host_bytes` of memory in the host.
    pub(crate) fn begin(mut draft: Draft, start: &RunStart, host_bytes: u64) -> Self {
        let mut bytes = 0;
        if draft.is_complete() {
            let chunk = start.to_bytes();
            let _ = draft.append(&chunk);
            bytes = chunk.len() as u64;
        }
        let bytes = AtomicU64::new(bytes);
        Self {
            id: draft.id(),
            stored: Mutex::new(Stored::Draft(Box::new(draft))),
            bytes,
            most_bytes: host_bytes / SHARE,
            is_within: false,
            answers: Mutex::default(),
        }
    }

    /// No journal.
    pub(crate) fn none(id: ExecutionId) -> Self {
        let (bytes, answers) = (AtomicU64::new(0), Mutex::default());
        Self { id, stored: Mutex::new(Stored::Over), bytes, most_bytes: 0, is_within: false, answers }
    }

    /// Makes it part of the journal of the run around it.
    #[must_use]
    pub(crate) fn within(self) -> Self {
        Self { is_within: true, ..self }
    }

    /// Goes on with the journal of a run within another, of these chunks.
    pub(crate) fn resume_within(mut draft: Draft, chunks: &[Vec<u8>], host_bytes: u64) -> Self {
        for chunk in chunks {
            // Dropped if it is too long; then the run cannot wait again.
            let _ = draft.append(chunk);
        }
        let bytes = AtomicU64::new(chunks.iter().map(|chunk| chunk.len() as u64).sum());
        Self {
            id: draft.id(),
            stored: Mutex::new(Stored::Draft(Box::new(draft))),
            bytes,
            most_bytes: host_bytes / SHARE,
            is_within: true,
            answers: Mutex::default(),
        }
    }

    /// Its chunks, if it is part of the journal of the run around it.
    ///
    /// # Errors
    /// It became too long.
    pub(crate) fn chunks_within(&self) -> Result<Option<Vec<Vec<u8>>>, ExecutionError> {
        match &*self.stored.lock().unwrap_or_else(PoisonError::into_inner) {
            Stored::Draft(draft) if self.is_within => {
                draft.chunks().map(Some).ok_or(ExecutionError::TooLarge)
            }
            _ => Ok(None),
        }
    }

    /// Goes on with the journal of a run.
    pub(crate) fn resume(lease: Lease) -> Self {
        let id = lease.id();
        let stored = Mutex::new(Stored::Lease(Arc::new(lease)));
        let (bytes, answers) = (AtomicU64::new(0), Mutex::default());
        Self { id, stored, bytes, most_bytes: 0, is_within: false, answers }
    }

    /// The execution.
    pub(crate) fn id(&self) -> ExecutionId {
        self.id
    }

    /// Bytes of this process's memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns `true` if it can take `bytes` more. One in memory that cannot is dropped, and the run goes on without.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        match &mut *self.stored.lock().unwrap_or_else(PoisonError::into_inner) {
            Stored::Draft(draft) => {
                if self.bytes().saturating_add(bytes) > self.most_bytes {
                    draft.drop_journal();
                    self.bytes.store(0, Ordering::Relaxed);
                }
                draft.is_complete()
            }
            Stored::Lease(_) => true,
            Stored::Over => false,
        }
    }

    /// Has `answers` written with the first step of the run.
    pub(crate) fn answer(&self, answers: Chunk) {
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner) = Some(answers);
    }

    /// Writes answers that are not written yet.
    ///
    /// # Errors
    /// As [`RunJournal::add`].
    pub(crate) async fn settle(&self) -> Result<(), ExecutionError> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner).take();
        match answers {
            Some(answers) => self.add(&answers).await,
            None => Ok(()),
        }
    }

    fn take(&self) -> Stored {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut stored, Stored::Over)
    }

    fn put(&self, now: Stored) {
        *self.stored.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Adds a chunk.
    ///
    /// # Errors
    /// The journal is durable and cannot be written: the run must end.
    pub(crate) async fn add(&self, chunk: &Chunk) -> Result<(), ExecutionError> {
        if !self.has_room(0) {
            return match &*self.stored.lock().unwrap_or_else(PoisonError::into_inner) {
                Stored::Over => Err(ExecutionError::LeaseLost),
                Stored::Draft(_) | Stored::Lease(_) => Ok(()),
            };
        }
        let bytes = chunk.to_bytes();
        let is_kept = self.has_room(bytes.len() as u64);
        let lease = match &mut *self.stored.lock().unwrap_or_else(PoisonError::into_inner) {
            Stored::Draft(draft) => {
                if is_kept && draft.append(&bytes).is_ok() {
                    self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                } else {
                    self.bytes.store(0, Ordering::Relaxed);
                }
                return Ok(());
            }
            Stored::Lease(lease) => lease.clone(),
            Stored::Over => return Err(ExecutionError::LeaseLost),
        };
        lease.append(&bytes).await
    }

    /// Returns once it is certain that no other instance has the run. While the store does not answer, it waits.
    ///
    /// # Errors
    /// Another one may have it, or it was cancelled.
    pub(crate) async fn confirm(&self) -> Result<(), ExecutionError> {
        let lease = match &*self.stored.lock().unwrap_or_else(PoisonError::into_inner) {
            Stored::Draft(_) => return Ok(()),
            Stored::Lease(lease) => lease.clone(),
            Stored::Over => return Err(ExecutionError::LeaseLost),
        };
        lease.confirm().await
    }

    /// Makes the journal durable, if it is not yet.
    ///
    /// # Errors
    /// There is no room for it, or the store does not answer.
    pub(crate) async fn persist(&self) -> Result<(), ExecutionError> {
        match self.take() {
            Stored::Draft(mut draft) => match draft.persist().await {
                Ok(lease) => {
                    self.put(Stored::Lease(Arc::new(lease)));
                    Ok(())
                }
                Err(error) => {
                    self.put(Stored::Draft(draft));
                    Err(error)
                }
            },
            Stored::Lease(lease) => {
                self.put(Stored::Lease(lease));
                Ok(())
            }
            Stored::Over => Err(ExecutionError::LeaseLost),
        }
    }

    /// Leaves the execution to whoever has the answers.
    ///
    /// # Errors
    /// As for [`RunJournal::persist`], or the lease is lost.
    pub(crate) async fn wait(&self, waiting: &[WaitingFor], calls: CallCounts) -> Result<(), ExecutionError> {
        let mut tries = 0;
        while let Err(error) = self.persist().await {
            tries += 1;
            // The run has begun, and its store may be back in a moment.
            if error != ExecutionError::Unavailable || tries == TRIES {
                return Err(error);
            }
            tokio::time::sleep(PAUSE).await;
        }
        match self.take() {
            Stored::Lease(lease) => lease.wait(waiting, calls).await,
            _ => Err(ExecutionError::LeaseLost),
        }
    }

    /// Leaves a run that is not over to another instance, or to this one when it is back.
    pub(crate) async fn give_back(&self) {
        if let Stored::Lease(lease) = self.take()
            && let Err(error) = lease.give_back().await
        {
            tracing::debug!(execution.id = %self.id, error.code = error.code(), "a lease was not given back: it runs out");
        }
    }

    /// Ends the execution.
    pub(crate) async fn end(&self, ending: &Ending, calls: CallCounts) {
        match self.take() {
            Stored::Draft(_) if self.is_within => {}
            Stored::Draft(draft) => draft.end(ending, calls),
            Stored::Lease(lease) => {
                if let Err(error) = lease.end(ending, calls).await {
                    tracing::warn!(execution.id = %self.id, error.code = error.code(), "the end of an execution could not be written");
                }
            }
            Stored::Over => {}
        }
    }

    /// Cancelled when another instance has the execution, or it was cancelled.
    pub(crate) fn lost(&self) -> Option<tokio_util::sync::CancellationToken> {
        match &*self.stored.lock().unwrap_or_else(PoisonError::into_inner) {
            Stored::Lease(lease) => Some(lease.lost()),
            _ => None,
        }
    }

    /// Returns `true` if another instance may have the execution, or it was cancelled.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost().is_some_and(|lost| lost.is_cancelled())
    }
}

impl RunJournal {
    /// Returns `true` if the run is in the store.
    pub(crate) fn is_stored(&self) -> bool {
        matches!(&*self.stored.lock().unwrap_or_else(PoisonError::into_inner), Stored::Lease(_))
    }
}

impl Journal for RunJournal {
    fn write(&self, entries: Vec<JournalEntry>) -> HostFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            self.settle().await.map_err(failed)?;
            self.add(&Chunk::Steps(entries)).await.map_err(failed)
        })
    }

    fn can_be_read(&self) -> bool {
        self.is_stored()
    }

    fn read(&self) -> HostFuture<'_, Result<Vec<JournalEntry>, JournalError>> {
        Box::pin(async move {
            let lease = match &*self.stored.lock().unwrap_or_else(PoisonError::into_inner) {
                Stored::Lease(lease) => Some(lease.clone()),
                Stored::Draft(_) | Stored::Over => None,
            };
            let chunks = match lease {
                Some(lease) => lease.read().await.map_err(failed)?,
                None => return Err(failed(ExecutionError::LeaseLost)),
            };
            let past = Past::open(chunks).await.ok_or_else(|| failed(ExecutionError::Unreadable))?;
            Ok(past.1.entries)
        })
    }
}

fn failed(error: ExecutionError) -> JournalError {
    JournalError { code: error.code().to_owned(), message: error.to_string() }
}

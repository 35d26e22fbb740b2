//! The journal of a run in an execution.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use gatewright_agentscript::{HostFuture, Journal, JournalEntry, JournalError};
use gatewright_executions::{CallCounts, Draft, Ending, ExecutionError, ExecutionId, Lease, WaitingFor};

use super::record::{Chunk, RunStart};

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
}

/// Part of the memory of a run in the host that a journal in memory may take.
const SHARE: u64 = 8;

impl RunJournal {
    /// Begins the journal of a run that may have `host_bytes` of memory in the host.
    pub(crate) fn begin(mut draft: Draft, start: &RunStart, host_bytes: u64) -> Self {
        let chunk = Chunk::Start(Box::new(start.clone())).to_bytes();
        let _ = draft.append(&chunk);
        let bytes = AtomicU64::new(chunk.len() as u64);
        Self {
            id: draft.id(),
            stored: Mutex::new(Stored::Draft(Box::new(draft))),
            bytes,
            most_bytes: host_bytes / SHARE,
        }
    }

    /// Goes on with the journal of a run.
    pub(crate) fn resume(lease: Lease) -> Self {
        let id = lease.id();
        let stored = Mutex::new(Stored::Lease(Arc::new(lease)));
        Self { id, stored, bytes: AtomicU64::new(0), most_bytes: 0 }
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
        self.persist().await?;
        match self.take() {
            Stored::Lease(lease) => lease.wait(waiting, calls).await,
            _ => Err(ExecutionError::LeaseLost),
        }
    }

    /// Ends the execution.
    pub(crate) async fn end(&self, ending: &Ending, calls: CallCounts) {
        match self.take() {
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

impl Journal for RunJournal {
    fn write(&self, entries: Vec<JournalEntry>) -> HostFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            let failed = |error: ExecutionError| JournalError {
                code: error.code().to_owned(),
                message: error.to_string(),
            };
            self.add(&Chunk::Steps(entries)).await.map_err(failed)
        })
    }
}

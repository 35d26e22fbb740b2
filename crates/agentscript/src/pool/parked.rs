//! Runs without a worker whose calls are under way: their answers go to the journal, and with the first one the run needs a worker again.
//!
//! A tool may take an hour, and its script can do nothing but wait. Such a run gives its worker back; the calls go on at the host, in the same
//! futures. Another worker then goes through the journal again, and takes over the calls that have no answer yet.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Lease, RunRequest, WorkerPool,
    answers::{Answer, Calls, answer_entry, host_failed},
};
use crate::{
    host::{HostFuture, ToolAnswer},
    journal::{Journal, JournalEntry, JournalError, Replay},
    outcome::{RunError, WorkerError},
};

/// A run between two workers.
pub(super) struct Parked<'p, 'r> {
    pub(super) pool: &'p WorkerPool,
    pub(super) request: &'r RunRequest,
    pub(super) calls: &'r mut Calls,
    pub(super) cancel: &'r CancellationToken,
    /// Time since the run began, when it gave its worker back at `since`.
    pub(super) elapsed: Duration,
    pub(super) since: Instant,
}

impl<'p> Parked<'p, '_> {
    /// Waits until an answer takes the run on, and for a worker. Returns the worker, and the journal to go through.
    ///
    /// # Errors
    /// The run was ended or halted meanwhile, what is open waits for something outside of the run, or the journal fails.
    pub(super) async fn resume(mut self) -> Result<(Lease<'p>, Arc<Replay>), RunError> {
        let Some(journal) = self.request.journal.clone() else { return Err(RunError::Suspended) };
        self.wait(&*journal).await?;
        let (pool, request) = (self.pool, self.request);
        let lease = pool.lease(request);
        tokio::pin!(lease);
        let lease = loop {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(WorkerError::Aborted.into()),
                () = pool.disposed.cancelled() => return Err(WorkerError::Disposed.into()),
                () = request.halt.cancelled() => return Err(self.halt(&*journal).await),
                lease = &mut lease => break lease?,
                Some(answer) = self.calls.answering.next(), if !self.calls.answering.is_empty() => {
                    self.take(answer, &*journal).await?;
                }
            }
        };
        let entries = unless_cancelled(self.cancel, journal.read()).await?;
        Ok((lease, Replay { entries, elapsed: self.elapsed + self.since.elapsed() }.into()))
    }

    /// Waits for the first answer, or for the end of the time that the run has.
    async fn wait(&mut self, journal: &dyn Journal) -> Result<(), RunError> {
        let until = self.calls.waits_until;
        let time_is_up = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(time_is_up);
        loop {
            let answer = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(WorkerError::Aborted.into()),
                () = self.pool.disposed.cancelled() => return Err(WorkerError::Disposed.into()),
                () = self.request.halt.cancelled() => return Err(self.halt(journal).await),
                () = &mut time_is_up => return Ok(()),
                answer = self.calls.answering.next() => answer,
            };
            let takes_on = match answer {
                Some(answer) => self.take(answer, journal).await?,
                None => false,
            };
            if takes_on {
                return Ok(());
            }
            if self.calls.open.is_empty() {
                // All that is open waits for something outside.
                return Err(RunError::Suspended);
            }
        }
    }

    /// Takes the answers that are on their way, and no worker.
    async fn halt(&mut self, journal: &dyn Journal) -> RunError {
        loop {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return WorkerError::Aborted.into(),
                () = self.pool.disposed.cancelled() => return WorkerError::Disposed.into(),
                answer = self.calls.answering.next() => match answer {
                    Some(answer) => if let Err(error) = self.take(answer, journal).await {
                        return error;
                    },
                    None => return RunError::Suspended,
                },
            }
        }
    }

    /// Writes an answer to the journal. Returns `true` if it takes the script on.
    async fn take(&mut self, answer: Answer, journal: &dyn Journal) -> Result<bool, RunError> {
        let at = self.elapsed + self.since.elapsed();
        let (id, entry) = match answer {
            Answer::Taken => return Ok(false),
            Answer::To { id, is_call, answer } => match answer {
                None => return Err(host_failed(is_call)),
                Some(Ok(ToolAnswer::Waits(state))) => (id, JournalEntry::Waits { id, state }),
                Some(answer) => {
                    (id, answer_entry(id, u64::try_from(at.as_millis()).unwrap_or(u64::MAX), answer))
                }
            },
        };
        let is_answer = matches!(entry, JournalEntry::Answer { .. });
        unless_cancelled(self.cancel, journal.write(vec![entry])).await?;
        self.calls.open.remove(&id);
        Ok(is_answer)
    }
}

/// A step of the journal, whose store may be silent for a while.
async fn unless_cancelled<T>(
    cancel: &CancellationToken,
    step: HostFuture<'_, Result<T, JournalError>>,
) -> Result<T, RunError> {
    tokio::select! {
        biased;
        done = step => done.map_err(RunError::from),
        () = cancel.cancelled() => Err(WorkerError::Aborted.into()),
    }
}

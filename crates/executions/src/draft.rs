//! Executions that are not kept yet.

use std::fmt;

use crate::{CallCounts, Ending, ExecutionError, ExecutionId, Executions, Head, Lease, journal::Journal};

/// An execution whose journal is in memory, and kept nowhere until it waits or ends. Dropping it forgets it.
pub struct Draft {
    executions: Executions,
    head: Head,
    journal: Journal,
    persisted: bool,
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft").field("head", &self.head).finish_non_exhaustive()
    }
}

impl Draft {
    pub(crate) fn new(executions: Executions, head: Head) -> Self {
        Self { executions, head, journal: Journal::default(), persisted: false }
    }

    /// Its id, which stays the same when it becomes durable.
    pub fn id(&self) -> ExecutionId {
        self.head.id
    }

    /// Adds `chunk` to the journal.
    ///
    /// # Errors
    /// [`ExecutionError::TooLarge`] if the journal would be larger than `maxJournalBytes`. Its chunks are dropped then: it cannot become durable any
    /// more, and only its head is kept when it ends.
    pub fn append(&mut self, chunk: &[u8]) -> Result<(), ExecutionError> {
        if !self.head.complete {
            return Err(ExecutionError::TooLarge);
        }
        let added = self.journal.push(chunk, self.executions.config().max_journal_bytes);
        if added.is_err() {
            self.drop_journal();
        }
        added
    }

    /// Returns `false` if its journal is kept no more.
    pub fn is_complete(&self) -> bool {
        self.head.complete
    }

    /// The chunks of its journal; none if that is kept no more.
    pub fn chunks(&self) -> Option<Vec<Vec<u8>>> {
        self.head.complete.then(|| self.journal.chunks())
    }

    /// Drops the journal, as if it were too large.
    pub fn drop_journal(&mut self) {
        self.journal = Journal::default();
        self.head.complete = false;
    }

    /// Makes it durable. From then on the lease has the journal, and the draft is empty: ending it has no effect.
    ///
    /// # Errors
    /// There is no room, its journal is too large, or the store does not answer. The draft stays as it was.
    pub async fn persist(&mut self) -> Result<Lease, ExecutionError> {
        if !self.head.complete {
            return Err(ExecutionError::TooLarge);
        }
        if self.persisted {
            return Err(ExecutionError::Busy);
        }
        let lease = self.executions.begin(&self.head, &mut self.journal).await?;
        self.persisted = true;
        Ok(lease)
    }

    /// Ends it. It is kept for a while, for those who want to look at it.
    pub fn end(mut self, ending: &Ending, calls: CallCounts) {
        if self.persisted {
            return;
        }
        self.head.end(ending, Some(calls), self.executions.now_ms());
        self.executions.keep(self.head, self.journal);
    }
}

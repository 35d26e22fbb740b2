//! The right to write the journal of an execution.

use std::fmt;

use tokio_util::sync::CancellationToken;

use crate::{
    CallCounts, Ending, ExecutionError, ExecutionId, WaitingFor, memory::MemoryLease, shared::SharedLease,
};

/// The right to go on with an execution: no other instance can write its journal meanwhile. It is renewed in the background. If it is dropped before the
/// execution waits or ends, as when a process dies, it runs out, and another instance may go on.
pub struct Lease {
    id: ExecutionId,
    lost: CancellationToken,
    holder: Holder,
}

pub(crate) enum Holder {
    Memory(MemoryLease),
    Shared(Box<SharedLease>),
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Lease {
    pub(crate) fn new(id: ExecutionId, lost: CancellationToken, holder: Holder) -> Self {
        Self { id, lost, holder }
    }

    /// The execution.
    pub fn id(&self) -> ExecutionId {
        self.id
    }

    /// Cancelled as soon as it is known that the lease is lost: to another instance, because the execution was cancelled, or because the store
    /// has not answered for ten minutes. The run must stop then, and is not over: whoever has the lease goes on with it.
    pub fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }

    /// Adds `chunk` to the journal. Once this returns, the chunk is durable. While the store does not answer, it waits. Concurrent calls are written one after the other. If the call is dropped
    /// before, the chunk may or may not be in the journal.
    ///
    /// # Errors
    /// [`ExecutionError::TooLarge`], [`ExecutionError::Full`] and [`ExecutionError::TooMany`] for want of room, and the lease stays. With any other error the lease
    /// is lost, and the chunk may or may not be in the journal.
    pub async fn append(&self, chunk: &[u8]) -> Result<(), ExecutionError> {
        let added = match &self.holder {
            Holder::Memory(lease) => lease.append(chunk),
            Holder::Shared(lease) => lease.append(chunk).await,
        };
        if let Err(ExecutionError::LeaseLost | ExecutionError::Unavailable) = added {
            self.lost.cancel();
        }
        added
    }

    /// Returns once the store says that the lease holds, of which [`Lease::append`] makes sure as well. While the store does not answer, it waits.
    ///
    /// # Errors
    /// The lease is lost.
    pub async fn confirm(&self) -> Result<(), ExecutionError> {
        match &self.holder {
            Holder::Memory(lease) => lease.confirm(),
            Holder::Shared(lease) => lease.confirm(&self.lost).await,
        }
    }

    /// Reads the chunks of the journal so far. While the store does not answer, it waits.
    ///
    /// # Errors
    /// The lease is lost, or the journal is damaged.
    pub async fn read(&self) -> Result<Vec<Vec<u8>>, ExecutionError> {
        match &self.holder {
            Holder::Memory(lease) => lease.read(),
            Holder::Shared(lease) => lease.read().await,
        }
    }

    /// Releases the lease: the execution waits, and whoever has the answer acquires it. The lease is over then, for all who share it.
    ///
    /// # Errors
    /// The lease is lost, or the store does not answer.
    pub async fn wait(&self, waiting: &[WaitingFor], calls: CallCounts) -> Result<(), ExecutionError> {
        match &self.holder {
            Holder::Memory(lease) => lease.wait(waiting, calls),
            Holder::Shared(lease) => lease.wait(waiting, calls).await,
        }
    }

    /// Gives the lease back before the execution waits or ends: another instance may go on at once. The lease is over then, for all who share it.
    ///
    /// # Errors
    /// The lease is lost, or the store does not answer.
    pub async fn give_back(&self) -> Result<(), ExecutionError> {
        match &self.holder {
            Holder::Memory(lease) => lease.give_back(),
            Holder::Shared(lease) => lease.give_back().await,
        }
    }

    /// Ends the execution, and the lease with it.
    ///
    /// # Errors
    /// The lease is lost, or the store does not answer.
    pub async fn end(&self, ending: &Ending, calls: CallCounts) -> Result<(), ExecutionError> {
        match &self.holder {
            Holder::Memory(lease) => lease.end(ending, calls),
            Holder::Shared(lease) => lease.end(ending, calls).await,
        }
    }
}

//! The executions of a gateway.

use std::{fmt, sync::Arc, time::SystemTime};

use gatewright_core::Principal;
use tokio_util::sync::CancellationToken;

use crate::{
    Draft, Ending, ExecutionError, ExecutionId, ExecutionsConfig, Head, Lease, NewExecution, State,
    clock::Clock, journal::Journal, lease::Holder, memory::Memory,
};

/// Reader of an execution.
#[derive(Debug, Clone, Copy)]
pub enum Reader<'a> {
    /// A principal, who sees executions of the same subject and client.
    Owner(&'a Principal),
    /// An operator, who sees all.
    Operator,
}

impl Reader<'_> {
    pub(crate) fn may_see(self, head: &Head) -> bool {
        match self {
            Self::Owner(principal) => head.is_of(principal),
            Self::Operator => true,
        }
    }
}

/// An execution with its journal.
#[derive(Clone)]
pub struct Execution {
    /// Its description.
    pub head: Head,
    /// The chunks of its journal. None if it was too large to be kept; see [`Head::complete`].
    pub chunks: Vec<Vec<u8>>,
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").field("head", &self.head).finish_non_exhaustive()
    }
}

/// An execution in a list.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its description.
    pub head: Head,
    /// Returns `true` if an instance has its lease. A running one without is waiting to be taken over, or for its client.
    pub held: bool,
}

/// The executions of a gateway. Clones are the same executions.
#[derive(Clone)]
pub struct Executions(Arc<Parts>);

struct Parts {
    config: ExecutionsConfig,
    clock: Clock,
    store: Store,
}

enum Store {
    Memory(Arc<Memory>),
}

impl fmt::Debug for Executions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executions").field("config", &self.0.config).finish_non_exhaustive()
    }
}

impl Executions {
    /// Executions in the memory of this process.
    pub fn in_memory(config: ExecutionsConfig) -> Self {
        Self::in_memory_at(config, SystemTime::now)
    }

    /// Executions in the memory of this process, with another clock.
    pub fn in_memory_at(
        config: ExecutionsConfig,
        now: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> Self {
        let clock = Clock::of(now);
        let store = Store::Memory(Memory::new(config.clone(), clock.clone()));
        Self(Arc::new(Parts { config, clock, store }))
    }

    /// The configuration.
    pub fn config(&self) -> &ExecutionsConfig {
        &self.0.config
    }

    /// Begins an execution of `owner` that is kept nowhere yet.
    pub fn draft(&self, owner: &Principal, about: NewExecution) -> Draft {
        let (now_ms, life_ms) = (self.0.clock.now_ms(), self.0.config.retention_ms());
        Draft::new(self.clone(), Head::new(ExecutionId::random(), owner, about, now_ms, life_ms))
    }

    /// Begins an execution of `owner` that is durable at once, with the first chunk of its journal.
    ///
    /// # Errors
    /// There is no room for it, or the store does not answer.
    pub async fn create(
        &self,
        owner: &Principal,
        about: NewExecution,
        first_chunk: &[u8],
    ) -> Result<Lease, ExecutionError> {
        let mut draft = self.draft(owner, about);
        draft.append(first_chunk)?;
        draft.persist().await
    }

    /// The execution `id`.
    ///
    /// # Errors
    /// [`ExecutionError::NotFound`] for whatever `reader` may not see, or the store does not answer.
    pub async fn open(&self, id: &str, reader: Reader<'_>) -> Result<Execution, ExecutionError> {
        let id: ExecutionId = id.parse()?;
        match &self.0.store {
            Store::Memory(memory) => memory.open(id, reader),
        }
    }

    /// Takes the lease of the execution `id`, which waits, or whose instance is gone, to go on with it.
    ///
    /// # Errors
    /// [`ExecutionError::Busy`] while an instance runs it, [`ExecutionError::Ended`], [`ExecutionError::NotFound`] for whatever `reader` may not see, or
    /// the store does not answer.
    pub async fn acquire(&self, id: &str, reader: Reader<'_>) -> Result<(Lease, Execution), ExecutionError> {
        let id: ExecutionId = id.parse()?;
        let lost = CancellationToken::new();
        match &self.0.store {
            Store::Memory(memory) => {
                let (lease, execution) = memory.acquire(id, reader, lost.clone())?;
                Ok((Lease::new(id, lost, Holder::Memory(lease)), execution))
            }
        }
    }

    /// At most `most` executions that `reader` may see: those that have not ended first, then newest first.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn list(
        &self,
        reader: Reader<'_>,
        state: Option<State>,
        most: usize,
    ) -> Result<Vec<Listed>, ExecutionError> {
        match &self.0.store {
            Store::Memory(memory) => Ok(memory.list(reader, state, most)),
        }
    }

    /// Detached executions that no instance runs although they do not wait: their instance is gone. One call looks at a bounded number; the next
    /// one goes on behind them.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn abandoned(&self) -> Result<Vec<ExecutionId>, ExecutionError> {
        match &self.0.store {
            Store::Memory(memory) => Ok(memory.abandoned()),
        }
    }

    /// Ends the execution `id`, whatever instance runs it: that one loses its lease.
    ///
    /// # Errors
    /// [`ExecutionError::Ended`], [`ExecutionError::NotFound`] for whatever `reader` may not see, or the store does not answer.
    pub async fn cancel(&self, id: &str, reader: Reader<'_>, ending: &Ending) -> Result<(), ExecutionError> {
        let id: ExecutionId = id.parse()?;
        match &self.0.store {
            Store::Memory(memory) => memory.cancel(id, reader, ending),
        }
    }

    /// Forgets the execution `id`. An instance that runs it loses its lease.
    ///
    /// # Errors
    /// [`ExecutionError::NotFound`] for whatever `reader` may not see, or the store does not answer.
    pub async fn remove(&self, id: &str, reader: Reader<'_>) -> Result<(), ExecutionError> {
        let id: ExecutionId = id.parse()?;
        match &self.0.store {
            Store::Memory(memory) => memory.remove(id, reader),
        }
    }

    /// Ends background work, once what is to be kept has been written.
    pub async fn close(&self) {
        match &self.0.store {
            Store::Memory(_) => {}
        }
    }

    /// Makes a draft durable. Gives the journal back if it cannot be.
    pub(crate) async fn begin(
        &self,
        head: &Head,
        journal: Journal,
    ) -> Result<Lease, (ExecutionError, Journal)> {
        let lost = CancellationToken::new();
        match &self.0.store {
            Store::Memory(memory) => {
                let lease = memory.begin(head.clone(), journal, lost.clone())?;
                Ok(Lease::new(head.id, lost, Holder::Memory(lease)))
            }
        }
    }

    /// Keeps an execution that has ended.
    pub(crate) fn keep(&self, head: Head, journal: Journal) {
        match &self.0.store {
            Store::Memory(memory) => memory.keep(head, journal),
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.0.clock.now_ms()
    }
}

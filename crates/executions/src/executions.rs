//! The executions of a gateway.

use std::{fmt, sync::Arc, time::SystemTime};

use futures::future::BoxFuture;
use gatewright_core::{Principal, SealKey, SharedRecords};
use tokio_util::sync::CancellationToken;

use crate::{
    Draft, Ending, ExecutionError, ExecutionId, ExecutionsConfig, Head, Lease, NewExecution, State, Terms,
    clock::Clock,
    journal::Journal,
    lease::Holder,
    memory::Memory,
    reading::{Execution, Listed, Reader},
    shared::Shared,
};

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
    Shared(Shared),
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

    /// Executions in `records`, which instances share, sealed with a key of `key`. `instance` is the name of this one. Must be called within a Tokio
    /// runtime; [`Executions::close`] writes what is still to be written.
    pub fn shared(
        config: ExecutionsConfig,
        records: Arc<dyn SharedRecords>,
        key: &SealKey,
        instance: impl Into<String>,
    ) -> Self {
        Self::shared_at(config, records, key, instance, SystemTime::now)
    }

    /// Executions in `records`, with another clock.
    pub fn shared_at(
        config: ExecutionsConfig,
        records: Arc<dyn SharedRecords>,
        key: &SealKey,
        instance: impl Into<String>,
        now: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> Self {
        let clock = Clock::of(now);
        let shared = Shared::new(config.clone(), clock.clone(), records, key.clone(), instance.into());
        Self(Arc::new(Parts { config, clock, store: Store::Shared(shared) }))
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
    pub fn create<'a>(
        &'a self,
        owner: &'a Principal,
        about: NewExecution,
        first_chunk: &'a [u8],
    ) -> BoxFuture<'a, Result<Lease, ExecutionError>> {
        Box::pin(async move {
            let mut draft = self.draft(owner, about);
            draft.append(first_chunk)?;
            draft.persist().await
        })
    }

    /// The execution `id`.
    ///
    /// # Errors
    /// [`ExecutionError::NotFound`] for whatever `reader` may not see, or the store does not answer.
    pub fn open<'a>(
        &'a self,
        id: &'a str,
        reader: Reader<'a>,
    ) -> BoxFuture<'a, Result<Execution, ExecutionError>> {
        Box::pin(async move {
            let id: ExecutionId = id.parse()?;
            match &self.0.store {
                Store::Memory(memory) => memory.open(id, reader),
                Store::Shared(shared) => shared.open(id, reader).await,
            }
        })
    }

    /// The description of the execution `id`, as of the latest change of its state.
    ///
    /// # Errors
    /// As [`Executions::open`].
    pub async fn head(&self, id: &str, reader: Reader<'_>) -> Result<Head, ExecutionError> {
        let id: ExecutionId = id.parse()?;
        match &self.0.store {
            Store::Memory(memory) => memory.head(id, reader),
            Store::Shared(shared) => shared.head(id, reader).await,
        }
    }

    /// Takes the lease of the execution `id`, which waits, or whose instance is gone, to go on with it.
    ///
    /// # Errors
    /// [`ExecutionError::Busy`] while an instance runs it, [`ExecutionError::Ended`], [`ExecutionError::NotFound`] for whatever `reader` may not see, or
    /// the store does not answer.
    pub fn acquire<'a>(
        &'a self,
        id: &'a str,
        reader: Reader<'a>,
    ) -> BoxFuture<'a, Result<(Lease, Execution), ExecutionError>> {
        Box::pin(async move { self.take(id, reader, Terms::default()).await })
    }

    /// The same for its owner, who has shown the token of `terms`: it is what the execution rests on from now on, and if it ends, the execution has the
    /// scopes of `owner` until then.
    ///
    /// # Errors
    /// As [`Executions::acquire`].
    pub fn acquire_with<'a>(
        &'a self,
        id: &'a str,
        owner: &'a Principal,
        terms: Terms,
    ) -> BoxFuture<'a, Result<(Lease, Execution), ExecutionError>> {
        Box::pin(async move { self.take(id, Reader::Owner(owner), terms).await })
    }

    async fn take(
        &self,
        id: &str,
        reader: Reader<'_>,
        terms: Terms,
    ) -> Result<(Lease, Execution), ExecutionError> {
        let id: ExecutionId = id.parse()?;
        let lost = CancellationToken::new();
        match &self.0.store {
            Store::Memory(memory) => {
                let (lease, execution) = memory.acquire(id, reader, terms, lost.clone())?;
                Ok((Lease::new(id, lost, Holder::Memory(lease)), execution))
            }
            Store::Shared(shared) => {
                let (lease, execution) = shared.acquire(id, reader, terms, lost.clone()).await?;
                Ok((Lease::new(id, lost, Holder::Shared(Box::new(lease))), execution))
            }
        }
    }

    /// At most `most` executions that `reader` may see: those that have not ended first, then newest first.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn list<'a>(
        &'a self,
        reader: Reader<'a>,
        state: Option<State>,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Listed>, ExecutionError>> {
        Box::pin(async move {
            match &self.0.store {
                Store::Memory(memory) => Ok(memory.list(reader, state, most)),
                Store::Shared(shared) => shared.list(reader, state, most).await,
            }
        })
    }

    /// Detached executions that no instance runs although they do not wait: their instance is gone. [`Head::bytes`] is what there was
    /// room for in their journals, which may be more than they have. One call looks at a bounded number; the next one goes on behind them.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn abandoned(&self) -> Result<Vec<Head>, ExecutionError> {
        match &self.0.store {
            Store::Memory(memory) => Ok(memory.abandoned()),
            Store::Shared(shared) => shared.abandoned().await,
        }
    }

    /// Ends the execution `id`, whatever instance runs it: that one loses its lease.
    ///
    /// # Errors
    /// [`ExecutionError::Ended`], [`ExecutionError::NotFound`] for whatever `reader` may not see, or the store does not answer.
    pub fn cancel<'a>(
        &'a self,
        id: &'a str,
        reader: Reader<'a>,
        ending: &'a Ending,
    ) -> BoxFuture<'a, Result<(), ExecutionError>> {
        Box::pin(async move {
            let id: ExecutionId = id.parse()?;
            match &self.0.store {
                Store::Memory(memory) => memory.cancel(id, reader, ending),
                Store::Shared(shared) => shared.cancel(id, reader, ending).await,
            }
        })
    }

    /// Forgets the execution `id`. An instance that runs it loses its lease.
    ///
    /// # Errors
    /// [`ExecutionError::NotFound`] for whatever `reader` may not see, or the store does not answer.
    pub fn remove<'a>(
        &'a self,
        id: &'a str,
        reader: Reader<'a>,
    ) -> BoxFuture<'a, Result<(), ExecutionError>> {
        Box::pin(async move {
            let id: ExecutionId = id.parse()?;
            match &self.0.store {
                Store::Memory(memory) => memory.remove(id, reader),
                Store::Shared(shared) => shared.remove(id, reader).await,
            }
        })
    }

    /// Ends background work, once what is to be kept has been written.
    pub async fn close(&self) {
        match &self.0.store {
            Store::Memory(_) => {}
            Store::Shared(shared) => shared.close().await,
        }
    }

    /// Makes a draft durable. The journal stays where it is if it cannot be.
    pub(crate) async fn begin(&self, head: &Head, journal: &mut Journal) -> Result<Lease, ExecutionError> {
        let lost = CancellationToken::new();
        let holder = match &self.0.store {
            Store::Memory(memory) => Holder::Memory(memory.begin(head, journal, lost.clone())?),
            Store::Shared(shared) => {
                Holder::Shared(Box::new(shared.begin(head, journal, lost.clone()).await?))
            }
        };
        *journal = Journal::default();
        Ok(Lease::new(head.id, lost, holder))
    }

    /// Keeps an execution that has ended.
    pub(crate) fn keep(&self, head: Head, journal: Journal) {
        match &self.0.store {
            Store::Memory(memory) => memory.keep(head, journal),
            Store::Shared(shared) => shared.keep(head, journal),
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.0.clock.now_ms()
    }
}

//! Answers of the host to the calls of a run, on their way and in the journal.

use std::{collections::HashSet, future::Future, pin::Pin, sync::Arc};

use futures::stream::FuturesUnordered;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use crate::{
    engine::names,
    excerpt,
    host::{ToolAnswer, ToolFailure},
    journal::JournalEntry,
    outcome::RunError,
};

/// The outcome of a request to the host.
pub(super) enum Answer {
    /// The answer to message `id`; none when the host panicked.
    To { id: u32, is_call: bool, answer: Option<Result<ToolAnswer, ToolFailure>> },
    /// The host took a value of `progress`.
    Taken,
}

/// A request that the host is at work on.
pub(super) type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// The calls of a run at its host, which outlive its workers.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) answering: FuturesUnordered<Answering>,
    /// Those whose answers were on their way when the run gave its worker back.
    pub(super) open: HashSet<u32>,
    /// The run had another worker before: what waits for something outside has been asked.
    pub(super) is_resumed: bool,
    /// The run's place among those without a worker.
    pub(super) place: Option<OwnedSemaphorePermit>,
    /// End of the time for which the run may wait in all.
    pub(super) waits_until: Option<Instant>,
}

impl Calls {
    /// Takes a place among the runs without a worker. Returns `false` if all are taken.
    pub(super) fn take_place(&mut self, of: &Arc<Semaphore>) -> bool {
        self.place = of.clone().try_acquire_owned().ok();
        self.place.is_some()
    }

    /// Returns `true` once the script, which has made `asked` host calls, has made all of those whose answers are on their way.
    pub(super) fn are_known(&self, asked: usize) -> bool {
        self.open.iter().all(|id| (*id as usize) < asked)
    }
}

/// The entry of an answer, with texts as the script may see them.
pub(super) fn answer_entry(id: u32, at_ms: u64, answer: Result<ToolAnswer, ToolFailure>) -> JournalEntry {
    let (answer, kept) = match answer {
        Ok(ToolAnswer::Kept { value, kept }) => (Ok(value), Some(kept)),
        Ok(ToolAnswer::Value(value) | ToolAnswer::Waits(value)) => (Ok(value), None),
        Err(failure) => {
            let (code, message) = (excerpt::name(&failure.code), excerpt::message(&failure.message));
            let (code, message) = (code.into_owned(), message.into_owned());
            (Err(ToolFailure { code, message, ..failure }), None)
        }
    };
    JournalEntry::Answer { id, at_ms, answer, kept }
}

/// The error of a run whose host panicked while it answered `callTool`, or `getTool`.
pub(super) fn host_failed(is_call: bool) -> RunError {
    let function = if is_call { "callTool" } else { "getTool" };
    RunError::runtime(names::HOST, format!("the host failed while it answered {function}"))
}

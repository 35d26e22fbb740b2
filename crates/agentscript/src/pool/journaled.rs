//! The place of a run between its journals: the one that it goes through again, and the one that it writes.

use std::{collections::HashSet, sync::Arc, time::Duration};

use super::replay::Replaying;
use crate::{
    journal::{JournalEntry, Replay},
    outcome::RunError,
};

/// The place of a run between its journals. A call of it is a `C`.
pub(super) struct Journaled<C> {
    /// Time that earlier parts of the run took.
    pub(super) before: Duration,
    /// The journal that the run goes through again.
    pub(super) replaying: Option<Replaying>,
    /// Calls that the journal does not answer: made when the script has had all answers of it.
    pub(super) deferred: Vec<(JournalEntry, C)>,
    /// Entries to be written before anything else happens; none where nobody keeps a journal.
    pub(super) unwritten: Option<Vec<JournalEntry>>,
    /// Open calls that wait for something outside of the run.
    pub(super) waiting: u32,
    /// Times that the script was asked whether it waits.
    pub(super) pings: u32,
    /// The last of them, with the number of host calls before it, if nothing happened since; and what the script said.
    pub(super) pinged: Option<(u32, usize)>,
    pub(super) is_idle: bool,
    /// The worker was told to stop because the run is suspended.
    pub(super) suspending: bool,
    /// The same, while calls are under way: the run goes on with another worker.
    pub(super) parking: bool,
    /// Calls that the host is at work on.
    pub(super) at_host: HashSet<u32>,
}

impl<C> Journaled<C> {
    pub(super) fn new(replay: Option<Arc<Replay>>, has_journal: bool) -> Self {
        Self {
            before: replay.as_ref().map_or(Duration::ZERO, |replay| replay.elapsed),
            replaying: replay.map(Replaying::new),
            deferred: Vec::new(),
            unwritten: has_journal.then(Vec::new),
            waiting: 0,
            pings: 0,
            pinged: None,
            is_idle: false,
            suspending: false,
            parking: false,
            at_host: HashSet::new(),
        }
    }

    /// Returns `true` if the run has a journal to go through.
    pub(super) fn has_past(&self) -> bool {
        self.replaying.is_some()
    }

    /// Returns `true` while the script has not had all answers of that journal.
    pub(super) fn is_in_the_past(&mut self) -> bool {
        self.replaying.as_mut().is_some_and(|replaying| !replaying.is_over())
    }

    /// The error of a run that ended before its journal did; none if it did not.
    pub(super) fn unfinished(&mut self) -> Option<RunError> {
        self.replaying.as_mut().and_then(Replaying::unfinished)
    }

    /// Adds an entry to the journal, where one is kept.
    pub(super) fn note(&mut self, entry: impl FnOnce() -> JournalEntry) {
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.push(entry());
        }
    }
}

//! A journal that a run goes through again: what each call was, and the answers to feed to the script.

use std::{collections::HashMap, sync::Arc};

use crate::{
    excerpt,
    journal::{HostFunction, JournalEntry, Replay, Resumed},
    outcome::RunError,
};

/// The place of a run in the journal that it replays.
pub(super) struct Replaying {
    replay: Arc<Replay>,
    /// The entry of each call.
    calls: HashMap<u32, usize>,
    /// The entry of the last thing that happened to each call that has no answer.
    open: HashMap<u32, usize>,
    /// The entry from which on the next answer is looked for.
    next: usize,
}

/// A host call of the script, as the journal knows it.
pub(super) enum Recorded {
    /// The journal has its answer.
    Answered {
        /// Time of the call in its first run, in milliseconds.
        at_ms: u64,
    },
    /// The journal has the call and no answer.
    Open(Resumed),
    /// The journal ends before it.
    New,
}

impl Replaying {
    pub(super) fn new(replay: Arc<Replay>) -> Self {
        let (mut calls, mut open) = (HashMap::new(), HashMap::new());
        for (at, entry) in replay.entries.iter().enumerate() {
            match entry {
                JournalEntry::Call { id, .. } => {
                    calls.insert(*id, at);
                    open.insert(*id, at);
                }
                JournalEntry::Waits { id, .. } | JournalEntry::Retried { id } => {
                    open.insert(*id, at);
                }
                JournalEntry::Answer { id, .. } => {
                    open.remove(id);
                }
            }
        }
        Self { replay, calls, open, next: 0 }
    }

    /// Finds the call that the script makes now.
    ///
    /// # Errors
    /// The journal has another call in its place.
    pub(super) fn find(
        &mut self,
        id: u32,
        function: HostFunction,
        name: &str,
        input: &str,
    ) -> Result<Recorded, RunError> {
        let Some(at) = self.calls.remove(&id) else { return Ok(Recorded::New) };
        let JournalEntry::Call { at_ms, function: was, name: named, input: given, .. } =
            &self.replay.entries[at]
        else {
            return Ok(Recorded::New);
        };
        if (*was, named.as_str(), given.get()) != (function, name, input) {
            let message = format!(
                "call {id} of the run was of `{}` and is now of `{}`{}",
                excerpt::name(named),
                excerpt::name(name),
                if named == name { ", with another input" } else { "" }
            );
            return Err(RunError::ReplayDiverged { message });
        }
        let Some(last) = self.open.remove(&id) else { return Ok(Recorded::Answered { at_ms: *at_ms }) };
        Ok(Recorded::Open(match &self.replay.entries[last] {
            JournalEntry::Waits { state, .. } => Resumed::Waited(state.clone()),
            _ => Resumed::Interrupted,
        }))
    }

    /// The next answer, once the script has made `asked` calls; none while its call is not made, or there are no more.
    pub(super) fn next_answer(&mut self, asked: usize) -> Option<&JournalEntry> {
        self.skip();
        let JournalEntry::Answer { id, .. } = self.replay.entries.get(self.next)? else { return None };
        if *id as usize >= asked || self.calls.contains_key(id) {
            return None;
        }
        self.next += 1;
        self.replay.entries.get(self.next - 1)
    }

    /// Returns `true` if the script has had all answers of the journal.
    pub(super) fn is_over(&mut self) -> bool {
        self.skip();
        self.next == self.replay.entries.len()
    }

    /// The error of a run that ended before its journal did; none if it did not.
    pub(super) fn unfinished(&mut self) -> Option<RunError> {
        (!self.is_over() || !self.calls.is_empty()).then(|| RunError::ReplayDiverged {
            message: "the run ended before it came to the end of its journal".to_owned(),
        })
    }

    /// Goes on to the next answer.
    fn skip(&mut self) {
        let entries = self.replay.entries.iter().skip(self.next);
        self.next += entries.take_while(|entry| !matches!(entry, JournalEntry::Answer { .. })).count();
    }
}

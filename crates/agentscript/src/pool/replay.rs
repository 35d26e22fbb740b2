//! A journal that a run goes through again: what each call was, and the answers to feed to the script.

use std::{collections::HashMap, sync::Arc};

use crate::{
    engine::names,
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
            let expected = shown(*was, named, given.get(), input);
            let got = shown(function, name, input, given.get());
            let message = format!("call {id} differs: the journal has {expected}, and the script made {got}");
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
        let is_over = self.is_over();
        let missing = self.calls.values().min().and_then(|at| self.replay.entries.get(*at));
        let message = match missing {
            Some(JournalEntry::Call { id, function, name, input, .. }) => {
                let expected = shown(*function, name, input.get(), "");
                format!("call {id} is missing: the journal has {expected}, and the script ended before it")
            }
            _ if is_over => return None,
            _ => "the script ended before it had all answers of its journal".to_owned(),
        };
        Some(RunError::ReplayDiverged { message })
    }

    /// Goes on to the next answer.
    fn skip(&mut self) {
        let entries = self.replay.entries.iter().skip(self.next);
        self.next += entries.take_while(|entry| !matches!(entry, JournalEntry::Answer { .. })).count();
    }
}

impl RunError {
    /// Returns `true` for an end that does not follow from the script and the answers to its calls: limits of time and memory, and failures of the worker
    /// or the journal. Another run of the same may end otherwise.
    pub fn is_incidental(&self) -> bool {
        match self {
            Self::Timeout { .. } | Self::Suspended | Self::Journal { .. } | Self::Worker(_) => true,
            Self::RuntimeError { name, .. } => [names::HOST, names::HOST_LIMIT].contains(&name.as_str()),
            Self::SyntaxError { .. }
            | Self::IllegalAccess { .. }
            | Self::ToolError { .. }
            | Self::ReplayDiverged { .. } => false,
        }
    }
}

/// Bytes of an input that are shown, from a little before the place where it differs from another.
const SHOWN: usize = 160;
const BEFORE: usize = 40;

/// A call as people read it, with its input from where it differs from `other`.
fn shown(function: HostFunction, name: &str, input: &str, other: &str) -> String {
    let name = excerpt::name(name);
    let same = input.bytes().zip(other.bytes()).take_while(|(one, two)| one == two).count();
    let start = if other.is_empty() { 0 } else { input.floor_char_boundary(same.saturating_sub(BEFORE)) };
    let end = input.floor_char_boundary(start + SHOWN);
    let (before, after) = (if start > 0 { "…" } else { "" }, if end < input.len() { "…" } else { "" });
    let input = format!("{before}{}{after}", &input[start..end]);
    match function {
        HostFunction::CallTool | HostFunction::CallPages => format!("callTool(\"{name}\", {input})"),
        HostFunction::GetTool => format!("getTool(\"{name}\")"),
        HostFunction::Content => format!("{name} {input}"),
    }
}

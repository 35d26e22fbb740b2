//! Runs as their executions kept them: for replays, and for tests and plans that are made of them.

use std::{collections::HashMap, time::Duration};

use gatewright_agentscript::{HostFunction, JournalEntry, Limits, ToolFailure};
use gatewright_executions::{Execution, Head, State};
use serde_json::{Value, json, value::RawValue};

use super::{Past, RunStart, questions::Waiting};
use crate::plans::has_header;

/// A run that an execution kept: its script with all that it was started with, and its journal.
#[derive(Debug)]
pub struct RecordedRun {
    pub(super) head: Head,
    pub(super) start: RunStart,
    pub(super) past: Past,
}

/// The reason why the run of an execution cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotRecorded {
    /// The journal was too large to be kept.
    #[error(
        "the execution has no journal: it was longer than `executions.maxJournalBytes`, or than an eighth of `codecall.vm.hostMemoryMib`; raise them and \
         run the script again"
    )]
    NotKept,
    /// The journal is no journal of a script.
    #[error(
        "the journal of the execution cannot be read: it is damaged, or another version of the program wrote it"
    )]
    Unreadable,
}

/// A call of a recorded run.
#[derive(Debug, Clone)]
pub struct RecordedCall<'a> {
    /// The function that the script called.
    pub function: HostFunction,
    /// The tool, as the script named it.
    pub name: &'a str,
    /// Time of the call, from the start of the run.
    pub called: Duration,
    /// Time of the answer, from the start of the run; none if the run ended before it.
    pub answered: Option<Duration>,
    /// Its input.
    pub input: &'a RawValue,
    /// The answer; none if the run ended before it.
    pub answer: Option<Result<&'a RawValue, &'a ToolFailure>>,
    /// The answer had images, audio or resources.
    pub has_blocks: bool,
    /// Policies asked for an approval of it, or of a call of the saved plan that it is of.
    pub asked_approval: bool,
}

/// Outcome of a recorded run. Of texts of more than 2 KiB only length and digest are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedOutcome {
    /// The result as JSON, or the message of the error.
    pub result: String,
    /// Console lines.
    pub logs: String,
    /// Line and column of the error in the script, from 1.
    pub place: Option<(usize, usize)>,
}

impl RecordedRun {
    /// Reads the run of `execution`.
    ///
    /// # Errors
    /// There is no journal, or it cannot be read.
    pub async fn read(execution: &Execution) -> Result<Self, NotRecorded> {
        if !execution.head.complete {
            return Err(NotRecorded::NotKept);
        }
        let chunks = execution.chunks.clone();
        let (start, past) = Past::open(chunks).await.ok_or(NotRecorded::Unreadable)?;
        Ok(Self { head: execution.head.clone(), start, past })
    }

    /// The description of its execution.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Returns `true` if the run is over.
    pub fn has_ended(&self) -> bool {
        self.head.state == State::Ended
    }

    /// The script.
    pub fn script(&self) -> &str {
        &self.start.script
    }

    /// Returns `true` if the script is a saved plan: it begins with a header.
    pub fn is_saved_plan(&self) -> bool {
        has_header(&self.start.script)
    }

    /// The value of `codecallContext`; none if the caller gave none.
    pub fn context(&self) -> Option<Value> {
        self.start.context.as_deref().and_then(|context| serde_json::from_str(context.get()).ok())
    }

    /// The tools that the caller allowed; none for all.
    pub fn allowed_tools(&self) -> Option<&[String]> {
        self.start.allowed_tools.as_deref()
    }

    /// Returns `true` for a rehearsal, whose answers are partly invented.
    pub fn is_rehearsal(&self) -> bool {
        self.start.dry_run.is_some()
    }

    /// Settings of `codecall.vm` under which the run ends the same way: those that differ from the defaults.
    pub fn vm(&self) -> Value {
        let (limits, preset) = (&self.start.limits, self.start.policy.preset);
        let usual = Limits::preset(preset);
        let mut vm = json!({"preset": preset});
        for (key, value, usual) in [
            ("maxIterations", limits.max_iterations, usual.max_iterations),
            ("maxToolCalls", limits.max_tool_calls.into(), usual.max_tool_calls.into()),
            ("hostMemoryMib", limits.host_bytes >> 20, usual.host_bytes >> 20),
            ("resultKib", limits.result_bytes >> 10, usual.result_bytes >> 10),
        ] {
            if value != usual {
                vm[key] = value.into();
            }
        }
        vm["allowConsole"] = self.start.policy.allow_console.into();
        vm
    }

    /// The outcome; none if the run goes on, or ended in a way that kept none.
    pub fn outcome(&self) -> Option<RecordedOutcome> {
        let kept = self.past.outcome.as_ref()?;
        Some(RecordedOutcome { result: kept.result.shown(), logs: kept.logs.shown(), place: kept.place() })
    }

    /// The calls, in the order in which the script made them.
    pub fn calls(&self) -> Vec<RecordedCall<'_>> {
        let (mut calls, mut places) = (Vec::new(), HashMap::new());
        for entry in &self.past.entries {
            match entry {
                JournalEntry::Call { id, function, name, input, at_ms } => {
                    places.insert(*id, calls.len());
                    calls.push(RecordedCall {
                        function: *function,
                        name,
                        called: Duration::from_millis(*at_ms),
                        answered: None,
                        input,
                        answer: None,
                        has_blocks: false,
                        asked_approval: false,
                    });
                }
                JournalEntry::Answer { id, answer, kept, at_ms } => {
                    if let Some(call) = places.get(id).and_then(|at: &usize| calls.get_mut(*at)) {
                        call.answer = Some(answer.as_deref());
                        call.answered = Some(Duration::from_millis(*at_ms));
                        call.has_blocks = kept.is_some();
                    }
                }
                JournalEntry::Waits { id, state } => {
                    let waiting = serde_json::from_str::<Waiting>(state.get());
                    if let Some(call) = places.get(id).and_then(|at: &usize| calls.get_mut(*at)) {
                        call.asked_approval |= waiting.is_ok_and(|waiting| !waiting.approvals.is_empty());
                    }
                }
                JournalEntry::Retried { .. } => {}
            }
        }
        calls
    }
}

//! Contents of the chunks of an execution: JSON texts, one for each.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gatewright_agentscript::{HostFunction, JournalEntry, Limits, Replay, RunRequest, ScriptPolicy};
use gatewright_core::{
    codes, off_thread,
    rmcp::model::{CallToolResult, InputResponses},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{KeptOutcome, questions::Waiting, rehearsal::DryRun};
use crate::call_log::CallLog;

/// The start of a run: everything that its outcome depends on besides the answers to its calls.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunStart {
    pub(crate) script: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_tools: Option<Vec<String>>,
    pub(crate) log: CallLog,
    pub(crate) limits: Limits,
    pub(crate) policy: ScriptPolicy,
    pub(crate) seed: u64,
    /// Milliseconds since 1970-01-01 UTC.
    pub(crate) started_ms: u64,
    /// It is only tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dry_run: Option<DryRun>,
    /// It runs without its client.
    #[serde(default)]
    pub(crate) detached: bool,
    /// The secret that the handles of blocks follow from.
    pub(crate) handles: String,
}

impl RunStart {
    /// The first chunk of its execution.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        /// [`Chunk::Start`] of a start that is not taken.
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        enum First<'s> {
            Start(&'s RunStart),
        }
        serde_json::to_vec(&First::Start(self)).unwrap_or_default()
    }

    /// The run from its start, or on from where `past` ends.
    pub(crate) fn request(&self, past: Option<&Past>) -> RunRequest {
        let started_at = UNIX_EPOCH + Duration::from_millis(self.started_ms);
        let mut request = RunRequest::new(self.script.clone());
        request.context.clone_from(&self.context);
        request.policy = self.policy.clone();
        request.limits = self.limits.clone();
        request.seed = Some(self.seed);
        request.started_at = Some(started_at);
        request.replay = past.filter(|past| !past.entries.is_empty()).map(|past| {
            let elapsed = SystemTime::now().duration_since(started_at).unwrap_or_default();
            Replay { entries: past.entries.clone(), elapsed }.into()
        });
        request
    }
}

/// One chunk of an execution.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Chunk {
    /// The first one.
    Start(Box<RunStart>),
    /// Steps of the run.
    Steps(Vec<JournalEntry>),
    /// The answer of a run that ended without its client.
    Ended(Box<CallToolResult>),
    /// Result and console lines of a run that ended.
    Outcome(Box<KeptOutcome>),
    /// Answers of people and clients to the questions of calls, by the index of the call.
    Answers(BTreeMap<u32, InputResponses>),
}

impl Chunk {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The journal of an execution so far.
#[derive(Debug, Default)]
pub(crate) struct Past {
    pub(crate) start: Option<RunStart>,
    pub(crate) entries: Vec<JournalEntry>,
    pub(crate) answers: BTreeMap<u32, InputResponses>,
    pub(crate) reply: Option<CallToolResult>,
    pub(crate) outcome: Option<KeptOutcome>,
}

impl Past {
    /// Reads the chunks of an execution where that keeps no request waiting; none if they are not those of a run.
    pub(crate) async fn open(chunks: impl Into<Arc<[Vec<u8>]>>) -> Option<(RunStart, Self)> {
        let chunks = chunks.into();
        let bytes = chunks.iter().map(Vec::len).fold(0, usize::saturating_add);
        off_thread(bytes, move || Self::read(&chunks)).await
    }

    fn read(chunks: &[Vec<u8>]) -> Option<(RunStart, Self)> {
        let mut past = Self::default();
        for chunk in chunks {
            match serde_json::from_slice(chunk).ok()? {
                Chunk::Start(start) => past.start = Some(*start),
                Chunk::Steps(entries) => {
                    for entry in &entries {
                        // Answers are to what a call asked before them, not to what it asks next.
                        if let JournalEntry::Waits { state, .. } = entry
                            && let Ok(waiting) = serde_json::from_str::<Waiting>(state.get())
                        {
                            past.answers.remove(&waiting.index);
                        }
                    }
                    past.entries.extend(entries);
                }
                Chunk::Answers(answers) => past.answers.extend(answers),
                Chunk::Ended(reply) => past.reply = Some(*reply),
                Chunk::Outcome(outcome) => past.outcome = Some(*outcome),
            }
        }
        let start = past.start.take()?;
        Some((start, past))
    }

    /// The tools that were called and the content that was read after the first `told` of them, and how each call ended.
    pub(crate) fn calls_after(&self, told: u32) -> Vec<(String, String)> {
        let mut calls = Vec::new();
        for entry in &self.entries {
            match entry {
                JournalEntry::Call { id, function, name, .. } if *function != HostFunction::GetTool => {
                    calls.push((*id, name.clone(), codes::OUTCOME_UNKNOWN.to_owned()));
                }
                JournalEntry::Answer { id, answer, .. } => {
                    if let Some((_, _, status)) = calls.iter_mut().rev().find(|(call, ..)| call == id) {
                        *status =
                            answer.as_ref().map_or_else(|failure| failure.code.clone(), |_| "ok".to_owned());
                    }
                }
                _ => {}
            }
        }
        calls.into_iter().skip(told as usize).map(|(_, name, status)| (name, status)).collect()
    }

    /// Number of tool calls that have their answer.
    pub(crate) fn calls(&self) -> u64 {
        let tool = |entry: &JournalEntry| match entry {
            JournalEntry::Call { id, function: HostFunction::CallTool | HostFunction::CallPages, .. } => {
                Some(*id)
            }
            _ => None,
        };
        let tools: HashSet<u32> = self.entries.iter().filter_map(tool).collect();
        let answered =
            |entry: &&JournalEntry| matches!(entry, JournalEntry::Answer { id, .. } if tools.contains(id));
        self.entries.iter().filter(answered).count() as u64
    }

    /// The calls that wait and have no answers yet.
    pub(crate) fn waiting(&self) -> Vec<Waiting> {
        self.suspended(false)
    }

    /// The calls that wait and go on with answers once the run does.
    pub(crate) fn answered(&self) -> Vec<Waiting> {
        self.suspended(true)
    }

    fn suspended(&self, are_answered: bool) -> Vec<Waiting> {
        let mut open = BTreeMap::new();
        for entry in &self.entries {
            match entry {
                JournalEntry::Waits { id, state } => {
                    let waiting = serde_json::from_str::<Waiting>(state.get()).ok();
                    open.extend(waiting.map(|waiting| (*id, waiting)));
                }
                JournalEntry::Answer { id, .. } | JournalEntry::Retried { id } => {
                    open.remove(id);
                }
                JournalEntry::Call { .. } => {}
            }
        }
        open.into_values()
            .filter(|waiting| self.answers.contains_key(&waiting.index) == are_answered)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_long_journal_is_not_read_on_the_thread_that_asks_for_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        let steps = |entries: usize| {
            let script = "x".repeat(entries);
            let start = serde_json::json!({"script": script, "log": "off", "limits": gatewright_agentscript::Limits::default(),
                "policy": gatewright_agentscript::ScriptPolicy::default(), "seed": 1, "startedMs": 1, "handles": "h"});
            let start: RunStart = serde_json::from_value(start).unwrap();
            vec![start.to_bytes()]
        };
        runtime.block_on(async {
            let short = Past::open(steps(10)).now_or_never().expect("it is read at once");
            assert_eq!(short.unwrap().0.script.len(), 10);
            // The only thread for such work is busy until it is told to go on.
            let (go_on, told) = std::sync::mpsc::channel();
            let busy = tokio::task::spawn_blocking(move || told.recv());
            let long = Past::open(steps(100_000));
            tokio::pin!(long);
            assert!(futures::poll!(&mut long).is_pending());
            go_on.send(()).unwrap();
            busy.await.unwrap().unwrap();
            assert_eq!(long.await.unwrap().0.script.len(), 100_000);
        });
    }
}

//! Replays: a recorded run goes through its whole journal again, and calls nothing.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gatewright_agentscript::{
    ContentRequest, Host, HostFunction, HostFuture, JournalEntry, Outcome, Replay, Resumed, RunError,
    ToolAnswer, ToolCall, ToolFailure, WorkerError, WorkerPool, excerpt,
};
use gatewright_executions::State;
use serde_json::{Value, value::RawValue};
use tokio_util::sync::CancellationToken;

use super::{
    outcome::{Kept, KeptOutcome},
    recorded::RecordedRun,
};
use crate::{CallLog, CodeCallConfig, WorkerConfig, sent::SentTexts, settings::Settings};

/// Time that a replay has at least: it waits for nothing.
const LEAST_TIME: Duration = Duration::from_secs(60);
/// Longest text of a difference, in bytes.
const SHOWN: usize = 512;

/// The outcome of a replay.
#[derive(Debug)]
#[non_exhaustive]
pub struct Replayed {
    /// Calls that the journal has.
    pub calls: usize,
    /// The comparison.
    pub verdict: Verdict,
    /// The reply of the script in this replay, as `codecall:execute` has it.
    pub body: Value,
}

/// The comparison of a replay with its journal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Calls, result and console lines are the same.
    Identical,
    /// The calls are the same to the end of the journal; why nothing is compared beyond it.
    IdenticalCalls(String),
    /// The first difference.
    Differs(String),
}

impl RecordedRun {
    /// Runs the script against its journal in a worker of its own, as `workers` describes them. Nothing is called.
    ///
    /// # Errors
    /// No worker starts.
    pub async fn replay(&self, workers: &WorkerConfig) -> Result<Replayed, WorkerError> {
        self.replay_at(workers, self.start.seed, 0).await
    }

    /// Replays with other random numbers at another time. Returns `true` if nothing depends on them.
    ///
    /// # Errors
    /// As for [`RecordedRun::replay`].
    pub async fn is_the_same_at_another_time(&self, workers: &WorkerConfig) -> Result<bool, WorkerError> {
        /// Milliseconds: a few days, hours and minutes.
        const LATER: u64 = 301_234_567;
        let replayed = self.replay_at(workers, !self.start.seed, LATER).await?;
        Ok(replayed.verdict == Verdict::Identical)
    }

    async fn replay_at(
        &self,
        workers: &WorkerConfig,
        seed: u64,
        later: u64,
    ) -> Result<Replayed, WorkerError> {
        let one = WorkerConfig { workers: Some(1), max_workers: Some(1), ..workers.clone() };
        let pool = WorkerPool::new(one.pool())?;
        let mut request = self.start.request(None);
        request.limits.timeout = request.limits.timeout.max(LEAST_TIME);
        request.seed = Some(seed);
        request.started_at = request.started_at.map(|at| at + Duration::from_millis(later));
        let mut entries = self.past.entries.clone();
        for entry in &mut entries {
            if let JournalEntry::Answer { at_ms, .. } = entry {
                *at_ms += at_ms.saturating_mul(later.min(1));
            }
        }
        request.replay = Some(Arc::new(Replay { entries, elapsed: Duration::ZERO }));
        let cancel = CancellationToken::new();
        let host = Arc::new(Offline {
            made: self.past.entries.iter().filter(|entry| matches!(entry, JournalEntry::Call { .. })).count(),
            open: self.open_lookups(),
            reached: Mutex::default(),
            cancel: cancel.clone(),
        });
        let outcome = pool.run(request, host.clone(), cancel).await;
        pool.shutdown().await;
        let verdict = self.verdict(&outcome, host.reached());
        let settings = Settings::of(CodeCallConfig::default());
        let body = settings.body(outcome, CallLog::Off, &SentTexts::default());
        Ok(Replayed { calls: host.made, verdict, body })
    }

    /// Calls of `getTool` that the journal has no answer to.
    fn open_lookups(&self) -> Vec<String> {
        let calls = self.calls().into_iter();
        let open = calls.filter(|call| call.function == HostFunction::GetTool && call.answer.is_none());
        open.map(|call| call.name.to_owned()).collect()
    }

    fn verdict(&self, outcome: &Outcome, reached: Option<Reached>) -> Verdict {
        if let Some(kept) = self.past.outcome.as_ref().filter(|kept| kept.is_refused)
            && self.past.entries.is_empty()
        {
            let why = format!("the gateway refused the plan before it ran: {}", kept.result.shown());
            return Verdict::IdenticalCalls(why);
        }
        let incidental = || match &outcome.result {
            Err(error) if error.is_incidental() => Some(error.to_string()),
            _ => None,
        };
        match (reached, &outcome.result) {
            (Some(Reached::Beyond(what)), _) => return Verdict::Differs(what),
            (_, Err(RunError::ReplayDiverged { message })) => return Verdict::Differs(message.clone()),
            (Some(Reached::Open), _) | (_, Err(RunError::Suspended)) => {
                return Verdict::IdenticalCalls(self.stopped().to_owned());
            }
            (None, _) => {}
        }
        let Some(kept) = &self.past.outcome else {
            return Verdict::IdenticalCalls(self.stopped().to_owned());
        };
        if kept.is_incidental {
            let why = format!("the run ended with \"{}\", which a replay need not meet", kept.result.shown());
            return Verdict::IdenticalCalls(why);
        }
        if let Some(error) = incidental() {
            return Verdict::IdenticalCalls(format!("the replay could not be finished: {error}"));
        }
        let again = KeptOutcome::of(outcome);
        differs("result", &kept.result, &again.result)
            .or_else(|| differs("console", &kept.logs, &again.logs))
            .map_or(Verdict::Identical, Verdict::Differs)
    }

    /// The reason why the journal has no outcome.
    fn stopped(&self) -> &'static str {
        match self.head.state {
            State::Waiting => "the run waits there",
            State::Running => "the run has come so far",
            State::Ended => "the run was ended there, and its outcome is not kept",
        }
    }
}

fn differs(what: &str, expected: &Kept, got: &Kept) -> Option<String> {
    let short = |kept: &Kept| {
        let shown = kept.shown();
        let end = shown.floor_char_boundary(SHOWN);
        if end < shown.len() { format!("{}…", &shown[..end]) } else { shown }
    };
    (expected != got).then(|| {
        format!("the {what} differs: the journal has {}, and the script gave {}", short(expected), short(got))
    })
}

/// The host of a replay. Nothing of it is reached while the journal has answers.
struct Offline {
    /// Calls that the journal has.
    made: usize,
    open: Vec<String>,
    reached: Mutex<Option<Reached>>,
    cancel: CancellationToken,
}

/// The end of a journal, as a script reached it.
enum Reached {
    /// A call that the journal has, without an answer.
    Open,
    /// A call that the journal does not have.
    Beyond(String),
}

impl Offline {
    fn reached(&self) -> Option<Reached> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends the replay, unless it has ended.
    fn end(&self, reached: Reached) {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reached);
        self.cancel.cancel();
    }

    fn beyond(&self, call: &str) {
        self.end(Reached::Beyond(format!(
            "call {} is new: the journal has {} calls, and the script made {call}",
            self.made, self.made
        )));
    }

    /// An open call stays open. The script may end without its answer.
    fn answer(&self, resumed: Option<&Resumed>, call: impl FnOnce() -> String) -> ToolAnswer {
        if resumed.is_none() {
            self.beyond(&call());
        }
        ToolAnswer::Waits(RawValue::NULL.to_owned())
    }
}

impl Host for Offline {
    fn call_tool(&self, call: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        Box::pin(async move {
            let shown = || {
                format!("callTool(\"{}\", {})", excerpt::name(&call.name), excerpt::name(call.input.get()))
            };
            Ok(self.answer(call.resumed.as_ref(), shown))
        })
    }

    fn content(
        &self,
        request: ContentRequest,
        _: u32,
        resumed: Option<Resumed>,
    ) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        Box::pin(
            async move { Ok(self.answer(resumed.as_ref(), || format!("a call of {}", request.function()))) },
        )
    }

    fn get_tool(&self, name: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        if self.open.contains(&name) {
            self.end(Reached::Open);
        } else {
            self.beyond(&format!("getTool(\"{}\")", excerpt::name(&name)));
        }
        Box::pin(std::future::pending())
    }
}

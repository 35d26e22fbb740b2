//! The record of a run in the pool, and the checks of every message that its worker sends.
//!
//! A message that a worker may not send ends the worker. `calls` has the host calls of a run, `ending` its result.

mod calls;
mod ending;

use std::{
    collections::VecDeque,
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::FutureExt;
use gatewright_json::{Unreadable, read_json, weight};
use serde_json::value::RawValue;

use super::{
    answers::{Answer, Answering, Calls},
    journaled::Journaled,
};
use crate::{
    engine::names,
    excerpt::{MESSAGE_BYTES, NAME_BYTES},
    host::{ContentRequest, Host, PagedInput, ToolAnswer, ToolCall, ToolFailure},
    journal::{HostFunction, Replay, Resumed},
    limits::Limits,
    outcome::{CallRecord, CallStatus, PROGRESS_BYTES, PROGRESS_VALUES, RunError, RunResult, WorkerError},
    plan::{MAX_WARNINGS, Mistake, PLAN_BYTES, PlanFacts, PlanRefusal, PlanVerdict, PlanWarning},
    protocol::{Frame, FrameError, MessageKind},
};

/// Bytes of a frame beside its limited part.
pub(super) const FRAME_SLACK: u64 = 64 * 1024;
/// Longest head of a worker's last message, in bytes: a message and names as the worker cuts them, each byte escaped.
const MAX_ENDING: usize = 8 * (MESSAGE_BYTES + 3 * NAME_BYTES);
/// Memory of a call's record beside its name, in bytes.
const RECORD_BYTES: u64 = 192;
/// Memory of facts about a script, for each byte of their text, in bytes.
const FACTS_WEIGHT: u64 = 8;
/// Memory of a host call without a record, in bytes.
const ASKED_BYTES: u64 = 16;
/// Memory of a console line beside its text, in bytes.
const LINE_BYTES: u64 = 48;
/// Shortest time between two values of `progress` that the host is given.
const PROGRESS_PAUSE: Duration = Duration::from_millis(100);
/// Most open calls to name in the message of a timeout.
const MOST_NAMED: usize = 10;

/// The host's judgement of a plan; `None` when the host panicked.
pub(super) type Judging = Pin<Box<dyn Future<Output = Option<PlanVerdict>> + Send>>;
type HostAnswer = Pin<Box<dyn Future<Output = Result<ToolAnswer, ToolFailure>> + Send>>;

/// The end of a conversation with a worker.
pub(super) enum RunEnd {
    /// The run has its result. A worker that failed, or is in the middle of a message, serves no other run.
    Finished { result: RunResult, reuse_worker: bool },
    /// The worker closed its end.
    Disconnected,
}

impl From<RunError> for RunEnd {
    fn from(error: RunError) -> Self {
        Self::Finished { result: Err(error), reuse_worker: false }
    }
}

impl From<WorkerError> for RunEnd {
    fn from(error: WorkerError) -> Self {
        RunError::Worker(error).into()
    }
}

/// The record and the accounts of a run under way.
pub(super) struct Record {
    pub(super) run: u32,
    host: Arc<dyn Host>,
    pub(super) limits: Limits,
    started: Instant,
    logs: Vec<String>,
    log_bytes: u64,
    logs_omitted: u32,
    /// The latest values of `progress`, and the time when the host was last given one.
    progress: VecDeque<Box<RawValue>>,
    passed_on: Option<Instant>,
    calls: Vec<CallRecord>,
    /// The host calls of the worker, by message id.
    asked: Vec<Asked>,
    open: u32,
    /// Those of them that are questions about a tool.
    open_questions: u32,
    /// The worker has reported its facts about the script.
    planned: bool,
    /// The host's judgement, until it is there: nothing else of the worker is looked at before.
    pub(super) judging: Option<Judging>,
    warnings: Vec<PlanWarning>,
    /// Warnings for a result that is null.
    unreturned: Vec<PlanWarning>,
    /// The host refused the plan: nothing that the worker asks for is done any more.
    refusal: Option<PlanRefusal>,
    /// The host ended the run with the answer to a call.
    pub(super) ended: Option<RunError>,
    /// Place of the call for which the plan was refused.
    refused_at: Option<u32>,
    /// Memory that logs, records and the inputs of open calls take, in bytes.
    pub(super) memory: u64,
    window: Instant,
    in_window: u32,
    /// The journal that it goes through again, and the one that it writes.
    pub(super) journaled: Journaled<Answering>,
}

/// A host call of the worker.
struct Asked {
    /// Its record; `None` for `getTool`.
    call: Option<usize>,
    /// Memory that its input takes while it is open, in bytes.
    memory: u64,
}

impl Record {
    pub(super) fn new(
        run: u32,
        limits: Limits,
        host: Arc<dyn Host>,
        replay: Option<Arc<Replay>>,
        has_journal: bool,
    ) -> Self {
        let started = Instant::now();
        Self {
            run,
            host,
            limits,
            started,
            logs: Vec::new(),
            log_bytes: 0,
            logs_omitted: 0,
            progress: VecDeque::new(),
            passed_on: None,
            calls: Vec::new(),
            asked: Vec::new(),
            open: 0,
            open_questions: 0,
            planned: false,
            judging: None,
            warnings: Vec::new(),
            unreturned: Vec::new(),
            refusal: None,
            ended: None,
            refused_at: None,
            memory: 0,
            window: started,
            in_window: 0,
            journaled: Journaled::new(replay, has_journal),
        }
    }

    pub(super) fn elapsed_ms(&self) -> f64 {
        (self.journaled.before + self.started.elapsed()).as_secs_f64() * 1_000.0
    }

    pub(super) fn refuse(&self, error: FrameError) -> RunEnd {
        match error {
            FrameError::TooLarge => WorkerError::MessageTooLarge(self.limits.message_bytes),
            FrameError::Malformed => WorkerError::MessageInvalid,
        }
        .into()
    }

    /// Acts on one frame. Returns the run's result when it was the last.
    pub(super) fn take(
        &mut self,
        frame: &Frame<'_>,
        host: &Arc<dyn Host>,
        calls: &mut Calls,
    ) -> Result<Option<RunResult>, RunEnd> {
        let invalid = || RunEnd::from(WorkerError::MessageInvalid);
        if frame.run != self.run {
            return Err(invalid());
        }
        match frame.kind {
            MessageKind::Plan => {
                self.plan(frame, host)?;
                Ok(None)
            }
            MessageKind::Call
            | MessageKind::CallPages
            | MessageKind::Content
            | MessageKind::GetTool
            | MessageKind::Log
            | MessageKind::Progress
                if self.refusal.is_some() =>
            {
                self.count_message()?;
                Ok(None)
            }
            MessageKind::Call | MessageKind::CallPages | MessageKind::Content | MessageKind::GetTool => {
                self.ask(frame, host, calls)?;
                Ok(None)
            }
            MessageKind::Idle => {
                self.idle(frame.id);
                Ok(None)
            }
            MessageKind::Log if frame.id > 0 => {
                self.logs_omitted = frame.id;
                Ok(None)
            }
            MessageKind::Progress => {
                calls.answering.extend(self.keep_progress(frame.body, host)?);
                Ok(None)
            }
            MessageKind::Log => {
                self.log_bytes += frame.body.len() as u64;
                if self.logs.len() > self.limits.log_lines as usize {
                    return Err(WorkerError::MessageFlood(self.limits.messages_per_second).into());
                }
                if self.log_bytes > self.limits.log_bytes + FRAME_SLACK {
                    return Err(WorkerError::MessageTooLarge(self.limits.log_bytes).into());
                }
                self.memory += LINE_BYTES + frame.body.len() as u64;
                self.check_host(0)?;
                self.logs.push(frame.body.to_owned());
                Ok(None)
            }
            MessageKind::Done => {
                if frame.head.len() > MAX_ENDING {
                    return Err(WorkerError::MessageTooLarge(MAX_ENDING as u64).into());
                }
                let head: Result<(), RunError> = serde_json::from_str(frame.head).map_err(|_| invalid())?;
                if let Some(refusal) = self.refusal.take()
                    && !matches!(head, Err(RunError::SyntaxError { .. }))
                {
                    return Ok(Some(Err(self.refused(refusal))));
                }
                if self.journaled.suspending {
                    return Ok(Some(Err(RunError::Suspended)));
                }
                let ran_out = matches!(head, Err(RunError::Timeout { .. } | RunError::Worker(_)));
                if let Some(diverged) = self.journaled.unfinished()
                    && !ran_out
                {
                    return Ok(Some(Err(diverged)));
                }
                match head {
                    Ok(()) if self.ended.is_some() => Ok(self.ended.take().map(Err)),
                    Ok(()) => self.value(frame.body).map(|value| Some(Ok(value))),
                    Err(error) => self.error(error).map(|error| Some(Err(error))),
                }
            }
            MessageKind::Ready
            | MessageKind::Run
            | MessageKind::Answer
            | MessageKind::Failure
            | MessageKind::Ping
            | MessageKind::Stop => Err(invalid()),
        }
    }

    /// Has the host judge the facts of the worker.
    fn plan(&mut self, frame: &Frame<'_>, host: &Arc<dyn Host>) -> Result<(), RunEnd> {
        if std::mem::replace(&mut self.planned, true) || !self.is_untouched() {
            return Err(WorkerError::MessageInvalid.into());
        }
        if frame.body.len() > PLAN_BYTES {
            return Err(WorkerError::MessageTooLarge(PLAN_BYTES as u64).into());
        }
        // Facts take a few times the memory of their text.
        self.check_host(FACTS_WEIGHT * frame.body.len() as u64)?;
        let facts: PlanFacts =
            read_json(frame.body).map_err(|_| RunEnd::from(WorkerError::MessageInvalid))?;
        for note in facts.notes.iter().take(MAX_WARNINGS) {
            let warning = PlanWarning { at: note.at, message: note.message() };
            match note.mistake {
                Mistake::NotReturned => self.unreturned.push(warning),
                _ => self.warnings.push(warning),
            }
        }
        let host = Arc::clone(host);
        let verdict = async move { host.check_plan(facts).await };
        self.judging = Some(Box::pin(AssertUnwindSafe(verdict).catch_unwind().map(Result::ok)));
        Ok(())
    }

    /// Takes the host's verdict. Returns `true` when it refuses the plan.
    pub(super) fn judged(&mut self, verdict: Option<PlanVerdict>) -> Result<bool, RunEnd> {
        self.judging = None;
        let Some(PlanVerdict { warnings, refusal }) = verdict else {
            let message = "the host failed while it checked the plan";
            return Err(RunError::runtime(names::HOST, message).into());
        };
        self.warnings.extend(warnings);
        // A plan that has begun is not refused any more.
        self.refusal = refusal.filter(|_| !self.journaled.has_past());
        Ok(self.refusal.is_some())
    }

    /// Ends the run when its memory in the host, what the host keeps for it, and `more` bytes that are on their way, are over its limit.
    pub(super) fn check_host(&self, more: u64) -> Result<(), RunEnd> {
        let own = self.memory.saturating_add(more);
        let held = self.host.held_bytes(own);
        if own.saturating_add(held) <= self.limits.host_bytes {
            return Ok(());
        }
        if held == u64::MAX {
            let message = "the gateway is short of memory, and other scripts of this caller, or of all, have what there is for inputs and answers. What was \
                called before may have been done. Hold less at once, or try again later";
            return Err(RunError::runtime(names::HOST_LIMIT, message).into());
        }
        let message = format!(
            "host limit reached: inputs, answers, console lines and the result of the script may take {} bytes in the host",
            self.limits.host_bytes
        );
        Err(RunError::runtime(names::HOST_LIMIT, message).into())
    }

    /// Counts a host call, which are limited per second. Console lines are limited in number and size.
    fn count_message(&mut self) -> Result<(), RunEnd> {
        if self.window.elapsed() >= Duration::from_secs(1) {
            self.window = Instant::now();
            self.in_window = 0;
        }
        self.in_window += 1;
        if self.in_window > self.limits.messages_per_second {
            return Err(WorkerError::MessageFlood(self.limits.messages_per_second).into());
        }
        Ok(())
    }

    fn open_call(&mut self, frame: &Frame<'_>) -> Result<(), RunEnd> {
        // The worker counts the same limits and ends the run itself; one that does not is not to be trusted.
        let too_many =
            frame.kind != MessageKind::GetTool && self.calls.len() >= self.limits.max_tool_calls as usize;
        if frame.id as usize != self.asked.len() || frame.head.len() > NAME_BYTES || too_many {
            return Err(WorkerError::MessageInvalid.into());
        }
        if (frame.head.len() + frame.body.len()) as u64 > self.limits.message_bytes {
            return Err(WorkerError::MessageTooLarge(self.limits.message_bytes).into());
        }
        self.open += 1;
        if self.open > self.limits.max_pending_calls {
            return Err(WorkerError::TooManyPendingCalls(self.limits.max_pending_calls).into());
        }
        if frame.kind == MessageKind::GetTool {
            self.open_questions += 1;
            self.memory += ASKED_BYTES;
            self.asked.push(Asked { call: None, memory: 0 });
            return Ok(());
        }
        self.memory += RECORD_BYTES + frame.head.len() as u64;
        self.asked.push(Asked { call: Some(self.calls.len()), memory: 0 });
        self.calls.push(CallRecord {
            name: frame.head.to_owned(),
            status: CallStatus::Open,
            code: None,
            started_ms: self.elapsed_ms(),
            duration_ms: 0.0,
        });
        Ok(())
    }

    /// Keeps a value of `progress`, and returns what passes it on to the host if that is not done too often.
    fn keep_progress(&mut self, json: &str, host: &Arc<dyn Host>) -> Result<Option<Answering>, RunEnd> {
        let invalid = || RunEnd::from(WorkerError::MessageInvalid);
        if json.len() > PROGRESS_BYTES || weight(json).is_err() {
            return Err(invalid());
        }
        let value = RawValue::from_string(json.to_owned()).map_err(|_| invalid())?;
        self.memory += json.len() as u64;
        self.progress.push_back(value.clone());
        let mut bytes: usize = self.progress.iter().map(|value| value.get().len()).sum();
        while bytes > PROGRESS_BYTES || self.progress.len() > PROGRESS_VALUES {
            let Some(oldest) = self.progress.pop_front() else { break };
            bytes -= oldest.get().len();
            self.memory -= oldest.get().len() as u64;
        }
        self.check_host(0)?;
        if self.journaled.is_in_the_past() || self.passed_on.is_some_and(|at| at.elapsed() < PROGRESS_PAUSE) {
            return Ok(None);
        }
        self.passed_on = Some(Instant::now());
        let host = Arc::clone(host);
        // A host that panics here loses a message about progress and nothing else.
        let taken = AssertUnwindSafe(async move { host.progress(value).await }).catch_unwind();
        Ok(Some(Box::pin(taken.map(|_| Answer::Taken))))
    }

    /// Has the host answer a call.
    fn answer(
        &self,
        frame: &Frame<'_>,
        function: HostFunction,
        unreadable: Option<Unreadable>,
        input: Box<RawValue>,
        resumed: Option<Resumed>,
        host: &Arc<dyn Host>,
    ) -> Result<Answering, RunEnd> {
        let (id, host, name) = (frame.id, Arc::clone(host), frame.head.to_owned());
        let is_call = function != HostFunction::GetTool;
        if let Some(why) = unreadable.filter(|_| is_call) {
            let message = format!("the input cannot be read: {why}");
            let failure =
                ToolFailure { code: "VALIDATION_ERROR".to_owned(), message, ..ToolFailure::default() };
            return Ok(Box::pin(async move { Answer::To { id, is_call, answer: Some(Err(failure)) } }));
        }
        let index = u32::try_from(self.calls.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let answer: HostAnswer = match function {
            HostFunction::GetTool => {
                Box::pin(async move { host.get_tool(name).await.map(ToolAnswer::Value) })
            }
            HostFunction::Content => {
                let request: ContentRequest = serde_json::from_str(input.get())
                    .map_err(|_| RunEnd::from(WorkerError::MessageInvalid))?;
                Box::pin(async move { host.content(request, index, resumed).await })
            }
            HostFunction::CallTool => {
                let call = ToolCall { index, name, input, paginate: None, resumed };
                Box::pin(async move { host.call_tool(call).await })
            }
            HostFunction::CallPages => {
                let PagedInput { input, max } = serde_json::from_str(input.get())
                    .map_err(|_| RunEnd::from(WorkerError::MessageInvalid))?;
                let call = ToolCall { index, name, input, paginate: Some(max), resumed };
                Box::pin(async move { host.call_tool(call).await })
            }
        };
        let answer = AssertUnwindSafe(answer).catch_unwind();
        Ok(Box::pin(answer.map(move |got| Answer::To { id, is_call, answer: got.ok() })))
    }

    /// Closes an open call at `at_ms`.
    pub(super) fn close(&mut self, id: u32, at_ms: f64, status: CallStatus, code: Option<String>) {
        self.open = self.open.saturating_sub(1);
        self.journaled.at_host.remove(&id);
        // The script has something to do.
        self.journaled.is_idle = false;
        self.journaled.pinged = None;
        let Some(asked) = self.asked.get_mut(id as usize) else { return };
        if asked.call.is_none() {
            self.open_questions = self.open_questions.saturating_sub(1);
        }
        self.memory -= std::mem::take(&mut asked.memory);
        if let Some(call) = asked.call.and_then(|at| self.calls.get_mut(at)) {
            call.status = status;
            call.code = code;
            call.duration_ms = at_ms - call.started_ms;
        }
    }

    /// Number of host calls that the script has made.
    pub(super) fn asked(&self) -> usize {
        self.asked.len()
    }

    /// Returns true when the worker has asked for nothing and written nothing.
    pub(super) fn is_untouched(&self) -> bool {
        self.asked.is_empty() && self.logs.is_empty() && self.progress.is_empty()
    }
}

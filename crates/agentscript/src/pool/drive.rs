//! One run seen from the pool: sends it to its worker, answers its host calls, keeps its record, judges every message.
//!
//! A worker that runs a hostile script is itself hostile: whatever it says is checked here, and a message it may not send ends
//! it.

use std::{
    future::{Future, pending},
    io,
    os::unix::process::ExitStatusExt,
    panic::AssertUnwindSafe,
    pin::Pin,
    process::ExitStatus,
    sync::Arc,
    time::{Duration, Instant, UNIX_EPOCH},
};

use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
use serde_json::value::RawValue;
use tokio::{io::AsyncReadExt, net::UnixStream};
use tokio_util::sync::CancellationToken;

use super::{Inputs, Lease, RunRequest};
use crate::{
    engine::{Ending, Failure, Settings, names},
    excerpt::{self, MESSAGE_BYTES, NAME_BYTES},
    host::{Host, ToolCall, ToolFailure},
    limits::Limits,
    outcome::{CallRecord, CallStatus, Outcome, Verdict, WorkerError},
    protocol::{self, Frame, FrameError, Kind},
};

/// Room for what a frame carries beside its limited part.
const FRAME_SLACK: u64 = 64 * 1024;
/// Bytes read at once.
const READ: usize = 16 * 1024;
/// Longest head of a worker's last message, in bytes: a message and names as the worker cuts them, each byte escaped.
const MAX_ENDING: usize = 8 * (MESSAGE_BYTES + 3 * NAME_BYTES);
/// Memory of a call's record beside its name, in bytes.
const RECORD_BYTES: u64 = 192;
/// Memory of a question that has no record, in bytes.
const ASKED_BYTES: u64 = 16;
/// Memory of a console line beside its text, in bytes.
const LINE_BYTES: u64 = 48;
/// Open calls that are named when time runs out.
const MOST_NAMED: usize = 10;

type Answer = (u32, bool, Option<Result<Box<RawValue>, ToolFailure>>);
type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Why the worker must go, or what the run ended in.
enum Stop {
    /// The worker said how the run ended and can serve another.
    Ended(Verdict),
    /// The run is over for a reason of the pool's; the worker goes.
    Kill(Verdict),
    /// The worker closed its end.
    Died,
}

impl From<WorkerError> for Stop {
    fn from(error: WorkerError) -> Self {
        Self::Kill(Verdict::Worker(error))
    }
}

/// Record and accounts of a run under way.
struct Record {
    run: u32,
    limits: Limits,
    started: Instant,
    logs: Vec<String>,
    log_bytes: u64,
    calls: Vec<CallRecord>,
    /// The questions of the worker, by message id.
    asked: Vec<Asked>,
    open: u32,
    /// Memory that logs, records and the inputs of open calls take, in bytes.
    held: u64,
    window: Instant,
    in_window: u32,
}

/// How driving a run ended.
pub(super) enum Ended {
    Outcome(Outcome),
    /// The worker was killed from outside before the script did anything: another one may run it.
    KilledBefore(Outcome),
}

/// What ends a process without asking it.
const SIGKILL: i32 = 9;

/// A host call of the worker's.
struct Asked {
    /// Its record; `None` for `getTool`.
    call: Option<usize>,
    /// Memory its input takes while it is open, in bytes.
    held: u64,
}

/// Runs `request` on the leased worker.
pub(super) async fn drive(
    lease: &mut Lease<'_>,
    request: &RunRequest,
    inputs: Inputs,
    host: &Arc<dyn Host>,
    cancel: &CancellationToken,
) -> Ended {
    let run = lease.worker.as_ref().map_or(0, |worker| worker.runs).wrapping_add(1);
    let mut record = Record::new(run, request.limits.clone());
    let stop = match talk(lease, request, inputs, host, cancel, &mut record).await {
        Ok(never) => match never {},
        Err(stop) => stop,
    };
    let verdict = match stop {
        Stop::Ended(verdict) => {
            lease.give_back();
            verdict
        }
        Stop::Kill(verdict) => {
            lease.bury().await;
            verdict
        }
        Stop::Died => {
            let exit = lease.bury().await;
            let verdict = Verdict::Worker(WorkerError::Crashed(how(exit)));
            // No script can send this signal, and this one has done nothing yet.
            if exit.and_then(|status| status.signal()) == Some(SIGKILL)
                && record.asked.is_empty()
                && record.logs.is_empty()
            {
                return Ended::KilledBefore(record.finish(verdict, inputs));
            }
            verdict
        }
    };
    Ended::Outcome(record.finish(verdict, inputs))
}

/// Hears `said` as all that a worker says during its first run; the outcome, and the frames it would be sent. For the fuzz target.
pub(crate) fn hear(said: &[u8], limits: Limits, host: &Arc<dyn Host>) -> (Outcome, Vec<u8>) {
    let mut record = Record::new(1, limits);
    let (mut input, mut output, mut answering) = (Vec::new(), Vec::new(), FuturesUnordered::new());
    let mut hear_all = || -> Result<Never, Stop> {
        for some in said.chunks(100) {
            input.extend_from_slice(some);
            act(&mut input, &mut record, host, &mut answering, true)?;
            while let Some(Some((id, is_call, answer))) = answering.next().now_or_never() {
                put_answer(&mut output, &mut record, id, is_call, answer)?;
            }
        }
        Err(Stop::Died)
    };
    let verdict = match hear_all() {
        Ok(never) => match never {},
        Err(Stop::Ended(verdict) | Stop::Kill(verdict)) => verdict,
        Err(Stop::Died) => Verdict::Worker(WorkerError::Crashed(how(None))),
    };
    (record.finish(verdict, Inputs { seed: 0, started_at: UNIX_EPOCH }), output)
}

/// How a process ended, in words.
fn how(status: Option<ExitStatus>) -> String {
    let Some(status) = status else { return "it closed its connection".to_owned() };
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "it ended".to_owned(),
    }
}

enum Never {}

async fn talk(
    lease: &Lease<'_>,
    request: &RunRequest,
    inputs: Inputs,
    host: &Arc<dyn Host>,
    cancel: &CancellationToken,
    record: &mut Record,
) -> Result<Never, Stop> {
    let Some(worker) = lease.worker.as_ref() else { return Err(Stop::Died) };
    let mut stream = worker.stream.try_clone().and_then(UnixStream::from_std).map_err(|_| Stop::Died)?;
    let (mut from, to) = stream.split();
    let mut output = Vec::new();
    let mut sent = 0_usize;
    let mut input = Vec::with_capacity(READ);
    let mut answering: FuturesUnordered<Answering> = FuturesUnordered::new();
    put_run(&mut output, record, request, inputs)?;
    record.check_host(output.len() as u64)?;
    let timeout = record.limits.timeout;
    let grace = lease.watchdog_extra();
    let alarm = tokio::time::sleep(timeout);
    tokio::pin!(alarm);
    let mut stopping = false;
    loop {
        // Most writes fit the socket's buffer: try before asking to be told.
        while sent < output.len() {
            match to.try_write(&output[sent..]) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Err(Stop::Died),
            }
        }
        if sent == output.len() {
            output.clear();
            sent = 0;
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(WorkerError::Aborted.into()),
            () = lease.pool.disposed.cancelled() => return Err(WorkerError::Disposed.into()),
            read = from.read_buf(&mut input) => {
                if read.map_err(|_| Stop::Died)? == 0 {
                    return Err(Stop::Died);
                }
                act(&mut input, record, host, &mut answering, output.is_empty())?;
            }
            Some((id, is_call, answer)) = answering.next(), if !answering.is_empty() => {
                put_answer(&mut output, record, id, is_call, answer)?;
                // Answers that are ready together travel together.
                while let Some(Some((id, is_call, answer))) = answering.next().now_or_never() {
                    put_answer(&mut output, record, id, is_call, answer)?;
                }
            }
            () = async { if output.is_empty() { pending().await } else { let _ = to.writable().await; } } => {}
            () = &mut alarm => {
                if stopping {
                    return Err(WorkerError::Timeout(timeout + grace).into());
                }
                stopping = true;
                protocol::put(&mut output, Kind::Stop, record.run, 0, "", &[]);
                alarm.as_mut().reset(tokio::time::Instant::now() + grace);
            }
        }
    }
}

fn put_run(output: &mut Vec<u8>, record: &Record, request: &RunRequest, inputs: Inputs) -> Result<(), Stop> {
    let now_ms = inputs.started_at.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_millis() as f64);
    let settings = Settings {
        limits: record.limits.clone(),
        policy: request.policy.clone(),
        seed: inputs.seed,
        now_ms,
        script_len: request.source.len(),
    };
    let head = serde_json::to_string(&settings).map_err(|_| Stop::from(WorkerError::MessageInvalid))?;
    let context = request.context.as_ref().map_or("{}", |context| context.get());
    protocol::put(output, Kind::Run, record.run, 0, &head, &[&request.source, context]);
    Ok(())
}

/// Acts on every whole frame that has arrived.
fn act(
    input: &mut Vec<u8>,
    record: &mut Record,
    host: &Arc<dyn Host>,
    answering: &mut FuturesUnordered<Answering>,
    written: bool,
) -> Result<(), Stop> {
    let largest = record.limits.message_bytes.max(record.limits.result_bytes).max(record.limits.log_bytes)
        + FRAME_SLACK;
    let largest = usize::try_from(largest).unwrap_or(usize::MAX);
    let mut taken = 0;
    while let Some(len) =
        protocol::frame_len(&input[taken..], largest).map_err(|error| record.refuse(error))?
    {
        let Some(bytes) = input.get(taken..taken + len) else {
            input.reserve(len);
            break;
        };
        let frame = protocol::parse(bytes).map_err(|error| record.refuse(error))?;
        taken += len;
        if let Some(verdict) = record.take(&frame, host, answering)? {
            // A worker with more to say, or not yet told everything, is not at the start of its loop.
            let clean = taken == input.len() && written;
            return Err(if clean { Stop::Ended(verdict) } else { Stop::Kill(verdict) });
        }
    }
    input.drain(..taken);
    record.check_host(input.len() as u64)
}

fn put_answer(
    output: &mut Vec<u8>,
    record: &mut Record,
    id: u32,
    is_call: bool,
    answer: Option<Result<Box<RawValue>, ToolFailure>>,
) -> Result<(), Stop> {
    let Some(answer) = answer else {
        record.close(id, CallStatus::Error, Some("HOST_PANIC".to_owned()));
        return Err(Stop::Kill(Verdict::RuntimeError {
            name: names::HOST.to_owned(),
            message: format!(
                "the host failed while it answered {}",
                if is_call { "callTool" } else { "getTool" }
            ),
            location: None,
        }));
    };
    let elapsed = format!("{}", record.elapsed_ms().floor());
    match answer {
        Ok(value) => {
            record.close(id, CallStatus::Ok, None);
            if value.get().len() as u64 > record.limits.message_bytes {
                return Err(WorkerError::MessageTooLarge(record.limits.message_bytes).into());
            }
            record.check_host((output.len() + value.get().len()) as u64)?;
            protocol::put(output, Kind::Answer, record.run, id, &elapsed, &[value.get()]);
        }
        Err(ToolFailure { code, message, ends_run }) => {
            let (code, message) =
                (excerpt::name(&code).into_owned(), excerpt::message(&message).into_owned());
            record.held += code.len() as u64;
            record.close(id, CallStatus::Error, Some(code.clone()));
            let failure = Failure { code, message, ends_run };
            let head =
                serde_json::to_string(&failure).map_err(|_| Stop::from(WorkerError::MessageInvalid))?;
            record.check_host((output.len() + head.len()) as u64)?;
            protocol::put(output, Kind::Failure, record.run, id, &head, &[&elapsed]);
        }
    }
    Ok(())
}

impl Record {
    fn new(run: u32, limits: Limits) -> Self {
        let started = Instant::now();
        Self {
            run,
            limits,
            started,
            logs: Vec::new(),
            log_bytes: 0,
            calls: Vec::new(),
            asked: Vec::new(),
            open: 0,
            held: 0,
            window: started,
            in_window: 0,
        }
    }

    fn elapsed_ms(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * 1_000.0
    }

    fn refuse(&self, error: FrameError) -> Stop {
        match error {
            FrameError::TooLarge => WorkerError::MessageTooLarge(self.limits.message_bytes),
            FrameError::Malformed => WorkerError::MessageInvalid,
        }
        .into()
    }

    /// Acts on one frame; gives the verdict when it was the last.
    fn take(
        &mut self,
        frame: &Frame<'_>,
        host: &Arc<dyn Host>,
        answering: &mut FuturesUnordered<Answering>,
    ) -> Result<Option<Verdict>, Stop> {
        let invalid = || Stop::from(WorkerError::MessageInvalid);
        if frame.run != self.run {
            return Err(invalid());
        }
        match frame.kind {
            Kind::Call | Kind::GetTool => {
                self.count_message()?;
                self.open_call(frame)?;
                answering.push(self.answer(frame, host)?);
                self.check_host(0)?;
                Ok(None)
            }
            Kind::Log => {
                self.log_bytes += frame.body.len() as u64;
                if self.logs.len() > self.limits.log_lines as usize {
                    return Err(WorkerError::MessageFlood(self.limits.messages_per_second).into());
                }
                if self.log_bytes > self.limits.log_bytes + FRAME_SLACK {
                    return Err(WorkerError::MessageTooLarge(self.limits.log_bytes).into());
                }
                self.held += LINE_BYTES + frame.body.len() as u64;
                self.check_host(0)?;
                self.logs.push(frame.body.to_owned());
                Ok(None)
            }
            Kind::Done => {
                if frame.head.len() > MAX_ENDING {
                    return Err(WorkerError::MessageTooLarge(MAX_ENDING as u64).into());
                }
                let ending: Ending = serde_json::from_str(frame.head).map_err(|_| invalid())?;
                self.verdict(ending, frame.body).map(Some)
            }
            Kind::Ready | Kind::Run | Kind::Answer | Kind::Failure | Kind::Stop => Err(invalid()),
        }
    }

    /// Ends the run when what it holds in the host, and `more` bytes that are on their way, are over its limit.
    fn check_host(&self, more: u64) -> Result<(), Stop> {
        if self.held.saturating_add(more) <= self.limits.host_bytes {
            return Ok(());
        }
        Err(Stop::Kill(Verdict::RuntimeError {
            name: names::HOST_LIMIT.to_owned(),
            message: format!(
                "host limit reached: inputs, answers, console lines and the result of the script may take {} bytes in the host",
                self.limits.host_bytes
            ),
            location: None,
        }))
    }

    /// Host calls are limited per second; console lines by their number and size.
    fn count_message(&mut self) -> Result<(), Stop> {
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

    fn open_call(&mut self, frame: &Frame<'_>) -> Result<(), Stop> {
        // The worker counts the same limits and ends the run itself; one that does not is not to be trusted.
        let too_many = frame.kind == Kind::Call && self.calls.len() >= self.limits.max_tool_calls as usize;
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
        if frame.kind == Kind::GetTool {
            self.held += ASKED_BYTES;
            self.asked.push(Asked { call: None, held: 0 });
            return Ok(());
        }
        self.held += RECORD_BYTES + frame.head.len() as u64;
        self.asked.push(Asked { call: Some(self.calls.len()), held: 0 });
        self.calls.push(CallRecord {
            name: frame.head.to_owned(),
            status: CallStatus::Open,
            code: None,
            started_ms: self.elapsed_ms(),
            duration_ms: 0.0,
        });
        Ok(())
    }

    fn answer(&mut self, frame: &Frame<'_>, host: &Arc<dyn Host>) -> Result<Answering, Stop> {
        let (id, host, name) = (frame.id, Arc::clone(host), frame.head.to_owned());
        if frame.kind == Kind::GetTool {
            let answer = async move { host.get_tool(name).await };
            return Ok(Box::pin(
                AssertUnwindSafe(answer).catch_unwind().map(move |got| (id, false, got.ok())),
            ));
        }
        let Some(weight) = protocol::weight(frame.body) else {
            let message = format!("the input is nested deeper than {} levels", protocol::MAX_DEPTH);
            let failure = ToolFailure { code: "VALIDATION_ERROR".to_owned(), message, ends_run: false };
            return Ok(Box::pin(async move { (id, true, Some(Err(failure))) }));
        };
        if let Some(asked) = self.asked.last_mut() {
            asked.held = weight;
            self.held += weight;
        }
        self.check_host(0)?;
        let input = RawValue::from_string(frame.body.to_owned())
            .map_err(|_| Stop::from(WorkerError::MessageInvalid))?;
        let index = u32::try_from(self.calls.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let answer = async move { host.call_tool(ToolCall { index, name, input }).await };
        Ok(Box::pin(AssertUnwindSafe(answer).catch_unwind().map(move |got| (id, true, got.ok()))))
    }

    fn close(&mut self, id: u32, status: CallStatus, code: Option<String>) {
        self.open = self.open.saturating_sub(1);
        let now = self.elapsed_ms();
        let Some(asked) = self.asked.get_mut(id as usize) else { return };
        self.held -= std::mem::take(&mut asked.held);
        if let Some(call) = asked.call.and_then(|at| self.calls.get_mut(at)) {
            call.status = status;
            call.code = code;
            call.duration_ms = now - call.started_ms;
        }
    }

    fn verdict(&self, ending: Ending, result: &str) -> Result<Verdict, Stop> {
        Ok(match ending {
            Ending::Ok => {
                if result.len() as u64 > self.limits.result_bytes {
                    return Err(WorkerError::MessageTooLarge(self.limits.result_bytes).into());
                }
                let weight = protocol::weight(result).ok_or(Stop::from(WorkerError::MessageInvalid))?;
                self.check_host(weight)?;
                let value = RawValue::from_string(result.to_owned());
                Verdict::Ok(value.map_err(|_| Stop::from(WorkerError::MessageInvalid))?)
            }
            Ending::Syntax { message, location } => Verdict::SyntaxError { message, location },
            Ending::Illegal { kind, message, location } => Verdict::IllegalAccess { kind, message, location },
            Ending::Runtime { name, message, location, .. } => {
                Verdict::RuntimeError { name, message, location }
            }
            Ending::Tool { tool_name, message, code } => Verdict::ToolError { tool_name, message, code },
            Ending::Timeout => Verdict::Timeout { message: self.timeout_message() },
            Ending::Memory(_) => Verdict::Worker(WorkerError::MemoryExceeded(self.limits.memory_bytes)),
            Ending::PendingCalls(_) => {
                Verdict::Worker(WorkerError::TooManyPendingCalls(self.limits.max_pending_calls))
            }
            Ending::MessageTooLarge(_) => {
                Verdict::Worker(WorkerError::MessageTooLarge(self.limits.message_bytes))
            }
        })
    }

    fn timeout_message(&self) -> String {
        let open = || self.calls.iter().filter(|call| call.status == CallStatus::Open);
        let names: Vec<&str> = open().take(MOST_NAMED).map(|call| call.name.as_str()).collect();
        let more = match open().count() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let limit = self.limits.timeout.as_millis();
        if names.is_empty() {
            format!("time limit reached: the script did not finish within {limit} ms; no tool call was open")
        } else {
            format!(
                "time limit reached: the script did not finish within {limit} ms; still open: {}{more}",
                names.join(", ")
            )
        }
    }

    fn finish(mut self, verdict: Verdict, inputs: Inputs) -> Outcome {
        let now = self.elapsed_ms();
        for call in self.calls.iter_mut().filter(|call| call.status == CallStatus::Open) {
            call.duration_ms = now - call.started_ms;
        }
        Outcome {
            verdict,
            logs: self.logs,
            calls: self.calls,
            duration: self.started.elapsed(),
            inputs: Some(inputs),
        }
    }
}

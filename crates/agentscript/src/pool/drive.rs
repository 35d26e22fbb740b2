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
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
use serde_json::value::RawValue;
use tokio::{io::AsyncReadExt, net::UnixStream};
use tokio_util::sync::CancellationToken;

use super::{Lease, RunRequest};
use crate::{
    engine::{Ending, Failure, Settings, names},
    host::{Host, ToolCall, ToolFailure},
    limits::Limits,
    outcome::{CallRecord, CallStatus, Outcome, Verdict, WorkerError},
    protocol::{self, Frame, FrameError, Kind},
};

/// Room for what a frame carries beside its limited part.
const FRAME_SLACK: u64 = 64 * 1024;
/// Bytes read at once.
const READ: usize = 16 * 1024;
/// Longest message of an error that a worker may report, in bytes.
const MAX_ERROR_TEXT: usize = 1024 * 1024;

type Answer = (u32, bool, Option<Result<Box<RawValue>, ToolFailure>>);
type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A first seed that nobody can guess.
pub(super) fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0_u8)
}

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
    /// For each message id the call it belongs to; `None` for `getTool`.
    ids: Vec<Option<usize>>,
    open: u32,
    window: Instant,
    in_window: u32,
}

/// Runs `request` on the leased worker.
pub(super) async fn drive(
    lease: &mut Lease<'_>,
    request: RunRequest,
    host: Arc<dyn Host>,
    seed: u64,
    cancel: &CancellationToken,
) -> Outcome {
    let started = Instant::now();
    let mut record = Record {
        run: lease.worker.as_ref().map_or(0, |worker| worker.runs).wrapping_add(1),
        limits: request.limits.clone(),
        started,
        logs: Vec::new(),
        log_bytes: 0,
        calls: Vec::new(),
        ids: Vec::new(),
        open: 0,
        window: started,
        in_window: 0,
    };
    let stop = match talk(lease, &request, &host, seed, cancel, &mut record).await {
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
        Stop::Died => Verdict::Worker(WorkerError::Crashed(how(lease.bury().await))),
    };
    record.finish(verdict)
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
    host: &Arc<dyn Host>,
    seed: u64,
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
    put_run(&mut output, record, request, seed)?;
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

fn put_run(output: &mut Vec<u8>, record: &Record, request: &RunRequest, seed: u64) -> Result<(), Stop> {
    let start = request.started_at.unwrap_or_else(SystemTime::now);
    let now_ms = start.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_millis() as f64);
    let settings = Settings {
        limits: record.limits.clone(),
        policy: request.policy.clone(),
        seed,
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
    Ok(())
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
            protocol::put(output, Kind::Answer, record.run, id, &elapsed, &[value.get()]);
        }
        Err(ToolFailure { code, message, ends_run }) => {
            record.close(id, CallStatus::Error, Some(code.clone()));
            let failure = Failure { code, message, ends_run };
            let head =
                serde_json::to_string(&failure).map_err(|_| Stop::from(WorkerError::MessageInvalid))?;
            if head.len() as u64 > record.limits.message_bytes {
                return Err(WorkerError::MessageTooLarge(record.limits.message_bytes).into());
            }
            protocol::put(output, Kind::Failure, record.run, id, &head, &[&elapsed]);
        }
    }
    Ok(())
}

impl Record {
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
                self.logs.push(frame.body.to_owned());
                Ok(None)
            }
            Kind::Done => {
                if frame.head.len() > MAX_ERROR_TEXT {
                    return Err(WorkerError::MessageTooLarge(MAX_ERROR_TEXT as u64).into());
                }
                let ending: Ending = serde_json::from_str(frame.head).map_err(|_| invalid())?;
                self.verdict(ending, frame.body).map(Some)
            }
            Kind::Ready | Kind::Run | Kind::Answer | Kind::Failure | Kind::Stop => Err(invalid()),
        }
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
        if frame.id as usize != self.ids.len() || too_many {
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
            self.ids.push(None);
            return Ok(());
        }
        self.ids.push(Some(self.calls.len()));
        self.calls.push(CallRecord {
            name: frame.head.to_owned(),
            status: CallStatus::Open,
            code: None,
            started_ms: self.elapsed_ms(),
            duration_ms: 0.0,
        });
        Ok(())
    }

    fn answer(&self, frame: &Frame<'_>, host: &Arc<dyn Host>) -> Result<Answering, Stop> {
        let (id, host, name) = (frame.id, Arc::clone(host), frame.head.to_owned());
        if frame.kind == Kind::GetTool {
            let answer = async move { host.get_tool(name).await };
            return Ok(Box::pin(
                AssertUnwindSafe(answer).catch_unwind().map(move |got| (id, false, got.ok())),
            ));
        }
        if protocol::too_deep(frame.body) {
            let message = format!("the input is nested deeper than {} levels", protocol::MAX_DEPTH);
            let failure = ToolFailure { code: "VALIDATION_ERROR".to_owned(), message, ends_run: false };
            return Ok(Box::pin(async move { (id, true, Some(Err(failure))) }));
        }
        let input = RawValue::from_string(frame.body.to_owned())
            .map_err(|_| Stop::from(WorkerError::MessageInvalid))?;
        let index = u32::try_from(self.calls.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let answer = async move { host.call_tool(ToolCall { index, name, input }).await };
        Ok(Box::pin(AssertUnwindSafe(answer).catch_unwind().map(move |got| (id, true, got.ok()))))
    }

    fn close(&mut self, id: u32, status: CallStatus, code: Option<String>) {
        self.open = self.open.saturating_sub(1);
        let now = self.elapsed_ms();
        if let Some(Some(at)) = self.ids.get(id as usize)
            && let Some(call) = self.calls.get_mut(*at)
        {
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
                match RawValue::from_string(result.to_owned()) {
                    Ok(value) if !protocol::too_deep(result) => Verdict::Ok(value),
                    _ => return Err(WorkerError::MessageInvalid.into()),
                }
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
        let open: Vec<&str> = self
            .calls
            .iter()
            .filter(|call| call.status == CallStatus::Open)
            .map(|call| call.name.as_str())
            .collect();
        let limit = self.limits.timeout.as_millis();
        if open.is_empty() {
            format!("time limit reached: the script did not finish within {limit} ms; no tool call was open")
        } else {
            format!(
                "time limit reached: the script did not finish within {limit} ms; still open: {}",
                open.join(", ")
            )
        }
    }

    fn finish(mut self, verdict: Verdict) -> Outcome {
        let now = self.elapsed_ms();
        for call in self.calls.iter_mut().filter(|call| call.status == CallStatus::Open) {
            call.duration_ms = now - call.started_ms;
        }
        Outcome { verdict, logs: self.logs, calls: self.calls, duration: self.started.elapsed() }
    }
}

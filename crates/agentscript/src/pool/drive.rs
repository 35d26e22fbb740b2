//! One run seen from the pool: sends it to its worker, reads the worker's messages and answers its host calls.
//!
//! `record` checks every message: a worker that runs a hostile script is itself hostile.

use std::{
    future::pending,
    io,
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    sync::{Arc, atomic::Ordering},
    time::{Duration, UNIX_EPOCH},
};

use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
use serde_json::value::RawValue;
use tokio::{io::AsyncReadExt, net::UnixStream, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    Inputs, Lease, RunRequest,
    answers::{Answer, Answering, Calls, answer_entry, host_failed},
    hold::Hold,
    pause::Pause,
    record::{FRAME_SLACK, Record, RunEnd},
};
use crate::{
    engine::by_host,
    host::{Host, ToolAnswer, ToolFailure},
    journal::JournalEntry,
    limits::Limits,
    messages::RunSettings,
    outcome::{CallStatus, Outcome, RunError, WorkerError},
    plan::PlanVerdict,
    protocol::{self, MessageKind},
};

/// Bytes read at once.
const READ: usize = 16 * 1024;
/// Longest time of a step of the journal that counts as the run's own.
const SLOW: Duration = Duration::from_millis(100);

/// An attempt to run a script on one worker.
pub(super) struct Attempt {
    pub(super) outcome: Outcome,
    /// The worker was killed from outside before the script did anything: another one may run it.
    pub(super) may_retry: bool,
    /// The run gave its worker back while calls are under way; the time since it began.
    pub(super) parked: Option<Duration>,
}

/// Code of a call whose answer is too large to be passed on.
const TOO_LARGE: &str = "MESSAGE_TOO_LARGE";
/// The signal that kills a process.
const SIGKILL: i32 = 9;

/// Runs `request` on the leased worker.
pub(super) async fn drive(
    lease: &mut Lease<'_>,
    request: &RunRequest,
    inputs: Inputs,
    host: &Arc<dyn Host>,
    calls: &mut Calls,
    cancel: &CancellationToken,
) -> Attempt {
    let run = lease.worker.as_ref().map_or(0, |worker| worker.runs).wrapping_add(1);
    let mut record = Record::new(
        run,
        request.limits.clone(),
        Arc::clone(host),
        request.replay.clone(),
        request.journal.is_some(),
    );
    let end = match talk(lease, request, inputs, host, cancel, &mut record, calls).await {
        Ok(never) => match never {},
        Err(end) => end,
    };
    // A script may end with calls that nobody has got to: they are part of what it did.
    if let RunEnd::Finished { result, .. } = &end
        && matches!(result, Ok(_) | Err(RunError::RuntimeError { .. } | RunError::ToolError { .. }))
    {
        let _ = write_journal(&mut record, request, cancel).await;
    }
    let (result, may_retry) = match end {
        RunEnd::Finished { result, reuse_worker: true } => {
            lease.give_back();
            (result, false)
        }
        RunEnd::Finished { result: result @ Err(RunError::Worker(WorkerError::Aborted)), .. } => {
            lease.give_up();
            (result, false)
        }
        RunEnd::Finished { result, reuse_worker: false } => {
            lease.end_worker().await;
            (result, false)
        }
        RunEnd::Disconnected => {
            let exit = lease.end_worker().await;
            // No script can send this signal, and this one has done nothing yet.
            let killed = exit.and_then(|status| status.signal()) == Some(SIGKILL) && record.is_untouched();
            (Err(WorkerError::Crashed(exit_text(exit)).into()), killed)
        }
    };
    let is_parked = record.journaled.parking && matches!(result, Err(RunError::Suspended));
    let parked = is_parked.then(|| Duration::from_secs_f64(record.elapsed_ms() / 1_000.0));
    if is_parked {
        calls.is_resumed = true;
        calls.open = std::mem::take(&mut record.journaled.at_host);
    }
    Attempt { outcome: record.finish(result, inputs, &request.source), may_retry, parked }
}

/// Takes `received` as everything that a worker sends during its first run. Returns the outcome, and the frames that the worker would
/// be sent. For the fuzz target.
pub(crate) fn replay(received: &[u8], limits: Limits, host: &Arc<dyn Host>) -> (Outcome, Vec<u8>) {
    let mut record = Record::new(1, limits, Arc::clone(host), None, false);
    let (mut input, mut output, mut calls) = (Vec::new(), Vec::new(), Calls::default());
    let mut replay_all = || -> Result<Never, RunEnd> {
        for some in received.chunks(100) {
            input.extend_from_slice(some);
            act(&mut input, &mut output, &mut record, host, &mut calls)?;
            while let Some(Some(answer)) = calls.answering.next().now_or_never() {
                put_answer(&mut output, &mut record, answer)?;
            }
        }
        Err(RunEnd::Disconnected)
    };
    let result = match replay_all() {
        Ok(never) => match never {},
        Err(RunEnd::Finished { result, .. }) => result,
        Err(RunEnd::Disconnected) => Err(WorkerError::Crashed(exit_text(None)).into()),
    };
    (record.finish(result, Inputs { seed: 0, started_at: UNIX_EPOCH }, ""), output)
}

/// Describes the end of a process.
fn exit_text(status: Option<ExitStatus>) -> String {
    let Some(status) = status else { return "it closed its connection".to_owned() };
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "it ended".to_owned(),
    }
}

/// A value that does not exist.
enum Never {}

async fn talk(
    lease: &Lease<'_>,
    request: &RunRequest,
    inputs: Inputs,
    host: &Arc<dyn Host>,
    cancel: &CancellationToken,
    record: &mut Record,
    calls: &mut Calls,
) -> Result<Never, RunEnd> {
    let Some(worker) = lease.worker.as_ref() else { return Err(RunEnd::Disconnected) };
    let mut stream =
        worker.stream.try_clone().and_then(UnixStream::from_std).map_err(|_| RunEnd::Disconnected)?;
    let (mut from, to) = stream.split();
    let mut output = Vec::new();
    let mut sent = 0_usize;
    let mut input = Vec::with_capacity(READ);
    put_run(&mut output, record, request, inputs)?;
    record.check_host(output.len() as u64)?;
    let timeout = record.limits.timeout;
    let grace = lease.watchdog_extra();
    let alarm = tokio::time::sleep(timeout);
    tokio::pin!(alarm);
    let (mut stopping, mut pause) = (false, Pause::default());
    let waits_until = record.limits.wait.map(|wait| *calls.waits_until.get_or_insert(Instant::now() + wait));
    let waited = tokio::time::sleep_until(waits_until.unwrap_or_else(Instant::now));
    tokio::pin!(waited);
    // Time at which a script may be asked whether it needs its worker.
    let mut hold = Hold::new(request.park_after.unwrap_or_default());
    let parks = tokio::time::sleep(hold.look());
    tokio::pin!(parks);
    let may_park =
        request.park_after.is_some() && request.journal.as_ref().is_some_and(|it| it.can_be_read());
    loop {
        lease.is_between.store(false, Ordering::Relaxed);
        let halted = request.halt.is_cancelled();
        hold.waits(record.under_way() > 0);
        if !halted {
            let answered = answer_from_journal(&mut output, record, host, &mut calls.answering)?;
            if answered && record.limits.wait.is_some() {
                alarm.as_mut().reset(Instant::now() + timeout);
            }
        }
        let began = Instant::now();
        write_journal(record, request, cancel).await?;
        let took = began.elapsed();
        if took > SLOW {
            // A store that does not answer takes none of the run's time.
            for timer in [alarm.as_mut(), waited.as_mut()] {
                let deadline = timer.deadline() + took;
                timer.reset(deadline);
            }
            calls.waits_until = calls.waits_until.map(|until| until + took);
        }
        if halted && calls.answering.is_empty() {
            return Err(RunError::Suspended.into());
        }
        suspend(&mut output, record, || may_park && calls.take_place(&lease.pool.parking));
        if record.limits.wait.is_some() {
            // Time in which the script can do nothing but wait counts for the limit of its waiting.
            let (open, calls) = (record.under_way(), record.calls_under_way());
            if let Some(until) = pause.update(open, calls, stopping, alarm.deadline(), timeout) {
                alarm.as_mut().reset(until);
            }
        }
        // Most writes fit the socket's buffer: try before waiting for room.
        while sent < output.len() {
            match to.try_write(&output[sent..]) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Err(RunEnd::Disconnected),
            }
        }
        if sent == output.len() {
            output.clear();
            sent = 0;
        }
        lease.is_between.store(output.is_empty() && input.is_empty(), Ordering::Relaxed);
        let waits = record.judging.is_some();
        // Answers come after those of the journal, and to a worker that takes them.
        let takes_answers = !record.journaled.parking
            && calls.are_known(record.asked())
            && !record.journaled.is_in_the_past();
        // What the worker asks for after a halt is not looked at.
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(WorkerError::Aborted.into()),
            () = lease.pool.disposed.cancelled() => return Err(WorkerError::Disposed.into()),
            () = request.halt.cancelled(), if !halted => {}
            verdict = async { match &mut record.judging { Some(judging) => judging.await, None => pending().await } }, if !halted => {
                judged(record, verdict, &mut output)?;
                act(&mut input, &mut output, record, host, calls)?;
            }
            read = from.read_buf(&mut input), if !waits && !halted => {
                if read.map_err(|_| RunEnd::Disconnected)? == 0 {
                    return Err(RunEnd::Disconnected);
                }
                act(&mut input, &mut output, record, host, calls)?;
                hold.active();
            }
            Some(answer) = calls.answering.next(), if takes_answers && !calls.answering.is_empty() => {
                put_answer(&mut output, record, answer)?;
                // Answers that are ready together travel together.
                while let Some(Some(answer)) = calls.answering.next().now_or_never() {
                    put_answer(&mut output, record, answer)?;
                }
                hold.active();
            }
            () = &mut parks, if may_park && !stopping && record.under_way() > 0 => {
                if hold.is_over(|| lease.others_wait())
                    && let Some(ping) = record.ask_to_park()
                {
                    protocol::put(&mut output, MessageKind::Ping, record.run, ping, "", &[]);
                }
                parks.as_mut().reset(Instant::now() + hold.look());
            }
            () = async { if output.is_empty() { pending().await } else { let _ = to.writable().await; } } => {}
            () = &mut waited, if record.limits.wait.is_some() && !stopping => {
                stopping = true;
                protocol::put(&mut output, MessageKind::Stop, record.run, 0, "", &[]);
                alarm.as_mut().reset(Instant::now() + grace);
            }
            () = &mut alarm, if !pause.is_on() => {
                if stopping {
                    return Err(WorkerError::Timeout(timeout + grace).into());
                }
                stopping = true;
                protocol::put(&mut output, MessageKind::Stop, record.run, 0, "", &[]);
                alarm.as_mut().reset(Instant::now() + grace);
            }
        }
    }
}

fn put_run(
    output: &mut Vec<u8>,
    record: &Record,
    request: &RunRequest,
    inputs: Inputs,
) -> Result<(), RunEnd> {
    let now_ms = inputs.started_at.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_millis() as f64);
    let settings = RunSettings {
        limits: record.limits.clone(),
        policy: request.policy.clone(),
        seed: inputs.seed,
        now_ms,
        script_len: request.source.len(),
    };
    let head = serde_json::to_string(&settings).map_err(|_| RunEnd::from(WorkerError::MessageInvalid))?;
    let context = request.context.as_ref().map_or("{}", |context| context.get());
    protocol::put(output, MessageKind::Run, record.run, 0, &head, &[&request.source, context]);
    Ok(())
}

/// Takes the host's verdict on the plan; one that refuses it stops the worker.
fn judged(record: &mut Record, verdict: Option<PlanVerdict>, output: &mut Vec<u8>) -> Result<(), RunEnd> {
    if record.judged(verdict)? {
        protocol::put(output, MessageKind::Stop, record.run, 0, "", &[]);
    }
    Ok(())
}

/// Takes a verdict that is there. Returns `false` while the host still judges the plan.
fn is_judged(record: &mut Record, output: &mut Vec<u8>) -> Result<bool, RunEnd> {
    let Some(judging) = &mut record.judging else { return Ok(true) };
    match judging.now_or_never() {
        Some(verdict) => judged(record, verdict, output).map(|()| true),
        None => Ok(false),
    }
}

/// Acts on every whole frame that has arrived. While the host judges the plan, they wait.
fn act(
    input: &mut Vec<u8>,
    output: &mut Vec<u8>,
    record: &mut Record,
    host: &Arc<dyn Host>,
    calls: &mut Calls,
) -> Result<(), RunEnd> {
    let written = output.is_empty();
    let largest = record.limits.message_bytes.max(record.limits.result_bytes).max(record.limits.log_bytes)
        + FRAME_SLACK;
    let largest = usize::try_from(largest).unwrap_or(usize::MAX);
    let mut taken = 0;
    while is_judged(record, output)?
        && let Some(len) =
            protocol::frame_len(&input[taken..], largest).map_err(|error| record.refuse(error))?
    {
        let Some(bytes) = input.get(taken..taken + len) else {
            input.reserve(len);
            break;
        };
        let frame = protocol::parse(bytes).map_err(|error| record.refuse(error))?;
        taken += len;
        if let Some(result) = record.take(&frame, host, calls)? {
            // A worker with more to send, or that was not sent everything, is not at the start of its loop.
            let clean = taken == input.len() && written;
            return Err(RunEnd::Finished { result, reuse_worker: clean });
        }
    }
    input.drain(..taken);
    record.check_host(input.len() as u64)
}

/// Feeds the script the answers that the journal has for the calls it made.
fn answer_from_journal(
    output: &mut Vec<u8>,
    record: &mut Record,
    host: &Arc<dyn Host>,
    answering: &mut FuturesUnordered<Answering>,
) -> Result<bool, RunEnd> {
    let mut answered = false;
    while let Some(JournalEntry::Answer { id, at_ms, answer, kept }) = record.replayed() {
        if let Some(kept) = kept {
            host.restore(&kept);
        }
        put_result(output, record, id, at_ms as f64, &answer)?;
        answered = true;
    }
    record.release(answering);
    Ok(answered)
}

/// Writes what is new in the journal.
async fn write_journal(
    record: &mut Record,
    request: &RunRequest,
    cancel: &CancellationToken,
) -> Result<(), RunEnd> {
    let Some(journal) = &request.journal else { return Ok(()) };
    let Some(entries) = record.journaled.unwritten.as_mut().filter(|entries| !entries.is_empty()) else {
        return Ok(());
    };
    let written = journal.write(std::mem::take(entries));
    tokio::select! {
        biased;
        written = written => written.map_err(|error| RunEnd::from(RunError::from(error))),
        () = cancel.cancelled() => Err(WorkerError::Aborted.into()),
    }
}

/// Ends the worker's part of a run that only answers from outside, or of calls that take long, can take on.
fn suspend(output: &mut Vec<u8>, record: &mut Record, may_park: impl FnOnce() -> bool) {
    if let Some(ping) = record.ping() {
        protocol::put(output, MessageKind::Ping, record.run, ping, "", &[]);
    } else if record.is_suspended() || (record.may_park() && may_park()) {
        record.journaled.suspending = true;
        record.journaled.parking = record.under_way() > 0;
        protocol::put(output, MessageKind::Stop, record.run, 0, "", &[]);
    }
}

fn put_answer(output: &mut Vec<u8>, record: &mut Record, answer: Answer) -> Result<(), RunEnd> {
    let Answer::To { id, is_call, answer } = answer else { return Ok(()) };
    let at_ms = record.elapsed_ms();
    let answer = match answer {
        None => {
            record.close(id, at_ms, CallStatus::Error, Some("HOST_PANIC".to_owned()));
            return Err(host_failed(is_call).into());
        }
        Some(Ok(ToolAnswer::Waits(state))) => {
            record.wait(id, state);
            return Ok(());
        }
        Some(answer) => answer,
    };
    let entry = answer_entry(id, at_ms as u64, answer);
    if let JournalEntry::Answer { answer, .. } = &entry {
        put_result(output, record, id, at_ms, answer)?;
    }
    record.journaled.note(|| entry);
    Ok(())
}

/// Sends the answer to a call.
fn put_result(
    output: &mut Vec<u8>,
    record: &mut Record,
    id: u32,
    at_ms: f64,
    answer: &Result<Box<RawValue>, ToolFailure>,
) -> Result<(), RunEnd> {
    let elapsed = at_ms.floor().to_string();
    match answer {
        Ok(value) => {
            if value.get().len() as u64 > record.limits.message_bytes {
                record.close(id, at_ms, CallStatus::Error, Some(TOO_LARGE.to_owned()));
                return Err(WorkerError::MessageTooLarge(record.limits.message_bytes).into());
            }
            record.close(id, at_ms, CallStatus::Ok, None);
            record.check_host((output.len() + value.get().len()) as u64)?;
            protocol::put(output, MessageKind::Answer, record.run, id, &elapsed, &[value.get()]);
        }
        Err(failure) => {
            record.memory += failure.code.len() as u64;
            if failure.ends_run {
                let why = || by_host(&failure.code, failure.message.clone());
                record.ended.get_or_insert_with(why);
            }
            record.close(id, at_ms, CallStatus::Error, Some(failure.code.clone()));
            let head =
                serde_json::to_string(failure).map_err(|_| RunEnd::from(WorkerError::MessageInvalid))?;
            record.check_host((output.len() + head.len()) as u64)?;
            protocol::put(output, MessageKind::Failure, record.run, id, &head, &[&elapsed]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostFuture, PlanFacts, ToolAnswer, ToolCall, plan::PLAN_BYTES};

    struct Open;

    impl Host for Open {
        fn call_tool(&self, _: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
            Box::pin(async { Ok(RawValue::NULL.to_owned().into()) })
        }

        fn get_tool(&self, _: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
            Box::pin(async { Ok(RawValue::NULL.to_owned()) })
        }
    }

    fn received(frames: &[(MessageKind, &str, &str)]) -> Outcome {
        let mut bytes = Vec::new();
        for (kind, head, body) in frames {
            protocol::put(&mut bytes, *kind, 1, 0, head, &[body]);
        }
        let host: Arc<dyn Host> = Arc::new(Open);
        replay(&bytes, Limits::default(), &host).0
    }

    #[test]
    fn a_worker_reports_facts_once_before_its_first_call_and_within_their_limit() {
        use MessageKind::{Call, Done, Plan};
        let facts = serde_json::to_string(&PlanFacts::default()).unwrap();
        let done = (Done, r#"{"Ok":null}"#, "1");
        assert!(received(&[(Plan, "", &facts), done]).result.is_ok());
        let long = "x".repeat(PLAN_BYTES + 1);
        let deep = "[".repeat(1_000);
        let negative =
            r#"{"calls":[],"uses":[{"of":{"Use":-1},"part":"Item","at":0,"tentative":false}],"notes":[]}"#;
        for (frames, class) in [
            (vec![(Plan, "", facts.as_str()), (Plan, "", facts.as_str()), done], "MESSAGE_INVALID"),
            (vec![(Call, "a", "{}"), (Plan, "", facts.as_str()), done], "MESSAGE_INVALID"),
            (vec![(Plan, "", r#"{"more":1}"#), done], "MESSAGE_INVALID"),
            (vec![(Plan, "", deep.as_str()), done], "MESSAGE_INVALID"),
            (vec![(Plan, "", negative), done], "MESSAGE_INVALID"),
            (vec![(Plan, "", long.as_str()), done], "MESSAGE_TOO_LARGE"),
        ] {
            let Err(RunError::Worker(error)) = received(&frames).result else { panic!("{class}") };
            assert_eq!(error.class_and_code().1, class);
        }
    }

    #[test]
    fn places_outside_the_script_are_those_of_its_end() {
        let facts = r#"{"calls":[],"uses":[],"notes":[{"at":4294967295,"mistake":"not_awaited","name":""}]}"#;
        let outcome = received(&[(MessageKind::Plan, "", facts), (MessageKind::Done, r#"{"Ok":null}"#, "1")]);
        assert_eq!((outcome.warnings[0].location.line, outcome.warnings[0].location.column), (1, 1));
    }
}

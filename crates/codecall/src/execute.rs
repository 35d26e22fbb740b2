//! `codecall:execute`: one script, many tools. The body of every outcome is made here; `runs` has its course.

use std::{io, time::Duration};

use data_encoding::HEXLOWER;
use gatewright_agentscript::{CallRecord, CallStatus, IllegalKind, Limits, Outcome, RunError, WorkerError};
use gatewright_core::{
    DigestPart, bulk_of, codes, digest_of_parts, off_thread, read_json, rmcp::model::JsonObject,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    advice,
    call_log::{self, CallLog, compact},
    runs::DryRun,
    sent::{SentTexts, clean},
    settings::Settings,
};

/// Input of `codecall:execute`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExecuteInput {
    /// The script; none to resume an execution.
    #[serde(default)]
    pub(crate) script: Option<String>,
    #[serde(default)]
    pub(crate) context: Option<JsonObject>,
    #[serde(default)]
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// An execution that waits, to go on with, or that runs in the background, to get its result.
    #[serde(default)]
    pub(crate) resume: Option<String>,
    /// End the execution that `resume` names, instead of going on with it.
    #[serde(default)]
    pub(crate) cancel: Option<bool>,
    /// Rehearse the plan.
    #[serde(default)]
    pub(crate) dry_run: Option<DryRun>,
    /// Run in the background.
    #[serde(default)]
    pub(crate) detach: Option<bool>,
    /// Title of the execution. Default: the beginning of the script.
    #[serde(skip)]
    pub(crate) title: Option<String>,
}

impl ExecuteInput {
    /// Returns `true` if it names anything beside the execution to resume.
    pub(crate) fn names_more(&self) -> bool {
        self.script.is_some()
            || self.context.is_some()
            || self.allowed_tools.is_some()
            || self.dry_run.is_some()
            || self.detach.is_some()
    }

    /// The input with its digest, which is made where it keeps no request waiting.
    pub(crate) async fn digested(self) -> (Self, String) {
        off_thread(self.bulk(), move || {
            let digest = self.digest();
            (self, digest)
        })
        .await
    }

    /// Its size as [`off_thread`] wants it.
    pub(crate) fn bulk(&self) -> usize {
        let names = self.allowed_tools.iter().flatten().map(String::len).sum::<usize>();
        let script = self.script.as_ref().map_or(0, String::len);
        let context = self.context.as_ref().map_or(0, bulk_of);
        context.saturating_add(script).saturating_add(names)
    }

    /// A digest by which requests are compared. A saved plan has that of its name and input.
    pub(crate) fn digest(&self) -> String {
        fn text(text: &Option<String>) -> DigestPart<'_> {
            text.as_deref().map_or(DigestPart::Null, DigestPart::Text)
        }
        let script = if self.title.is_some() { DigestPart::Null } else { text(&self.script) };
        let digest = digest_of_parts([
            ("script", script),
            ("title", text(&self.title)),
            ("context", self.context.as_ref().map_or(DigestPart::Null, DigestPart::Object)),
            ("allowedTools", self.allowed_tools.as_deref().map_or(DigestPart::Null, DigestPart::Texts)),
            ("resume", text(&self.resume)),
            ("dryRun", self.dry_run.map_or(DigestPart::Null, DryRun::digest_part)),
            ("detach", self.detach.map_or(DigestPart::Null, DigestPart::Bool)),
        ]);
        HEXLOWER.encode(&digest)
    }
}

impl Settings {
    /// Longest time that the client of a run is waited for.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.config.vm.wait()
    }

    /// The body of the answer to a run that is over.
    pub(crate) fn body(&self, outcome: Outcome, log: CallLog, sent: &SentTexts) -> Value {
        let mut reply = Reply::new(&self.limits);
        // The engine writes no number that cannot be read; a worker that was taken over may.
        let invalid = RunError::Worker(WorkerError::MessageInvalid);
        let mut failed = false;
        let mut warnings: Vec<Value> = outcome.warnings.iter().map(|warning| json!(warning)).collect();
        let too_large =
            outcome.calls.iter().rev().find(|call| call.code.as_deref() == Some("MESSAGE_TOO_LARGE"));
        match outcome.result.and_then(|result| read(&result).ok_or(invalid)) {
            Ok(result) => {
                reply.put("ok", "result", result);
                warnings.extend(open_calls(&outcome.calls));
            }
            Err(error) => {
                let is_too_large = matches!(error, RunError::Worker(WorkerError::MessageTooLarge(_)));
                let (status, mut error) = self.failure(error, sent);
                if let Some(call) = too_large.filter(|_| is_too_large) {
                    error["toolName"] = json!(call.name);
                }
                reply.put(status, "error", error);
                // A result says itself what was done.
                reply.put_all("progress", &outcome.progress);
                failed = true;
            }
        }
        reply.put_all("warnings", &warnings);
        reply.put_all("logs", &outcome.logs);
        reply.omit("logs", outcome.logs_omitted as usize);
        match (log, failed) {
            (CallLog::Full, _) => reply.put_all("calls", &outcome.calls),
            (CallLog::Off, false) => {}
            (CallLog::Compact, false) if call_log::is_plain(&outcome.calls) => {}
            (CallLog::Compact | CallLog::Off, _) => reply.put_all("calls", &compact(&outcome.calls)),
        }
        reply.finish()
    }

    /// Status and error object, with the contract's code in each. Paths that were `sent` to tools stay in it; what a script writes into
    /// an error of its own is cleaned (contract: error sanitization).
    pub(crate) fn failure(&self, error: RunError, sent: &SentTexts) -> (&'static str, Value) {
        let advice = advice::of(&error).map(|advice| format!(" ({advice})")).unwrap_or_default();
        let clean = |message: &str| clean(self.sanitizer, message, sent) + &advice;
        match error {
            RunError::SyntaxError { message, location } => (
                "syntax_error",
                json!({"code": "SYNTAX_ERROR", "message": clean(&message), "location": location}),
            ),
            RunError::IllegalAccess { kind, message, location } => {
                let code = match kind {
                    IllegalKind::SelfReferenceBlocked => codes::SELF_REFERENCE_BLOCKED,
                    _ => codes::VALIDATION_ERROR,
                };
                let error = json!({"code": code, "kind": kind.to_string(), "message": clean(&message)});
                ("illegal_access", located(error, location))
            }
            RunError::RuntimeError { name, message, location } => {
                let error = json!({"source": "script", "code": "EXECUTION_ERROR", "name": name, "message": clean(&message)});
                ("runtime_error", located(error, location))
            }
            RunError::ToolError { tool_name, message, code, location } => {
                let error = json!({"source": "tool", "toolName": tool_name, "code": code, "message": clean(&message)});
                ("tool_error", located(error, location))
            }
            RunError::Journal { code, message } => (
                "runtime_error",
                json!({"source": "script", "code": code, "name": "Error", "message": clean(&message)}),
            ),
            RunError::ReplayDiverged { message } => {
                let message = format!(
                    "{}: nothing was done a second time; look at what the script has done before you start another",
                    clean(&message)
                );
                (
                    "runtime_error",
                    json!({"source": "script", "code": "REPLAY_DIVERGED", "name": "Error", "message": message}),
                )
            }
            RunError::Timeout { message } => {
                ("timeout", json!({"code": codes::TIMEOUT, "message": clean(&message)}))
            }
            RunError::Worker(error) => {
                let (name, code) = error.class_and_code();
                let status =
                    if matches!(error, WorkerError::Timeout(_)) { "timeout" } else { "runtime_error" };
                let mut body = json!({"code": code, "name": name, "message": clean(&error.to_string())});
                if status == "runtime_error" {
                    body["source"] = json!("script");
                }
                (status, body)
            }
            _ => (
                "runtime_error",
                json!({"source": "script", "code": "EXECUTION_ERROR", "name": "Error", "message": "the run failed"}),
            ),
        }
    }
}

/// Request metadata by which a caller chooses the call log of one run, such as the console, which draws every call.
const CALL_LOG: &str = "gatewright/callLog";

pub(crate) fn requested_log(meta: &mut JsonObject) -> Option<CallLog> {
    CallLog::deserialize(meta.shift_remove(CALL_LOG)?).ok()
}

/// The warning about calls that were open when a script ended.
fn open_calls(calls: &[CallRecord]) -> Option<Value> {
    let mut names: Vec<&str> = Vec::new();
    let open = calls.iter().filter(|call| call.status == CallStatus::Open);
    let count = open.clone().count();
    for call in open {
        if !names.contains(&call.name.as_str()) && names.len() < MOST_NAMED {
            names.push(&call.name);
        }
    }
    (count > 0).then(|| {
        json!({"message": format!(
            "{count} call{} still open when the script ended, and cancelled: {}; put `await` in front of each call whose effect matters",
            if count == 1 { " was" } else { "s were" },
            names.join(", ")
        )})
    })
}

/// Tools that a warning names.
const MOST_NAMED: usize = 5;

/// Bytes that the body is made of, about.
pub(crate) fn size(outcome: &Outcome) -> usize {
    let result = match &outcome.result {
        Ok(result) => result.get().len(),
        _ => 0,
    };
    let records = outcome.calls.len().saturating_mul(size_of::<CallRecord>());
    outcome.logs.iter().map(String::len).fold(result.saturating_add(records), usize::saturating_add)
}

fn read(result: &RawValue) -> Option<Value> {
    read_json(result.get()).ok()
}

/// The body of an answer, within [`Limits::result_bytes`] of JSON.
struct Reply {
    body: Map<String, Value>,
    omitted: Map<String, Value>,
    /// Bytes left.
    room: usize,
}

impl Reply {
    fn new(limits: &Limits) -> Self {
        let room = usize::try_from(limits.result_bytes).unwrap_or(usize::MAX);
        Self { body: Map::new(), omitted: Map::new(), room }
    }

    /// Outcome of the run: it fits, because a longer result ended the run and errors are shorter than the lowest limit.
    fn put(&mut self, status: &str, name: &str, value: Value) {
        self.room = self.room.saturating_sub(json_len(&value));
        self.body.insert("status".to_owned(), json!(status));
        self.body.insert(name.to_owned(), value);
    }

    /// As many of the items as fit, in order; the rest is counted.
    fn put_all<T: Serialize>(&mut self, name: &str, items: &[T]) {
        let mut kept = Vec::new();
        for item in items {
            let Ok(value) = serde_json::to_value(item) else { continue };
            // A comma goes with it.
            let len = json_len(&value) + 1;
            let Some(room) = self.room.checked_sub(len) else { break };
            self.room = room;
            kept.push(value);
        }
        self.omit(name, items.len() - kept.len());
        if !kept.is_empty() {
            self.body.insert(name.to_owned(), Value::Array(kept));
        }
    }

    /// Counts items that were left out.
    fn omit(&mut self, name: &str, more: usize) {
        if more > 0 {
            let before = self.omitted.get(name).and_then(Value::as_u64).unwrap_or(0);
            self.omitted.insert(name.to_owned(), json!(before + more as u64));
        }
    }

    fn finish(mut self) -> Value {
        if !self.omitted.is_empty() {
            self.body.insert("omitted".to_owned(), Value::Object(self.omitted));
        }
        Value::Object(self.body)
    }
}

/// Bytes of a value as JSON.
fn json_len(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

fn located(mut error: Value, location: Option<gatewright_agentscript::Location>) -> Value {
    if let Some(location) = location {
        error["location"] = json!(location);
    }
    error
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;
    use gatewright_agentscript::RunResult;

    use super::*;
    use crate::CodeCallConfig;

    #[test]
    fn the_digest_of_a_long_request_is_made_beside_the_threads_that_serve_requests() {
        let of = |len: usize| {
            let context = json!({"text": "x".repeat(len)});
            ExecuteInput { context: context.as_object().cloned(), ..ExecuteInput::default() }
        };
        let (input, short) = of(10).digested().now_or_never().expect("it is made at once");
        assert_eq!(short, input.digest());
        let work = crate::testing::OneThread::new();
        work.while_it_is_busy(async || assert!(of(100_000).digested().now_or_never().is_none()));
        assert_ne!(work.block_on(of(100_000).digested()).1, short);
    }

    fn outcome(result: RunResult) -> Outcome {
        let call = CallRecord {
            name: "crm:users_list".to_owned(),
            status: CallStatus::Ok,
            code: None,
            started_ms: 1.5,
            duration_ms: 2.25,
        };
        Outcome {
            result,
            logs: vec!["\u{1}\"line\"".repeat(100); 1_000],
            logs_omitted: 0,
            progress: Vec::new(),
            calls: vec![call; 10_000],
            warnings: Vec::new(),
            duration: Duration::ZERO,
            inputs: None,
        }
    }

    #[test]
    fn the_whole_reply_stays_within_its_limit_and_counts_what_it_leaves_out() {
        let settings = Settings::of(CodeCallConfig::default());
        let limit = usize::try_from(settings.limits.result_bytes).unwrap();
        let result = RawValue::from_string(format!("\"{}\"", "x".repeat(limit - 200_000))).unwrap();
        let thrown = Err(RunError::RuntimeError {
            name: "\u{1}".repeat(256),
            message: "\u{1}".repeat(1_000_000),
            location: None,
        });
        for result in [Ok(result), thrown] {
            let body = settings.body(outcome(result), CallLog::Full, &Default::default());
            let len = json_len(&body);
            assert!(len <= limit + 1_024 && len > limit - 2_048, "{len} of {limit}");
            let left_out = |name: &str| {
                let kept = body[name].as_array().map_or(0, Vec::len) as u64;
                (kept + body["omitted"][name].as_u64().unwrap_or(0), body["omitted"][name].as_u64())
            };
            assert_eq!((left_out("logs").0, left_out("calls").0), (1_000, 10_000));
            assert!(left_out("calls").1.is_some(), "{len}");
        }
    }

    #[test]
    fn a_script_that_failed_says_what_it_did_whatever_the_call_log() {
        let settings = Settings::of(CodeCallConfig::default());
        let ended = |result| Outcome {
            logs: vec!["line".to_owned()],
            logs_omitted: 3,
            progress: vec![RawValue::from_string("{\"done\":[1,2]}".to_owned()).unwrap()],
            ..outcome(result)
        };
        let late = || Err(RunError::Timeout { message: "time limit reached".to_owned() });
        for (log, calls) in [(CallLog::Full, 10_000), (CallLog::Compact, 1), (CallLog::Off, 1)] {
            let body = settings.body(ended(late()), log, &Default::default());
            assert_eq!(body["calls"].as_array().unwrap().len(), calls, "{log:?}");
            assert_eq!((&body["progress"], &body["logs"]), (&json!([{"done": [1, 2]}]), &json!(["line"])));
            assert_eq!(body["omitted"], json!({"logs": 3}));
            let message = body["error"]["message"].as_str().unwrap();
            assert!(
                message.starts_with("time limit reached (codecall.vm.timeoutMs: split the plan"),
                "{message}"
            );
        }
        let body = settings.body(ended(Ok(RawValue::NULL.to_owned())), CallLog::Off, &Default::default());
        assert_eq!((body.get("calls"), body.get("progress")), (None, None));
        let body = settings.body(ended(Ok(RawValue::NULL.to_owned())), CallLog::Compact, &Default::default());
        assert_eq!(body["calls"], json!([{"name": "crm:users_list", "ok": 10_000, "totalMs": 22500.0}]));
    }

    #[test]
    fn calls_that_were_open_at_the_end_are_a_warning_and_an_answer_that_is_too_large_has_its_tool() {
        let settings = Settings::of(CodeCallConfig::default());
        let mut ended = Outcome { logs: Vec::new(), ..outcome(Ok(RawValue::NULL.to_owned())) };
        ended.calls.truncate(3);
        ended.calls[2].status = CallStatus::Open;
        let body = settings.body(ended, CallLog::Compact, &Default::default());
        let warning = body["warnings"][0]["message"].as_str().unwrap();
        assert!(
            warning.starts_with("1 call was still open when the script ended, and cancelled: crm:users_list"),
            "{warning}"
        );
        let mut ended = outcome(Err(WorkerError::MessageTooLarge(5).into()));
        ended.calls[0].code = Some("MESSAGE_TOO_LARGE".to_owned());
        let body = settings.body(ended, CallLog::Compact, &Default::default());
        assert_eq!(
            (&body["error"]["code"], &body["error"]["toolName"]),
            (&json!("MESSAGE_TOO_LARGE"), &json!("crm:users_list"))
        );
        assert!(body.get("warnings").is_none());
    }

    #[test]
    fn a_result_that_cannot_be_read_is_an_error_and_not_null() {
        let settings = Settings::of(CodeCallConfig::default());
        let body = settings.body(
            outcome(Ok(RawValue::from_string("[1e400]".to_owned()).unwrap())),
            CallLog::Full,
            &Default::default(),
        );
        assert_eq!(
            (&body["status"], &body["error"]["code"]),
            (&json!("runtime_error"), &json!("MESSAGE_INVALID"))
        );
    }
}

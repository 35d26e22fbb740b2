//! The end of a run: its value or error within the limits of this side, and the outcome.

use serde_json::value::RawValue;

use super::{MOST_NAMED, Record, RunEnd};
use crate::{
    excerpt,
    outcome::{CallStatus, Inputs, Outcome, RunError, RunResult, Warning, WorkerError},
    plan::{MAX_WARNINGS, PlanRefusal, PlanWarning},
    script::locate,
};

impl Record {
    /// The error of a run whose plan was refused; its place is that in the text, once [`Record::finish`] has it.
    pub(super) fn refused(&mut self, refusal: PlanRefusal) -> RunError {
        self.refused_at = Some(refusal.at);
        let PlanRefusal { tool_name, code, message, .. } = refusal;
        RunError::ToolError { tool_name, message, code, location: None }.cut()
    }

    pub(super) fn value(&self, result: &str) -> Result<Box<RawValue>, RunEnd> {
        if result.len() as u64 > self.limits.result_bytes {
            return Err(WorkerError::MessageTooLarge(self.limits.result_bytes).into());
        }
        let invalid = || RunEnd::from(WorkerError::MessageInvalid);
        self.check_host(gatewright_json::weight(result).map_err(|_| invalid())?)?;
        RawValue::from_string(result.to_owned()).map_err(|_| invalid())
    }

    /// Returns the error that a worker reports, with this side's limits in it. A worker may report those of its own errors only.
    pub(super) fn error(&self, error: RunError) -> Result<RunError, RunEnd> {
        let limits = &self.limits;
        Ok(match error {
            RunError::Timeout { .. } => RunError::Timeout { message: self.timeout_message() },
            RunError::Worker(WorkerError::MemoryExceeded(_)) => {
                WorkerError::MemoryExceeded(limits.memory_bytes).into()
            }
            RunError::Worker(WorkerError::TooManyPendingCalls(_)) => {
                WorkerError::TooManyPendingCalls(limits.max_pending_calls).into()
            }
            RunError::Worker(WorkerError::MessageTooLarge(_)) => {
                WorkerError::MessageTooLarge(limits.message_bytes).into()
            }
            RunError::Worker(_)
            | RunError::Suspended
            | RunError::ReplayDiverged { .. }
            | RunError::Journal { .. } => return Err(WorkerError::MessageInvalid.into()),
            error => error,
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

    /// The outcome. `source` is the script, for the places of its problems.
    pub(in crate::pool) fn finish(mut self, mut result: RunResult, inputs: Inputs, source: &str) -> Outcome {
        if let (Err(RunError::ToolError { location, .. }), Some(at)) = (&mut result, self.refused_at) {
            *location = Some(locate(source, at));
        }
        if matches!(&result, Ok(value) if value.get() == "null") {
            self.warnings.append(&mut self.unreturned);
        }
        self.warnings.extend(self.host.hindsight());
        let now = self.elapsed_ms();
        for call in self.calls.iter_mut().filter(|call| call.status == CallStatus::Open) {
            call.duration_ms = now - call.started_ms;
        }
        Outcome {
            result,
            logs: self.logs,
            logs_omitted: self.logs_omitted,
            progress: self.progress.into(),
            calls: self.calls,
            warnings: located(self.warnings, source),
            duration: self.started.elapsed(),
            inputs: Some(inputs),
        }
    }
}

fn located(mut warnings: Vec<PlanWarning>, source: &str) -> Vec<Warning> {
    warnings.sort_by_key(|warning| warning.at);
    warnings.truncate(MAX_WARNINGS);
    let located = |PlanWarning { at, mut message }: PlanWarning| {
        excerpt::cut_message(&mut message);
        Warning { message, location: locate(source, at) }
    };
    warnings.into_iter().map(located).collect()
}

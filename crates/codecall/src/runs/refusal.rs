//! Refusals to begin or to go on with a run.

use gatewright_core::rmcp::model::CallToolResult;
use gatewright_executions::{ABORTED, ExecutionError, ExecutionId};
use serde_json::json;

use crate::tool_result::answer;

/// A refusal to begin or to go on with a run, as a reply has it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    code: &'static str,
    message: String,
}

impl From<ExecutionError> for Refusal {
    fn from(error: ExecutionError) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

impl Refusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn is(&self, error: ExecutionError) -> bool {
        self.code == error.code()
    }

    /// Returns `true` if the run is over: it cannot be kept.
    pub(super) fn has_ended(&self) -> bool {
        use ExecutionError as E;
        [E::TooLarge, E::TooMany, E::Full].into_iter().any(|error| self.is(error))
    }

    pub(super) fn reply(self) -> CallToolResult {
        answer(json!({"status": "runtime_error", "error":
            {"source": "script", "code": self.code, "name": "Error", "message": self.message}}))
    }
}

/// The answer about a run that its client has cancelled.
pub(super) fn cancelled() -> Refusal {
    Refusal::new(ABORTED, "the execution was cancelled; the calls that it made before stay made")
}

/// The answer about a run that another instance has.
pub(super) fn at_other_instance(id: ExecutionId) -> Refusal {
    let message = format!(
        "{}; codecall:execute {{\"resume\": \"{id}\"}} says how it goes on",
        ExecutionError::LeaseLost
    );
    Refusal::new(ExecutionError::LeaseLost.code(), message)
}

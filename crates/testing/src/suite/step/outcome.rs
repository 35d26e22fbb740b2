//! The outcome of a step.

use serde_json::{Value, json};

use crate::{
    matchers::{AsSubject, Subject, text},
    protocol::{ClientError, RpcResponse},
    suite::expectations,
};

/// The outcome of a step.
pub(super) enum Outcome {
    Record(Box<dyn AsSubject + Send>),
    Failed(RpcResponse),
    Refused(RpcResponse),
}

impl Outcome {
    pub(super) fn of<T: AsSubject + Send + 'static>(outcome: Result<T, ClientError>) -> Result<Self, String> {
        match outcome {
            Ok(record) => Ok(Self::Record(Box::new(record))),
            // An expectation may require the error.
            Err(ClientError::Rpc { error, .. }) => {
                Ok(Self::Failed(RpcResponse::failure(&error).with_id(&json!(0))))
            }
            Err(error @ ClientError::Refused { status, .. }) => {
                Ok(Self::Refused(expectations::rejection(status, &error)))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    pub(super) fn json(value: Value) -> Self {
        Self::Record(Box::new(value))
    }

    pub(super) fn subject(&self) -> Subject<'_> {
        match self {
            Self::Record(record) => record.as_subject(),
            Self::Failed(response) | Self::Refused(response) => response.as_subject(),
        }
    }

    /// A description of the failure, if the step failed.
    pub(super) fn failure(&self) -> Option<String> {
        match (self, self.subject()) {
            (Self::Failed(response), _) => Some(format!("it failed: {}", response.raw["error"])),
            (Self::Refused(response), _) => Some(text(&response.raw["refused"]["error"])),
            (Self::Record(_), Subject::ToolResult(result)) if result.is_error => {
                Some(format!("the tool failed: {}", Subject::ToolResult(result)))
            }
            (Self::Record(_), Subject::RpcResponse(response)) if response.error().is_some() => {
                Some(format!("it failed: {}", response.raw["error"]))
            }
            _ => None,
        }
    }
}

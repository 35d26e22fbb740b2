//! What was asked and answered.

use std::{sync::Mutex, time::SystemTime};

use serde_json::Value;

use crate::{lock, records::RpcResponse, shorten};

/// One request and what became of it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RequestTrace {
    /// What was asked.
    pub method: String,
    /// With what, as the test made it.
    pub params: Value,
    /// The answer, as the test got it; none when there was no answer.
    pub response: Option<RpcResponse>,
    /// Why there was no answer.
    pub failure: Option<String>,
    /// Whether a mock or an interceptor answered.
    pub mocked: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
    /// When it was made.
    pub timestamp: SystemTime,
}

impl std::fmt::Display for RequestTrace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let by = if self.mocked { ", mocked" } else { "" };
        write!(
            f,
            "{} {} ({:.1} ms{by})",
            self.method,
            shorten(&self.params.to_string(), 400),
            self.duration_ms
        )?;
        match (&self.response, &self.failure) {
            (Some(response), _) => {
                let part = response.result().or(response.raw.get("error")).unwrap_or(&response.raw);
                let kind = if response.raw.get("error").is_some() { "error" } else { "result" };
                write!(f, "\n    {kind} {}", shorten(&part.to_string(), 800))
            }
            (None, Some(failure)) => write!(f, "\n    no answer: {failure}"),
            (None, None) => Ok(()),
        }
    }
}

/// The requests of one client. The handshake is not among them.
#[derive(Debug, Default)]
pub struct Trace {
    entries: Mutex<Vec<RequestTrace>>,
}

impl Trace {
    /// All, oldest first.
    pub fn all(&self) -> Vec<RequestTrace> {
        lock(&self.entries).clone()
    }

    /// The last one that was answered or failed.
    pub fn last(&self) -> Option<RequestTrace> {
        lock(&self.entries).last().cloned()
    }

    /// Forgets all.
    pub fn clear(&self) {
        lock(&self.entries).clear();
    }

    pub(super) fn push(&self, entry: RequestTrace) {
        lock(&self.entries).push(entry);
    }
}

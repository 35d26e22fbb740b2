//! Errors of the client.

use std::time::Duration;

use super::response::{RpcError, RpcResponse};
use crate::base::text::shorten;

/// A failed call of the client.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server answered with a JSON-RPC error.
    #[error("`{method}` failed with {error}")]
    Rpc {
        /// The method of the request.
        method: String,
        /// The error the server returned.
        error: RpcError,
    },
    /// The server rejected the caller: HTTP 401 or 403.
    #[error("the server refused the request: HTTP {status}{}{}", challenge_suffix(.challenge), body_suffix(.body))]
    Refused {
        /// 401 or 403.
        status: u16,
        /// The `WWW-Authenticate` header.
        challenge: Option<String>,
        /// The body, as text.
        body: String,
    },
    /// The session has ended and a new one could not be started.
    #[error("the server does not know the session any more{}", body_suffix(.body))]
    SessionGone {
        /// The body, as text.
        body: String,
    },
    /// The HTTP response is not a JSON-RPC message.
    #[error("the server answered HTTP {status}{}{}", not_json_rpc(*.status, .body), body_suffix(.body))]
    Http {
        /// The HTTP status.
        status: u16,
        /// The body, as text.
        body: String,
    },
    /// No response in time.
    #[error("`{method}` was not answered within {after:?}{hint}")]
    TimedOut {
        /// The method of the request.
        method: String,
        /// The timeout.
        after: Duration,
        /// A possible reason; empty, or text to append.
        hint: String,
    },
    /// The client is not connected, or the connection broke.
    #[error("not connected: {0}")]
    Closed(String),
    /// The transport cannot carry a token.
    #[error("a token cannot be sent over {0}; use Streamable HTTP, or put it in `env`")]
    NoTokens(&'static str),
    /// The response does not have the structure MCP requires.
    #[error("the answer to `{method}` is not what MCP says: {problem}; it was {answer}")]
    Shape {
        /// The method of the request.
        method: String,
        /// The deviation.
        problem: String,
        /// The response, as JSON.
        answer: String,
    },
}

impl ClientError {
    /// The JSON-RPC error code, also of an error in the body of HTTP 401 or 403.
    pub fn code(&self) -> Option<i64> {
        self.rpc_error().map(|error| error.code)
    }

    /// The JSON-RPC error the server returned.
    pub fn rpc_error(&self) -> Option<RpcError> {
        match self {
            Self::Rpc { error, .. } => Some(error.clone()),
            Self::Refused { body, .. } => RpcResponse::error_in(body)?.error(),
            _ => None,
        }
    }

    /// The HTTP status, if the response was an HTTP error.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } | Self::Http { status, .. } => Some(*status),
            Self::SessionGone { .. } => Some(404),
            _ => None,
        }
    }

    /// True if the server rejected the caller with HTTP 401 or 403.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}

impl RpcResponse {
    /// The `result` of a response to `method`, or the error it stands for.
    pub(crate) fn into_result(self, method: &str) -> Result<serde_json::Value, ClientError> {
        let shape = |problem: &str, response: String| ClientError::Shape {
            method: method.to_owned(),
            problem: problem.to_owned(),
            answer: response,
        };
        if let Some(problem) = self.envelope_problem() {
            return Err(shape(problem, shorten(&self.raw.to_string(), 300)));
        }
        match (self.result(), self.error()) {
            (Some(result), _) => Ok(result.clone()),
            (None, Some(error)) => Err(ClientError::Rpc { method: method.to_owned(), error }),
            (None, None) => Err(shape("it has neither `result` nor a whole `error`", self.raw.to_string())),
        }
    }
}

/// Explains why a successful HTTP response is not a JSON-RPC message. For failures the status says enough.
fn not_json_rpc(status: u16, body: &str) -> String {
    if !(200..300).contains(&status) {
        return String::new();
    }
    let lacks = match (body.trim(), serde_json::from_str::<serde_json::Value>(body)) {
        ("", _) => "without a body",
        (body, Err(_)) if ["event:", "data:", "id:"].iter().any(|field| body.starts_with(field)) => {
            "with an event stream under another content type than `text/event-stream`"
        }
        (_, Err(_)) => "with a body that is no JSON",
        (_, Ok(serde_json::Value::Array(_))) => "with an array (MCP has no batches since 2025-06-18)",
        (_, Ok(message)) if message.get("jsonrpc").is_none() => "with JSON that has no `jsonrpc`",
        (_, Ok(_)) => "with something else",
    };
    format!(" {lacks}, where the JSON-RPC answer to a request belongs")
}

fn challenge_suffix(challenge: &Option<String>) -> String {
    challenge.as_ref().map(|challenge| format!(" ({challenge})")).unwrap_or_default()
}

fn body_suffix(body: &str) -> String {
    match body.trim() {
        "" => String::new(),
        body => format!(": {}", shorten(body, 300)),
    }
}

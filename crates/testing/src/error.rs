//! Why a request has no answer, or not the one that was asked for.

use std::time::Duration;

use crate::records::{RpcError, RpcResponse};

/// Why a call of the client failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server answered with a JSON-RPC error.
    #[error("`{method}` failed with {error}")]
    Rpc {
        /// What was asked.
        method: String,
        /// What the server said.
        error: RpcError,
    },
    /// The server refused the caller: HTTP 401 or 403.
    #[error("the server refused the request: HTTP {status}{}{}", because(.challenge), shown(.body))]
    Refused {
        /// 401 or 403.
        status: u16,
        /// The `WWW-Authenticate` header.
        challenge: Option<String>,
        /// The body, as text.
        body: String,
    },
    /// The server does not know the session any more, and a new one could not be begun.
    #[error("the server does not know the session any more{}", shown(.body))]
    SessionGone {
        /// The body, as text.
        body: String,
    },
    /// The answer is no JSON-RPC message.
    #[error("the server answered HTTP {status}{}{}", unusable(*.status, .body), shown(.body))]
    Http {
        /// The status.
        status: u16,
        /// The body, as text.
        body: String,
    },
    /// No answer in time.
    #[error("`{method}` was not answered within {after:?}{hint}")]
    TimedOut {
        /// What was asked.
        method: String,
        /// How long was waited.
        after: Duration,
        /// What may be the reason; empty, or a sentence.
        hint: String,
    },
    /// There is no connection, or it broke.
    #[error("not connected: {0}")]
    Closed(String),
    /// This transport has no way to carry a token.
    #[error("a token cannot be sent over {0}; use `transport = streamable_http` or put it in `env`")]
    NoTokens(&'static str),
    /// The answer does not have the shape MCP gives it.
    #[error("the answer to `{method}` is not what MCP says: {problem}; it was {answer}")]
    Shape {
        /// What was asked.
        method: String,
        /// What is wrong.
        problem: String,
        /// The answer, as JSON.
        answer: String,
    },
}

impl ClientError {
    /// The JSON-RPC code, when the server gave one; also of the error that came with HTTP 401 or 403.
    pub fn code(&self) -> Option<i64> {
        self.rpc_error().map(|error| error.code)
    }

    /// The JSON-RPC error, when the server gave one.
    pub fn rpc_error(&self) -> Option<RpcError> {
        match self {
            Self::Rpc { error, .. } => Some(error.clone()),
            Self::Refused { body, .. } => RpcResponse::error_in(body)?.error(),
            _ => None,
        }
    }

    /// The HTTP status, when that was the answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } | Self::Http { status, .. } => Some(*status),
            Self::SessionGone { .. } => Some(404),
            _ => None,
        }
    }

    /// Whether the server refused the caller.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}

/// What a success lacks to be an answer. The status says enough of a failure.
fn unusable(status: u16, body: &str) -> String {
    if !(200..300).contains(&status) {
        return String::new();
    }
    let lacks = match (body.trim(), serde_json::from_str::<serde_json::Value>(body)) {
        ("", _) => "without a body",
        (_, Err(_)) => "with a body that is no JSON",
        (_, Ok(serde_json::Value::Array(_))) => "with an array (MCP has no batches since 2025-06-18)",
        (_, Ok(message)) if message.get("jsonrpc").is_none() => "with JSON that has no `jsonrpc`",
        (_, Ok(_)) => "with something else",
    };
    format!(" {lacks}, where the JSON-RPC answer to a request belongs")
}

fn because(challenge: &Option<String>) -> String {
    challenge.as_ref().map(|challenge| format!(" ({challenge})")).unwrap_or_default()
}

fn shown(body: &str) -> String {
    match body.trim() {
        "" => String::new(),
        body => format!(": {}", crate::shorten(body, 300)),
    }
}

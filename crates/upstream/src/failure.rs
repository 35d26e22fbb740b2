//! Error messages that are safe to show and say what to do.

use std::error::Error;

use rmcp::{
    ErrorData, ServiceError,
    service::ClientInitializeError,
    transport::{DynamicTransportError, streamable_http_client::StreamableHttpError},
};
use serde_json::json;

use crate::redactor::Redactor;

const LONGEST: usize = 300;

/// Why a server could not be connected to.
pub(crate) fn of_handshake(error: &ClientInitializeError, redactor: &Redactor) -> String {
    if error.is_authorization_required() || error.auth_challenge().is_some() {
        return "it refused the gateway's credentials (HTTP 401 or 403); check `auth` or `headers` of the app".to_owned();
    }
    let text = match error {
        ClientInitializeError::JsonRpcError(error) => format!("it refused the handshake: {}", error.message),
        ClientInitializeError::ConnectionClosed(_) => "it ended before it answered `initialize`".to_owned(),
        ClientInitializeError::TransportError { error, .. } => {
            format!("it cannot be reached: {}", of_transport(error))
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it speaks no version of MCP that the gateway knows".to_owned()
        }
        ClientInitializeError::Cancelled => "the gateway is ending".to_owned(),
        // The rest show whole messages of the server in their text.
        _ => "it did not answer the handshake as MCP asks".to_owned(),
    };
    redactor.line(&text, LONGEST)
}

/// The error of a call whose connection broke. `None` for [`ServiceError::TransportClosed`]: the reason is known better elsewhere.
pub(crate) fn of_call(id: &str, error: ServiceError, redactor: &Redactor) -> Option<ErrorData> {
    Some(match error {
        ServiceError::McpError(error) => redactor.error(error),
        ServiceError::TransportClosed => return None,
        ServiceError::TransportSend(error) => {
            let text = redactor.line(&of_transport(&error), LONGEST);
            failed(
                format!("the server behind `{id}` could not be reached: {text}; try again"),
                "UPSTREAM_UNREACHABLE",
            )
        }
        ServiceError::UnexpectedResponse => failed(
            format!("the server behind `{id}` answered with a result of another kind"),
            "UPSTREAM_BAD_ANSWER",
        ),
        other => failed(
            format!(
                "the call of the server behind `{id}` failed: {}",
                redactor.line(&other.to_string(), LONGEST)
            ),
            "UPSTREAM_FAILED",
        ),
    })
}

/// An internal error with one of our codes in its data.
pub(crate) fn failed(message: String, code: &str) -> ErrorData {
    ErrorData::internal_error(message, Some(json!({"code": code})))
}

/// The cause of a request that did not arrive, without the names of the library's types.
fn of_transport(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(http)) if http.is_connect() => {
            let causes = std::iter::successors(http.source(), |cause| (*cause).source());
            let last = causes.last().map_or_else(|| http.to_string(), ToString::to_string);
            format!("{last}; is it running, and is `url` right?")
        }
        Some(StreamableHttpError::Client(http)) => chain(http),
        _ => chain(&*error.error),
    }
}

/// An error and what caused it, in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

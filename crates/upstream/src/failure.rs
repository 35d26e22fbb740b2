//! Error messages that are safe to show and say what to do.
//!
//! Callers get the class of a failure. What a server wrote is for operators ([`DownReason`]), but for the JSON-RPC error of a call,
//! which is for its caller.

use std::io;

use gatewright_core::DownReason;
use rmcp::{ErrorData, ServiceError, service::ClientInitializeError, transport::DynamicTransportError};
use serde_json::json;

use crate::{
    http_error::{self, Failed, HttpError, PostError, RequestError, chain},
    redactor::Redactor,
};

/// Longest line of details, in characters.
const LONGEST: usize = 300;

/// Why a server could not be connected to.
pub(crate) fn of_handshake(error: &ClientInitializeError, redactor: &Redactor) -> DownReason {
    if error.is_authorization_required() || error.auth_challenge().is_some() {
        return "it refused the gateway's credentials (HTTP 401 or 403); check `auth` or `headers` of the app".into();
    }
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            DownReason::from("it refused the handshake").with_details(&redactor.line(&error.message, LONGEST))
        }
        ClientInitializeError::ConnectionClosed(_) => "it ended before it answered `initialize`".into(),
        ClientInitializeError::TransportError { error, .. } => of_transport(error, redactor),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it speaks no version of MCP that the gateway knows".into()
        }
        ClientInitializeError::Cancelled => "the gateway is ending".into(),
        // The rest show whole messages of the server in their text.
        _ => "it did not answer the handshake as MCP asks".into(),
    }
}

/// Returns `true` if the server refused to begin in this way, and may accept the other one.
pub(crate) fn refuses_era(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::JsonRpcError(_) => true,
        ClientInitializeError::TransportError { error: cause, .. } => {
            let status = match cause.error.downcast_ref::<PostError>() {
                Some(PostError::Status(status)) => Some(*status),
                _ => cause.error.downcast_ref::<Failed>().and_then(http_error::status),
            };
            status.is_some_and(|status| status.is_client_error()) && !error.is_authorization_required()
        }
        _ => false,
    }
}

/// Why a request of the gateway's own failed. `None` for [`ServiceError::TransportClosed`]: the reason is known better elsewhere.
pub(crate) fn of_request(error: &ServiceError, redactor: &Redactor) -> Option<DownReason> {
    Some(match error {
        ServiceError::TransportClosed => return None,
        ServiceError::McpError(error) => DownReason::from("it answered with an error")
            .with_details(&redactor.line(&error.message, LONGEST)),
        ServiceError::TransportSend(error) => of_transport(error, redactor),
        ServiceError::UnexpectedResponse => "it answered with a result of another kind".into(),
        other => {
            DownReason::from("the request failed").with_details(&redactor.line(&other.to_string(), LONGEST))
        }
    })
}

/// The way in which a request over HTTP failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestFault {
    /// The server answered with an error of HTTP.
    Refused,
    /// The connection broke that the request went over.
    Broken,
    /// Any other: nobody listens, or credentials are refused.
    Other,
}

/// The way in which a request failed.
pub(crate) fn fault(error: &ServiceError) -> RequestFault {
    let ServiceError::TransportSend(error) = error else { return RequestFault::Other };
    let of_request = |error: &RequestError| match error.is_broken() {
        true => RequestFault::Broken,
        false => RequestFault::Other,
    };
    match (error.error.downcast_ref::<Failed>(), error.error.downcast_ref::<PostError>()) {
        (Some(failed), _) if http_error::status(failed).is_some() => RequestFault::Refused,
        (Some(Failed::Client(HttpError::Request(error))), _) | (_, Some(PostError::Request(error))) => {
            of_request(error)
        }
        (_, Some(PostError::Status(_))) => RequestFault::Refused,
        _ => RequestFault::Other,
    }
}

/// The error of a call whose connection broke. `None` for [`ServiceError::TransportClosed`]: the reason is known better elsewhere.
pub(crate) async fn of_call(id: &str, error: ServiceError, redactor: &Redactor) -> Option<ErrorData> {
    let code = match error {
        ServiceError::McpError(error) => return Some(redactor.error(error).await),
        ServiceError::TransportSend(_) => "UPSTREAM_UNREACHABLE",
        ServiceError::UnexpectedResponse => "UPSTREAM_BAD_ANSWER",
        _ => "UPSTREAM_FAILED",
    };
    let why = of_request(&error, redactor)?;
    tracing::info!(app.id = id, error.code = code, why = why.in_full(), "a request to an app failed");
    let advice = if code == "UPSTREAM_UNREACHABLE" { "; try again" } else { "" };
    Some(failed(format!("a request to the server behind `{id}` failed: {why}{advice}"), code))
}

/// An internal error with one of our codes in its data.
pub(crate) fn failed(message: String, code: &str) -> ErrorData {
    ErrorData::internal_error(message, Some(json!({"code": code})))
}

/// The reason of an error of a Streamable HTTP transport, with redacted details.
pub(crate) fn of_http(error: &Failed, redactor: &Redactor) -> DownReason {
    http_error::reason(error).map_details(|details| redactor.line(details, LONGEST))
}

/// The cause of a request that did not arrive, without the names of the library's types.
fn of_transport(error: &DynamicTransportError, redactor: &Redactor) -> DownReason {
    let error = &*error.error;
    if let Some(error) = error.downcast_ref::<Failed>() {
        return of_http(error, redactor);
    }
    match error.downcast_ref::<PostError>() {
        Some(PostError::Request(error)) => error.reason(),
        Some(PostError::Status(status)) => format!("it answered with HTTP {status}").into(),
        // Pipes: the system's words, or those of `stdio`.
        None if error.is::<io::Error>() => chain(error).into(),
        None => DownReason::from("the connection broke").with_details(&redactor.line(&chain(error), LONGEST)),
    }
}

//! Errors of requests to servers over HTTP. None of them names the URL, which may have secrets in it.

use std::{error::Error, fmt, io};

use gatewright_core::DownReason;
use http::StatusCode;
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// An error of a Streamable HTTP transport.
pub(crate) type Failed = StreamableHttpError<HttpError>;

/// An error of the HTTP client, without the URL.
#[derive(Debug)]
pub(crate) struct RequestError(reqwest::Error);

impl From<reqwest::Error> for RequestError {
    fn from(error: reqwest::Error) -> Self {
        Self(error.without_url())
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&chain(&self.0))
    }
}

impl Error for RequestError {}

impl RequestError {
    /// Returns `true` if there was a connection, and it broke.
    pub(crate) fn is_broken(&self) -> bool {
        !self.0.is_connect() && !self.0.is_timeout()
    }

    /// The kind of the error for callers, with its causes as details.
    pub(crate) fn reason(&self) -> DownReason {
        let causes = std::iter::successors(self.0.source(), |cause| (*cause).source());
        let kinds = causes.filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
        let kind = kinds.filter(|kind| *kind != io::ErrorKind::Other).last().map(|kind| kind.to_string());
        let summary = if self.0.is_connect() {
            let kind = match () {
                () if self.0.is_dns() => "its host name cannot be resolved".to_owned(),
                () if self.0.is_timeout() => "no connection in time".to_owned(),
                () => kind.unwrap_or_else(|| "no connection".to_owned()),
            };
            format!("it cannot be reached: {kind}; is it running, and is `url` right?")
        } else if self.0.is_timeout() {
            "it did not answer in time".to_owned()
        } else if let Some(status) = self.0.status() {
            format!("it answered with HTTP {status}")
        } else {
            format!("the connection broke: {}", kind.as_deref().unwrap_or("there was no whole answer"))
        };
        DownReason::from(summary).with_details(&self.to_string())
    }
}

/// A request that was not answered as MCP asks. Debug is Display: rmcp logs it, and what the server wrote is not redacted here.
#[derive(thiserror::Error)]
pub(crate) enum HttpError {
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A status that is no success, and the body.
    #[error("it answered with HTTP {0}")]
    Status(StatusCode, String),
    /// An answer that is not MCP, and how.
    #[error("its answer is not a message of MCP")]
    NotMcp(String),
    /// The gateway has no token for the request.
    #[error("{0}")]
    NoToken(String),
}

impl fmt::Debug for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A message that was not delivered over HTTP+SSE.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PostError {
    #[error("the message could not be posted: {0}")]
    Request(RequestError),
    #[error("the server answered a message with HTTP {0}")]
    Status(StatusCode),
}

impl From<RequestError> for Failed {
    fn from(error: RequestError) -> Self {
        Self::Client(error.into())
    }
}

/// An error of rmcp's own HTTP client, without the URL.
pub(crate) fn without_url(error: StreamableHttpError<reqwest::Error>) -> Failed {
    use StreamableHttpError as E;
    match error {
        E::Client(error) => RequestError::from(error).into(),
        E::HttpStatus(error) => E::HttpStatus(error),
        E::AuthRequired(error) => E::AuthRequired(error),
        E::InsufficientScope(error) => E::InsufficientScope(error),
        E::ServerDoesNotSupportSse => E::ServerDoesNotSupportSse,
        E::ServerDoesNotSupportDeleteSession => E::ServerDoesNotSupportDeleteSession,
        E::UnexpectedContentType(kind) => E::UnexpectedContentType(kind),
        E::ReservedHeaderConflict(name) => E::ReservedHeaderConflict(name),
        E::SessionExpired => E::SessionExpired,
        other => E::UnexpectedServerResponse(other.to_string().into()),
    }
}

/// The status of the answer, where that is what failed.
pub(crate) fn status(error: &Failed) -> Option<StatusCode> {
    match error {
        Failed::Client(HttpError::Status(status, _)) => Some(*status),
        Failed::HttpStatus(error) => StatusCode::from_u16(error.status).ok(),
        Failed::SessionExpired => Some(StatusCode::NOT_FOUND),
        _ => None,
    }
}

/// The class of the error for callers, with what the server wrote as details.
pub(crate) fn reason(error: &Failed) -> DownReason {
    if let Some(status) = status(error) {
        let body = match error {
            Failed::Client(HttpError::Status(_, body)) => body,
            _ => "",
        };
        return DownReason::from(format!("it answered with HTTP {status}")).with_details(body);
    }
    match error {
        Failed::Client(HttpError::Request(error)) => error.reason(),
        Failed::Client(error @ HttpError::NotMcp(how)) => {
            DownReason::from(error.to_string()).with_details(how)
        }
        Failed::Client(error) => error.to_string().into(),
        Failed::UnexpectedContentType(kind) => {
            DownReason::from("its answer is neither JSON nor an event stream")
                .with_details(&format!("content type: {}", kind.as_deref().unwrap_or("none")))
        }
        Failed::AuthRequired(_) | Failed::InsufficientScope(_) => {
            "it refused the gateway's credentials (HTTP 401 or 403)".into()
        }
        Failed::ServerDoesNotSupportSse => "it offers no event stream (HTTP 405)".into(),
        Failed::ResponseBodyTooLarge { .. } => error.to_string().into(),
        Failed::UnexpectedEndOfStream | Failed::TransportChannelClosed => "the connection was closed".into(),
        other => DownReason::from("its answer is not what MCP asks for").with_details(&chain(other)),
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

//! Failures of calls, as errors of their tools.
//!
//! Texts never hold a URL, which may have a key in it, and what a server wrote passes the redactor before.

use std::{error::Error, io};

use gatewright_core::codes;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::{bounded::Full, traffic::TOO_MUCH};

/// Bytes of the name of an argument in an error.
const LONGEST_NAME: usize = 100;

/// Why a call has no result. Display is for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// An argument cannot be sent.
    #[error("argument `{argument}` {problem}")]
    Argument {
        /// Its name.
        argument: String,
        /// The problem.
        problem: String,
    },
    /// A part of the request would be too long.
    #[error("the call {0}")]
    TooLong(String),
    /// It is not known where to send the request.
    #[error("the address of the API is not known: {0}; the operator of the gateway has to set `baseUrl`")]
    NoServer(String),
    /// The operator configured no credentials for any alternative of the operation.
    #[error(
        "the operation needs credentials that the gateway does not have ({0}); the operator of the gateway has to add them to `auth` of the app"
    )]
    NoCredentials(String),
    /// No token for the gateway.
    #[error("the gateway got no access token for the API: {0}")]
    NoToken(String),
    /// The user has to sign in first, for these scopes.
    #[error("the operation needs a token of the user, who has not signed in at the API")]
    SignIn(Vec<String>),
    /// No token of the user.
    #[error("the API cannot be called for you: {0}")]
    NoUserToken(String),
    /// The address is private, or not https.
    #[error(
        "the gateway does not send requests to the address of the API: {0}; the operator of the gateway may set `allowPrivate`"
    )]
    Refused(String),
    /// No connection, or one that broke.
    #[error("the API cannot be reached: {0}; try again later")]
    Unreachable(String),
    /// The answer does not fit.
    #[error(
        "the answer of the API has more than {0} bytes; ask for less at once, such as a smaller page or fewer fields"
    )]
    TooLarge(usize),
    /// The answer cannot be used.
    #[error("the answer of the API cannot be used: {0}")]
    BadAnswer(String),
    /// The caller may have no more pages.
    #[error("a page more is not allowed: {why}")]
    NoPage {
        /// Its code.
        code: String,
        /// The reason.
        why: String,
    },
    /// There is no memory for the answer.
    #[error("{0}")]
    NoRoom(String),
}

impl CallError {
    /// A problem of an argument, whose name the caller may have chosen.
    pub(crate) fn argument(argument: &str, problem: impl Into<String>) -> Self {
        let argument = argument[..argument.floor_char_boundary(LONGEST_NAME)].to_owned();
        Self::Argument { argument, problem: problem.into() }
    }

    /// Its stable code.
    fn code(&self) -> &str {
        match self {
            Self::Argument { .. } | Self::TooLong(_) => codes::VALIDATION_ERROR,
            Self::NoServer(_) => "OPENAPI_NO_SERVER",
            Self::NoCredentials(_) => "CREDENTIALS_MISSING",
            Self::SignIn(_) => codes::AUTHORIZATION_REQUIRED,
            Self::NoUserToken(_) => "UPSTREAM_AUTHORIZATION",
            Self::NoToken(_) => "CREDENTIALS_REFUSED",
            Self::Refused(_) => "ADDRESS_REFUSED",
            Self::Unreachable(_) => "UPSTREAM_UNREACHABLE",
            Self::NoPage { code, .. } => code.as_str(),
            Self::TooLarge(_) | Self::NoRoom(_) => "UPSTREAM_TOO_LARGE",
            Self::BadAnswer(_) => "UPSTREAM_BAD_ANSWER",
        }
    }

    pub(crate) fn into_result(self) -> CallToolResult {
        error(self.to_string(), json!({"code": self.code(), "message": self.to_string()}))
    }
}

impl From<Full> for CallError {
    fn from(full: Full) -> Self {
        Self::TooLong(full.to_string())
    }
}

/// A tool error with a text for the model, and a body for programs.
pub(crate) fn error(message: String, body: Value) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(message)]);
    result.structured_content = Some(body);
    result
}

/// The kind of an error of a connection, without texts of the server.
pub(crate) fn reason(error: &(dyn Error + 'static), is_connect: bool) -> String {
    let causes = || std::iter::successors(Some(error), |cause| (*cause).source());
    let says = |text| causes().any(|cause| cause.to_string().contains(text));
    if says("no public address") {
        return "its name has no public address".to_owned();
    }
    let kinds = causes().filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    let kind = kinds.filter(|kind| *kind != io::ErrorKind::Other).last();
    match kind {
        Some(io::ErrorKind::TimedOut) => "no answer in time".to_owned(),
        _ if is_connect => kind.map_or_else(|| "no connection".to_owned(), |kind| kind.to_string()),
        _ if says(TOO_MUCH) => format!("the connection broke: {TOO_MUCH}"),
        Some(kind) => format!("the connection broke: {kind}"),
        None => "the connection broke: there was no whole answer".to_owned(),
    }
}

/// Returns `true` if the server did not begin with the request, by its own word (RFC 9113 §8.7).
pub(crate) fn is_unprocessed(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |cause| (*cause).source())
        .filter_map(|cause| cause.downcast_ref::<h2::Error>())
        .filter(|error| error.is_remote())
        .any(|error| match error.reason() {
            Some(h2::Reason::NO_ERROR) => error.is_go_away(),
            Some(h2::Reason::REFUSED_STREAM) => error.is_reset(),
            _ => false,
        })
}

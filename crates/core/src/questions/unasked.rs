//! Questions that were not asked or answered, and why.

use std::time::Duration;

use rmcp::{ErrorData, model::ErrorCode};
use serde_json::json;

/// Why a client was not asked, or its answer is of no use.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotAsk {
    /// It did not declare this capability.
    #[error("the client did not declare the capability `{0}`")]
    Capability(&'static str),
    /// It is of the era without sessions, where a result asks (`input_required`) and no request.
    #[error("the client's protocol version (2026-07-28 or later) has no requests from server to client")]
    Stateless,
    /// It asked for nothing more, or its connection ended.
    #[error("the client went away before it answered")]
    Gone,
    /// It was asked and did not answer in time.
    #[error("nobody answered within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It answered with an error.
    #[error("the client refused the question: {}", .0.message)]
    Refused(ErrorData),
    /// Too many calls of this caller, or of all, wait for answers; or this one asks too much at once.
    #[error("too many questions wait for answers already")]
    Busy,
    /// The call has asked [`MOST_ROUNDS`](super::MOST_ROUNDS) times.
    #[error("it has asked {} times already", super::MOST_ROUNDS)]
    Rounds,
    /// The call has asked [`MOST_QUESTIONS`](super::MOST_QUESTIONS) questions.
    #[error("it has asked {} questions already, or asks more than that", super::MOST_QUESTIONS)]
    TooMany,
    /// The questions of a call of a script, or the state beside them, have more than [`MOST_QUESTION_BYTES`](super::MOST_QUESTION_BYTES) bytes.
    #[error("its questions or its state have more than {} bytes", super::MOST_QUESTION_BYTES)]
    TooLong,
    /// The request is none of those during which a server may ask.
    #[error("a server may ask only while it works on a tool, a resource or a prompt")]
    NoCall,
    /// It sends the user to an address of another scheme.
    #[error("the user is sent to addresses of https and http only")]
    Address,
    /// The answer is not needed any more.
    #[error("the call this belongs to is over")]
    CallOver,
    /// It asked the user, who did not agree.
    #[error("the user did not agree")]
    Declined,
    /// It answered something else.
    #[error("the client's answer does not fit the question")]
    BadAnswer,
}

impl CannotAsk {
    /// The answer to a server whose question this is about.
    pub fn into_error(self) -> ErrorData {
        let (code, message) = match self {
            Self::Refused(error) => return error,
            Self::Capability(capability) => {
                ("CALLER_CANNOT_BE_ASKED", format!("the caller has no `{capability}` capability"))
            }
            Self::Stateless => (
                "CALLER_CANNOT_BE_ASKED",
                "the caller's protocol version (2026-07-28 or later) has no requests from server to client, and this call cannot wait for \
                 another request of it"
                    .to_owned(),
            ),
            Self::Gone => ("CALLER_GONE", self.to_string()),
            Self::TimedOut(_) => ("CALLER_TIMED_OUT", self.to_string()),
            Self::CallOver => ("CALL_OVER", self.to_string()),
            Self::NoCall | Self::Address => ("CALLER_CANNOT_BE_ASKED", self.to_string()),
            Self::Busy | Self::Rounds | Self::TooMany | Self::TooLong => ("CALLER_BUSY", self.to_string()),
            Self::Declined => ("CALLER_DECLINED", self.to_string()),
            Self::BadAnswer => ("CALLER_BAD_ANSWER", self.to_string()),
        };
        ErrorData::new(ErrorCode::INVALID_REQUEST, message, Some(json!({"code": code})))
    }
}

/// A question that nobody could be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Unasked {
    /// A line about it.
    pub asks: String,
    /// Why it was not asked or answered.
    pub why: CannotAsk,
    /// The error that the app ended with, if the question came during the call.
    pub said: Option<String>,
}

impl Unasked {
    /// A question of which `asks` is an outline.
    pub fn new(asks: impl Into<String>, why: CannotAsk) -> Self {
        Self { asks: asks.into(), why, said: None }
    }
}

impl std::fmt::Display for Unasked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { asks, why, .. } = self;
        write!(f, "It asks {asks}, and {why}")?;
        match why {
            CannotAsk::Capability(_) | CannotAsk::Stateless => f.write_str(
                "; call it from a client that can answer, or with arguments that answer it already",
            ),
            CannotAsk::TimedOut(_) | CannotAsk::Gone | CannotAsk::Busy => f.write_str("; call it again"),
            CannotAsk::Refused(_)
            | CannotAsk::Declined
            | CannotAsk::BadAnswer
            | CannotAsk::Rounds
            | CannotAsk::TooMany
            | CannotAsk::TooLong
            | CannotAsk::NoCall
            | CannotAsk::Address
            | CannotAsk::CallOver => Ok(()),
        }
    }
}

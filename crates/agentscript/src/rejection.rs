//! The reason why the validator rejects a text.

use crate::outcome::{IllegalKind, Location, RunError};

/// The reason why a text may not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The text is not JavaScript.
    #[error("{message} ({}:{})", location.line, location.column)]
    SyntaxError {
        /// The parser's message.
        message: String,
        /// Place in the caller's text.
        location: Location,
    },
    /// The text breaks a rule.
    #[error("{kind}: {message} ({}:{})", location.line, location.column)]
    Illegal {
        /// The rule.
        kind: IllegalKind,
        /// Advice for the author.
        message: String,
        /// Place in the caller's text.
        location: Location,
    },
}

impl From<Rejection> for RunError {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::SyntaxError { message, location } => Self::SyntaxError { message, location },
            Rejection::Illegal { kind, message, location } => {
                Self::IllegalAccess { kind, message, location: Some(location) }
            }
        }
    }
}

//! Errors of executions.

use gatewright_core::{NoShare, RecordsError};

/// A failure of a step with an execution. Display is safe to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutionError {
    /// No execution of this id that the caller may see. Ids that were never given out, that belong to another principal or that have expired
    /// are not told apart.
    #[error("there is no such execution: check the id; executions are forgotten after a while")]
    NotFound,
    /// It began with scopes that the caller's token lacks.
    #[error(
        "the execution began with scopes that this token lacks, and its answers may rest on them; use a token that has them all"
    )]
    ScopesMissing,
    /// An instance runs it at the moment.
    #[error("the execution is running; ask again in a moment")]
    Busy,
    /// It has ended.
    #[error(
        "the execution has ended: its result was given to the request that waited for it, or it was cancelled"
    )]
    Ended,
    /// Its journal is damaged, or was sealed with another key.
    #[error("the journal of the execution cannot be read")]
    Unreadable,
    /// Whoever began it may not use the gateway any more.
    #[error(
        "the execution was ended while it went on without a client: the access of whoever began it has been revoked; start it again"
    )]
    AccessEnded,
    /// Another instance goes on with it, or it was cancelled. Whoever gets this must stop the run.
    #[error("the execution has been taken over by another instance, or was cancelled")]
    LeaseLost,
    /// Its journal would be larger than `maxJournalBytes`.
    #[error(
        "the calls of the script and their answers take more room than one execution has; request less data in one script"
    )]
    TooLarge,
    /// The principal has as many open executions as one may have, or they take as much room.
    #[error("too many executions wait or run in the background; answer or cancel some of them first")]
    TooMany,
    /// There are as many open executions as the gateway keeps, or they take as much room.
    #[error("the gateway keeps as many executions as it can; try again later")]
    Full,
    /// The store does not answer.
    #[error("the store of executions does not answer; try again in a moment")]
    Unavailable,
}

impl ExecutionError {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::NotFound => "EXECUTION_NOT_FOUND",
            Self::ScopesMissing => "EXECUTION_SCOPES_MISSING",
            Self::Busy => "EXECUTION_BUSY",
            Self::Ended => "EXECUTION_ENDED",
            Self::Unreadable => "EXECUTION_UNREADABLE",
            Self::AccessEnded => "EXECUTION_ACCESS_ENDED",
            Self::LeaseLost => "EXECUTION_TAKEN_OVER",
            Self::TooLarge => "EXECUTION_TOO_LARGE",
            Self::TooMany => "TOO_MANY_EXECUTIONS",
            Self::Full => "EXECUTIONS_FULL",
            Self::Unavailable => "EXECUTIONS_UNAVAILABLE",
        }
    }
}

impl From<NoShare> for ExecutionError {
    fn from(why: NoShare) -> Self {
        match why {
            NoShare::Room => Self::Full,
            NoShare::Share => Self::TooMany,
        }
    }
}

impl From<RecordsError> for ExecutionError {
    fn from(error: RecordsError) -> Self {
        match error {
            RecordsError::Full => Self::Full,
            _ => Self::Unavailable,
        }
    }
}

//! Readers of executions, and what they get.

use std::fmt;

use gatewright_core::Principal;

use crate::{ExecutionError, Head};

/// Reader of an execution.
#[derive(Debug, Clone, Copy)]
pub enum Reader<'a> {
    /// A principal, who sees executions of the same subject and client, and reads those that began with no scope that it lacks.
    Owner(&'a Principal),
    /// The user of this subject, who sees and reads all executions of it, with whatever client and scopes they began.
    Subject(&'a str),
    /// An operator, who sees all.
    Operator,
}

impl Reader<'_> {
    pub(crate) fn may_see(self, head: &Head) -> bool {
        match self {
            Self::Owner(principal) => head.is_of(principal),
            Self::Subject(subject) => *head.owner.subject == *subject,
            Self::Operator => true,
        }
    }

    /// Checks that it may have the journal of an execution that it sees: the answers in it took the scopes of the caller who began it. Its groups do not
    /// count: tokens differ in scopes, and its user is the same.
    pub(crate) fn check_scopes(self, head: &Head) -> Result<(), ExecutionError> {
        match self {
            Self::Owner(principal) if !principal.scopes.allows_all(&head.owner.scopes) => {
                Err(ExecutionError::ScopesMissing)
            }
            Self::Owner(_) | Self::Subject(_) | Self::Operator => Ok(()),
        }
    }
}

/// An execution with its journal.
#[derive(Clone)]
pub struct Execution {
    /// Its description.
    pub head: Head,
    /// The chunks of its journal. None if it was too large to be kept; see [`Head::complete`].
    pub chunks: Vec<Vec<u8>>,
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").field("head", &self.head).finish_non_exhaustive()
    }
}

/// An execution in a list.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its description.
    pub head: Head,
    /// Returns `true` if an instance has its lease. A running one without is waiting to be taken over, or for its client.
    pub held: bool,
}

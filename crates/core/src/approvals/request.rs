//! The answer to a call that needs an approval, and marks of calls that say how it is asked for.

use std::fmt;

use rmcp::model::InputRequiredResult;

/// A call that waits for an approval, as its caller learns of it.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// Id of the [`ApprovalRecord`](super::ApprovalRecord).
    pub id: String,
    /// The page on which it is given, if there is one.
    pub page: Option<String>,
    /// The scope whose holders give it; none: the caller.
    pub approvers: Option<String>,
    /// The question for the caller, if the caller may give it: for those who can ask later.
    pub asks: Option<Box<InputRequiredResult>>,
}

/// Why an approval was not requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotRequested {
    /// Too many approvals of the caller, or of all callers, wait.
    #[error("too many approvals wait; decide on some, or make the call again when they have expired")]
    TooMany,
    /// The store does not answer.
    #[error("the store of approvals does not answer; make the call again")]
    Store,
}

impl ApprovalRequest {
    /// Says who gives it where.
    pub fn place(&self) -> String {
        let approvers = match &self.approvers {
            Some(scope) => format!(" for somebody else with the scope `{scope}`"),
            None => String::new(),
        };
        let page = match &self.page {
            Some(page) => format!(" at {page}"),
            None => ", which an operator gives on the console".to_owned(),
        };
        format!("approval {} waits{approvers}{page}", self.id)
    }
}

impl fmt::Display for ApprovalRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; make the same call again once it is given", self.place())
    }
}

/// The call of a script under way: an extension of the context of each call that a script makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptStep(pub u32);

/// Marks a call that is only tried: it asks nobody for an approval. An extension of its context.
#[derive(Debug, Clone, Copy)]
pub struct Rehearsed;

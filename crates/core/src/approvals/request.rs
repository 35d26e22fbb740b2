//! The answer to a request that needs an approval, and marks of requests that say how it is asked for.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::model::InputRequiredResult;

use crate::Decision;

/// A request that waits for an approval, as its caller learns of it.
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
    /// Time at which it expires, in milliseconds since 1970-01-01 UTC.
    pub expires_ms: u64,
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
        write!(f, "{}; make the same request again once it is given", self.place())
    }
}

/// The call of a script under way: an extension of the context of each call that a script makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptStep(pub u32);

/// Marks a request that is only tried: an extension of its context, which learns what the policies say. Nobody is asked for an approval, none
/// that was given is used up, and a request that needs one is answered by a question without content.
#[derive(Debug, Clone)]
pub struct Rehearsed {
    is_made: bool,
    learned: Arc<Mutex<Option<Learned>>>,
}

#[derive(Debug, Clone)]
struct Learned {
    decision: Decision,
    stands: bool,
}

impl Rehearsed {
    /// For a request that is made, if the policies and the approvals that stand let it pass.
    pub fn made() -> Self {
        Self { is_made: true, learned: Arc::default() }
    }

    /// For a request that is not made: it is answered by a question without content, too.
    pub fn unmade() -> Self {
        Self { is_made: false, ..Self::made() }
    }

    /// The decision of the policies, once they were asked.
    pub fn decision(&self) -> Option<Decision> {
        self.learned().as_ref().map(|learned| learned.decision.clone())
    }

    /// Returns `true` if an approval that stands covers the request.
    pub fn is_approved(&self) -> bool {
        self.learned().as_ref().is_some_and(|learned| learned.stands)
    }

    /// Returns `true` if the request reached its app.
    pub fn has_passed(&self) -> bool {
        self.is_made
            && self.learned().as_ref().is_some_and(|learned| match learned.decision {
                Decision::Permit => true,
                Decision::Ask { .. } => learned.stands,
                Decision::Forbid(_) => false,
            })
    }

    pub(crate) fn note(&self, decision: &Decision) {
        *self.learned() = Some(Learned { decision: decision.clone(), stands: false });
    }

    pub(super) fn is_made(&self) -> bool {
        self.is_made
    }

    pub(super) fn note_standing(&self) {
        if let Some(learned) = &mut *self.learned() {
            learned.stands = true;
        }
    }

    fn learned(&self) -> std::sync::MutexGuard<'_, Option<Learned>> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks a call whose approval expired while it waited for it: it is not asked for again. An extension of its context.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalExpired;

//! Proofs that policies were asked about a request. Only with one there is the [`CallContext`](super::CallContext) that calls of apps take.

use std::{sync::Arc, time::SystemTime};

use rmcp::{
    ErrorData, RoleServer,
    model::{ErrorCode, JsonObject},
    service::RequestContext,
};
use serde_json::json;

use super::permit::Permit;
use crate::{Approved, Decision, Forbidden, PolicyObject, PolicyRequest, RequestDigest, ScriptRun, codes};

/// Proof that policies were asked about a request and let it pass. Nothing else makes a `CallContext`.
#[derive(Debug, Clone)]
pub(super) struct Cleared(());

impl Cleared {
    /// For a request on which policies decided so, if they permit it.
    pub(super) fn by_decision(decision: &Decision) -> Option<Self> {
        (*decision == Decision::Permit).then_some(Self(()))
    }

    /// For a request about one that was decided on when it was made: a task of a call.
    pub(super) fn with_its_call() -> Self {
        Self(())
    }

    /// For a request that was approved, if it is exactly this one.
    pub(super) fn by_approval(needed: &NeededApproval, approved: Approved) -> Option<Self> {
        (needed.digest == approved.0).then_some(Self(()))
    }

    /// For a request that returns nothing of its object but names, of which the view decides: the completion of an argument.
    pub(super) fn with_the_view() -> Self {
        Self(())
    }
}

/// The approval that a request needs.
#[derive(Debug, Clone)]
pub(crate) struct NeededApproval {
    pub(crate) policy: Arc<str>,
    pub(crate) reason: Arc<str>,
    /// One that was given for longer counts.
    pub(crate) may_stand: bool,
    /// The scope whose holders give it.
    pub(crate) approvers: Option<Arc<str>>,
    pub(crate) digest: RequestDigest,
}

impl From<Forbidden> for ErrorData {
    fn from(why: Forbidden) -> Self {
        let data = json!({"code": codes::ACCESS_DENIED, "policy": why.policy().map(|policy| &**policy)});
        Self::new(ErrorCode::INVALID_REQUEST, format!("this is not available: {why}"), Some(data))
    }
}

/// The decision of the policies on a request of the caller of `permit`. A tool call of a script counts as one of its calls.
pub(super) fn decision(
    permit: &Permit,
    object: PolicyObject<'_>,
    arguments: &JsonObject,
    context: &RequestContext<RoleServer>,
) -> Decision {
    let run = context.extensions.get::<ScriptRun>();
    let calls = match (run, object) {
        (Some(run), PolicyObject::Tool(_)) => run.count(),
        (Some(run), _) => run.calls(),
        (None, _) => 0,
    };
    let request = || PolicyRequest {
        principal: permit.caller().principal(),
        object,
        arguments: Some(arguments),
        script: run.is_some(),
        calls,
        time: SystemTime::now(),
    };
    permit.decide(object, request)
}

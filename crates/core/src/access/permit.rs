//! Permits and call contexts: what the methods of an [`App`](crate::App) take, as proof of who calls.
//!
//! Objects that a caller may use are in `permitted`.

use std::sync::Arc;

use rmcp::{RoleServer, service::RequestContext};

use super::{Caller, decided::Cleared, endpoint::Reach};
use crate::{
    Approvals, Decision, Forbidden, Policies, PolicyObject, PolicyRequest, Principal, protocol::Era,
};

/// Proof that a [`View`](super::View) lets a caller use something. Nothing else makes one.
#[derive(Debug, Clone)]
pub struct Permit {
    caller: Caller,
    /// Policies on its requests, if there are any.
    policies: Option<Arc<Policies>>,
    /// The selection of its endpoint.
    reach: Reach,
}

impl Permit {
    pub(super) fn new(caller: Caller, policies: Option<Arc<Policies>>, reach: Reach) -> Self {
        Self { caller, policies, reach }
    }

    /// The part of the gateway that the caller reaches.
    pub(super) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The caller that was permitted.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The decision of the policies on a request for `object`.
    pub(super) fn decide<'a>(
        &self,
        object: PolicyObject<'_>,
        request: impl FnOnce() -> PolicyRequest<'a>,
    ) -> Decision {
        if !self.reach.has(&object) {
            return Decision::Forbid(Forbidden::NotPermitted);
        }
        match (&self.policies, object) {
            (Some(policies), _) => policies.decide(&request()),
            (None, PolicyObject::Tool(tool)) => Approvals::default().decide(&tool),
            (None, _) => Decision::Permit,
        }
    }

    /// The terms on which approvals are given.
    pub(super) fn approvals(&self) -> Approvals {
        self.policies.as_ref().map(|policies| policies.approvals.clone()).unwrap_or_default()
    }

    /// Returns `false` if no request of the caller for `object` can pass its endpoint and the policies.
    pub(super) fn may(&self, object: &PolicyObject<'_>) -> bool {
        self.reach.has(object)
            && self
                .policies
                .as_ref()
                .is_none_or(|policies| policies.may_permit(self.caller.principal(), object))
    }

    /// The context of a request that the policies let pass.
    pub(super) fn context(&self, _: Cleared, mut request: RequestContext<RoleServer>) -> CallContext {
        // For handlers in this process, which see the request only.
        if Principal::of(&request).is_none() {
            request.extensions.insert(Principal::clone(self.caller.principal()));
        }
        CallContext { permit: self.clone(), request }
    }
}

/// One request to an app: on whose behalf, and the request itself.
#[derive(Debug, Clone)]
pub struct CallContext {
    permit: Permit,
    request: RequestContext<RoleServer>,
}

impl CallContext {
    /// The caller.
    pub fn caller(&self) -> &Caller {
        self.permit.caller()
    }

    /// The principal of the caller.
    pub fn principal(&self) -> &Arc<Principal> {
        self.permit.caller.principal()
    }

    /// The request. Its `peer` is the caller's own connection: progress, logging, elicitation and sampling reach it.
    pub fn request(&self) -> &RequestContext<RoleServer> {
        &self.request
    }

    /// The request alone.
    pub fn into_request(self) -> RequestContext<RoleServer> {
        self.request
    }

    /// The protocol era of the request.
    pub fn era(&self) -> Era {
        Era::of(&self.request)
    }
}

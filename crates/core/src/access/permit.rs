//! Permits and call contexts: what the methods of an [`App`](crate::App) take, as proof of who calls.
//!
//! Objects that a caller may use are in `permitted`.

use std::sync::Arc;

use rmcp::{RoleServer, service::RequestContext};

use super::Caller;
use crate::{Principal, protocol::Era};

/// Proof that a [`View`](super::View) lets a caller use something. Nothing else makes one.
#[derive(Debug, Clone)]
pub struct Permit {
    caller: Caller,
}

impl Permit {
    pub(super) fn new(caller: Caller) -> Self {
        Self { caller }
    }

    /// The caller that was permitted.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(super) fn context(&self, mut request: RequestContext<RoleServer>) -> CallContext {
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

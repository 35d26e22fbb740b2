//! Requests for objects of apps that policies decide on: calls of tools, reads of resources, and prompts. Only a decision makes one that
//! reaches an app.

use std::fmt;

use rmcp::{ErrorData, RoleServer, model::JsonObject, service::RequestContext};

use super::{
    CallContext, Caller,
    decided::{Cleared, NeededApproval, decision},
    permit::Permit,
};
use crate::{
    AppEntry, AppFuture, Approvals, Approved, Decision, Forbidden, PolicyObject, Rehearsed, RequestDigest,
    RequestObject,
    bulk::{bulk_of, off_thread},
    questions::{Answers, Asking},
};

/// An object that its caller may use, if the policies let the request pass.
pub(crate) trait Requested: Clone + fmt::Debug + Send + Sync + 'static {
    /// Parameters of the request.
    type Params: Clone + fmt::Debug + Send + Sync + 'static;
    /// The app's response.
    type Response: Asking;

    /// The permit of the caller.
    fn permit(&self) -> &Permit;

    /// The app.
    fn owner(&self) -> &AppEntry;

    /// The object that policies see in it.
    fn policy_object(&self) -> PolicyObject<'_>;

    /// The object as approvals name it.
    fn request_object(&self) -> RequestObject;

    /// The arguments that policies see.
    fn arguments(params: &Self::Params) -> Option<&JsonObject>;

    /// Sends the request to the app, with `answers` to what it asked before.
    fn send(
        self,
        params: Self::Params,
        answers: Answers,
        context: CallContext,
    ) -> AppFuture<'static, Result<Self::Response, ErrorData>>;
}

/// A request that the policies do not forbid.
#[derive(Debug)]
pub(crate) enum Decided<O: Requested> {
    Passes(DecidedRequest<O>),
    Asks(PendingRequest<O>),
}

/// A request that passes once it is approved, with the arguments that the policies saw.
#[derive(Debug)]
pub(crate) struct PendingRequest<O: Requested> {
    object: O,
    params: O::Params,
    needed: NeededApproval,
}

impl<O: Requested> PendingRequest<O> {
    pub(crate) fn caller(&self) -> &Caller {
        self.object.permit().caller()
    }

    /// The object as approvals name it.
    pub(crate) fn object(&self) -> RequestObject {
        self.object.request_object()
    }

    pub(crate) fn arguments(&self) -> JsonObject {
        O::arguments(&self.params).cloned().unwrap_or_default()
    }

    /// The approval that it needs.
    pub(crate) fn needed(&self) -> &NeededApproval {
        &self.needed
    }

    /// The terms on which approvals are given.
    pub(crate) fn terms(&self) -> Approvals {
        self.object.permit().approvals()
    }

    /// The request, if `approved` is exactly this one.
    pub(crate) fn approved(self, approved: Approved) -> Option<DecidedRequest<O>> {
        let cleared = Cleared::by_approval(&self.needed, approved)?;
        Some(DecidedRequest { object: self.object, params: self.params, cleared })
    }
}

/// A request that the policies let pass, with the arguments that they saw.
#[derive(Debug, Clone)]
pub(crate) struct DecidedRequest<O: Requested> {
    object: O,
    params: O::Params,
    cleared: Cleared,
}

impl<O: Requested> DecidedRequest<O> {
    pub(crate) fn object(&self) -> &O {
        &self.object
    }

    /// Sends it, with `answers` to what the app asked before.
    pub(crate) async fn make(
        self,
        answers: Answers,
        request: RequestContext<RoleServer>,
    ) -> Result<O::Response, ErrorData> {
        let Self { object, params, cleared } = self;
        let context = object.permit().context(cleared, request);
        object.send(params, answers, context).await
    }
}

/// Asks the policies about a request for `object`.
///
/// # Errors
/// They forbid it.
pub(crate) async fn decide<O: Requested>(
    object: &O,
    params: O::Params,
    context: &RequestContext<RoleServer>,
) -> Result<Decided<O>, Forbidden> {
    let none = JsonObject::new();
    let arguments = O::arguments(&params).unwrap_or(&none);
    let decision = decision(object.permit(), object.policy_object(), arguments, context);
    if let Some(rehearsed) = context.extensions.get::<Rehearsed>() {
        rehearsed.note(&decision);
    }
    let object = object.clone();
    if let Some(cleared) = Cleared::by_decision(&decision) {
        return Ok(Decided::Passes(DecidedRequest { object, params, cleared }));
    }
    let (policy, reason, may_stand, approvers) = match decision {
        Decision::Ask { policy, reason, may_stand, approvers } => (policy, reason, may_stand, approvers),
        Decision::Forbid(why) => return Err(why),
        Decision::Permit => return Err(Forbidden::NotPermitted),
    };
    let (name, size, arguments) =
        (object.request_object().to_string(), bulk_of(arguments), arguments.clone());
    let digest = off_thread(size, move || RequestDigest::of(&name, &arguments)).await;
    let needed = NeededApproval { policy, reason, may_stand, approvers, digest };
    let pending = PendingRequest { object, params, needed };
    Ok(match context.extensions.get::<Approved>() {
        Some(approved) if approved.0 == digest => {
            Decided::Passes(pending.approved(*approved).expect("it is its own digest"))
        }
        _ => Decided::Asks(pending),
    })
}

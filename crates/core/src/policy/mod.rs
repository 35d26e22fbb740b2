//! Policies: rules on single requests, beside scopes.
//!
//! [`PolicyEngine`] is what an engine implements; the crate `gatewright-policy` has one for Cedar. Approvals of the configuration are in
//! `approval`, digests of requests in `digest`, names of their objects in `object`. The policies are asked in `access`: nothing reaches an app before.

mod approval;
mod digest;
mod effects;
mod object;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use rmcp::model::JsonObject;

pub use approval::{Approval, Approvals};
pub use digest::{Approved, RequestDigest};
pub use effects::Effects;
pub use object::RequestObject;

use crate::Principal;

/// Decides what callers may do, beyond their scopes.
pub trait PolicyEngine: fmt::Debug + Send + Sync + 'static {
    /// Decides one request. Called for every request: it must not block, and its work must have a bound that `arguments` cannot move.
    fn decide(&self, request: &PolicyRequest<'_>) -> Decision;

    /// Returns `false` if no request of `principal` for `object` can be permitted, whatever its arguments and its time. Lists ask it of
    /// every item: answers should be kept.
    fn may_permit(&self, principal: &Principal, object: &PolicyObject<'_>) -> bool;

    /// The policies whose conditions are true for a request, for operators who ask. Default: none are named.
    fn matching(&self, _request: &PolicyRequest<'_>) -> Vec<MatchedPolicy> {
        Vec::new()
    }
}

/// A policy whose condition is true for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedPolicy {
    /// Its `@id`, else its place.
    pub policy: Arc<str>,
    /// File and line.
    pub place: String,
    /// `permit`, `forbid` or `ask`.
    pub effect: &'static str,
}

/// A request that policies decide on.
#[derive(Debug, Clone, Copy)]
pub struct PolicyRequest<'a> {
    /// The caller.
    pub principal: &'a Principal,
    /// The object of the request, which names its action too.
    pub object: PolicyObject<'a>,
    /// Arguments of a call or a prompt. Those of a call fit the input schema of the tool.
    pub arguments: Option<&'a JsonObject>,
    /// `true` for a request of a script.
    pub script: bool,
    /// Tool calls of the same run before this one; 0 outside of scripts.
    pub calls: u64,
    /// The time of the request.
    pub time: SystemTime,
}

/// The object of a request.
#[derive(Debug, Clone, Copy)]
pub enum PolicyObject<'a> {
    /// A tool that is called.
    Tool(PolicyTool<'a>),
    /// A resource that is read.
    Resource(PolicyResource<'a>),
    /// URIs of a template, which are read. Lists ask for it; requests name a resource.
    Template {
        /// Id of the app.
        app: &'a str,
        /// The app's own template.
        template: &'a str,
    },
    /// A prompt that is got.
    Prompt {
        /// Id of the app.
        app: &'a str,
        /// The app's own name.
        name: &'a str,
    },
}

/// A tool.
#[derive(Debug, Clone, Copy)]
pub struct PolicyTool<'a> {
    /// Id of the app.
    pub app: &'a str,
    /// Public name in the colon form.
    pub name: &'a str,
    /// The app's own name for it.
    pub local: &'a str,
    /// Its effects.
    pub effects: Effects,
    /// The operator's word on approvals of its calls.
    pub approval: Option<Approval>,
    /// Its input schema.
    pub input_schema: &'a JsonObject,
}

/// A resource.
#[derive(Debug, Clone, Copy)]
pub struct PolicyResource<'a> {
    /// Id of the app.
    pub app: &'a str,
    /// The app's own URI.
    pub uri: &'a str,
    /// `false` for a URI that the app does not list and that other spellings may name, such as `file:///a/../b`: its text does not tell
    /// what it names.
    pub is_plain: bool,
}

/// The decision on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may be made.
    Permit,
    /// It may be made once somebody approved it.
    Ask {
        /// Name of the policy.
        policy: Arc<str>,
        /// The reason that the approver reads.
        reason: Arc<str>,
        /// `true` if an approval that stands for longer than one request counts.
        may_stand: bool,
        /// The scope whose holders approve it, and not its caller; none: the caller.
        approvers: Option<Arc<str>>,
    },
    /// It may not be made.
    Forbid(Forbidden),
}

/// Why a request may not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forbidden {
    /// This policy forbids it.
    Policy(Arc<str>),
    /// There are policies, and none permits it.
    NotPermitted,
    /// The caller's access has ended since its request began.
    Ended,
    /// The configuration was changed while it waited for an approval.
    Changed,
    /// This policy cannot be evaluated for it.
    Failed {
        /// Name of the policy, if the failure is that of one.
        policy: Option<Arc<str>>,
        /// The failure.
        why: Arc<str>,
    },
}

impl Forbidden {
    /// Name of the policy, if one is responsible.
    pub fn policy(&self) -> Option<&Arc<str>> {
        match self {
            Self::Policy(policy) => Some(policy),
            Self::NotPermitted | Self::Ended | Self::Changed => None,
            Self::Failed { policy, .. } => policy.as_ref(),
        }
    }
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(policy) => write!(f, "the policy `{policy}` forbids it"),
            Self::NotPermitted => f.write_str("no policy permits it"),
            Self::Ended => f.write_str("the access of the caller has ended since the request began"),
            Self::Changed => f.write_str(
                "the configuration was changed while this waited for its approval; make the request again",
            ),
            Self::Failed { policy: Some(policy), why } => {
                write!(f, "the policy `{policy}` cannot be evaluated for it: {why}")
            }
            Self::Failed { policy: None, why } => write!(f, "the policies cannot be evaluated for it: {why}"),
        }
    }
}

/// The run of a script, on the extensions of every request that the script makes. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct ScriptRun {
    id: Option<Arc<str>>,
    calls: Arc<AtomicU64>,
}

impl ScriptRun {
    /// A run that made `calls` tool calls already.
    pub fn after(calls: u64) -> Self {
        Self { id: None, calls: Arc::new(AtomicU64::new(calls)) }
    }

    /// The same run under an id that it keeps when it goes on later.
    #[must_use]
    pub fn named(self, id: impl Into<Arc<str>>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    /// Its id.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Tool calls so far.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Counts one tool call. Returns the number of those before it.
    pub(crate) fn count(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }
}

/// The policies of a gateway.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    /// Decides each request. Default none: what scopes allow is permitted.
    pub engine: Option<Arc<dyn PolicyEngine>>,
    /// Approvals by what tools may do. Default none.
    pub approvals: Approvals,
}

impl Policies {
    /// Decides a request: the strictest of the engine and the approvals counts.
    pub fn decide(&self, request: &PolicyRequest<'_>) -> Decision {
        let decided = self.engine.as_ref().map_or(Decision::Permit, |engine| engine.decide(request));
        match (decided, request.object) {
            (Decision::Permit, PolicyObject::Tool(tool)) => self.approvals.decide(&tool),
            (Decision::Ask { policy, reason, may_stand, approvers }, object) => {
                let approvers = approvers.or_else(|| self.approvals.approvers.as_deref().map(Into::into));
                match object {
                    // An approval that has to be given each time is the stricter one.
                    PolicyObject::Tool(tool) if may_stand => match self.approvals.decide(&tool) {
                        Decision::Ask { policy, reason, may_stand: false, .. } => {
                            Decision::Ask { policy, reason, may_stand: false, approvers }
                        }
                        _ => Decision::Ask { policy, reason, may_stand, approvers },
                    },
                    _ => Decision::Ask { policy, reason, may_stand, approvers },
                }
            }
            (decided, _) => decided,
        }
    }

    pub(crate) fn may_permit(&self, principal: &Principal, object: &PolicyObject<'_>) -> bool {
        self.engine.as_ref().is_none_or(|engine| engine.may_permit(principal, object))
    }
}

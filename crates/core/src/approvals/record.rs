//! The record of an approval, and the events about it.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use super::ApprovalDuration;
use crate::{RecordsError, RequestDigest, RequestObject};

/// The decision on a request that needs an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalState {
    /// Nobody decided yet.
    Waiting,
    /// The request passes once.
    Approved,
    /// The request fails once.
    Denied,
}

/// A request that needs an approval which its caller could not give at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRecord {
    /// Its id: the same for the same request of the same caller.
    pub id: String,
    /// Random: another one each time that the same request waits.
    #[serde(default)]
    pub nonce: u64,
    /// Subject of the caller.
    pub subject: String,
    /// Client of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The object.
    #[serde(flatten)]
    pub object: RequestObject,
    /// Digest of the object and the arguments: exactly this request.
    pub digest: String,
    /// The arguments as people read them: one line each.
    pub arguments: Vec<String>,
    /// The reason that the approver reads.
    pub reason: String,
    /// Name of the policy that asks.
    pub policy: String,
    /// The script that makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Number of the call in its script, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// `true` if it may be given for longer than one request.
    pub may_stand: bool,
    /// The scope whose holders decide; none: the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvers: Option<String>,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// The same, when it expires.
    pub expires_ms: u64,
    /// The decision.
    pub state: ApprovalState,
    /// Time for which it was given.
    #[serde(default)]
    pub duration: ApprovalDuration,
    /// Whoever decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl ApprovalRecord {
    /// Its id, as forms have it to decide on what is shown: another one when the same request waits again.
    pub fn decision_id(&self) -> String {
        format!("{}-{:x}", self.id, self.nonce)
    }

    /// The place in its script, for people.
    pub fn place(&self) -> Option<String> {
        place(self.run.as_deref(), self.step)
    }

    /// Times that may be offered.
    pub fn durations(&self) -> &'static [ApprovalDuration] {
        ApprovalDuration::offered(self.may_stand, self.run.is_some())
    }
}

pub(super) fn place(run: Option<&str>, step: Option<u32>) -> Option<String> {
    match (run, step) {
        (Some(run), Some(step)) => Some(format!("call {step} of the script {run}")),
        (Some(run), None) => Some(format!("the script {run}")),
        (None, _) => None,
    }
}

/// Somebody who decides on approvals.
#[derive(Clone, Copy)]
pub enum Approver<'a> {
    /// A user who signed in.
    User {
        /// The subject.
        subject: &'a str,
        /// Says whether the user holds a scope.
        holds: &'a (dyn Fn(&str) -> bool + Sync),
    },
    /// An operator of the gateway, under this name.
    Operator(&'a str),
}

impl fmt::Debug for Approver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Approver").field(&self.name()).finish()
    }
}

impl Approver<'_> {
    /// The name that records and audit lines have.
    pub fn name(&self) -> &str {
        match self {
            Self::User { subject, .. } => subject,
            Self::Operator(name) => name,
        }
    }

    /// Returns `true` if the approver may decide on `record`. Where there are approvers, nobody decides on an own call (four eyes).
    pub fn may_decide(&self, record: &ApprovalRecord) -> bool {
        let is_own = self.name() == record.subject;
        match (self, &record.approvers) {
            // Scopes that several policies name: whoever decides holds them all.
            (Self::User { holds, .. }, Some(scopes)) => !is_own && scopes.split(' ').all(holds),
            (Self::User { .. }, None) => is_own,
            (Self::Operator(_), Some(_)) => !is_own,
            (Self::Operator(_), None) => true,
        }
    }
}

/// Why nothing was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotDecide {
    /// It was decided on already, has expired, or is not for this approver.
    #[error("no such approval waits: it was decided on already, has expired, or is for others to decide")]
    NotFound,
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] RecordsError),
}

/// A step in the life of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalEventKind {
    /// Somebody was asked.
    Asked,
    /// It was given.
    Approved,
    /// It was refused.
    Denied,
    /// Nobody decided in time.
    Expired,
}

impl ApprovalEventKind {
    /// The name of the event: `approval.asked`, `approval.approved`, `approval.denied` or `approval.expired`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Asked => "approval.asked",
            Self::Approved => "approval.approved",
            Self::Denied => "approval.denied",
            Self::Expired => "approval.expired",
        }
    }
}

/// A step in the life of an approval, for those who hear of it. Arguments are not part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalEvent {
    /// The step.
    pub kind: ApprovalEventKind,
    /// Time of the step.
    pub at: SystemTime,
    /// Subject of the caller.
    pub subject: String,
    /// Client of the caller.
    pub client: Option<String>,
    /// The object of the request.
    pub object: RequestObject,
    /// Name of the policy that asks.
    pub policy: String,
    /// Digest of the object and the arguments, as hexadecimal digits.
    pub digest: String,
    /// Whoever decided.
    pub by: Option<String>,
    /// Time for which it was given.
    pub duration: Option<ApprovalDuration>,
}

/// Hears of approvals.
pub trait ApprovalListener: Send + Sync + 'static {
    /// Called once for each step, before anything follows from it: it must be quick.
    fn notice(&self, event: &ApprovalEvent);
}

/// Milliseconds since 1970-01-01 UTC.
pub(super) fn now_ms() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A request, as approvals see it.
#[derive(Debug, Clone)]
pub(super) struct RequestFacts<'a> {
    pub(super) subject: &'a str,
    pub(super) client: Option<&'a str>,
    pub(super) object: RequestObject,
    pub(super) policy: &'a str,
    pub(super) digest: RequestDigest,
}

impl RequestFacts<'_> {
    pub(super) fn event(
        self,
        kind: ApprovalEventKind,
        by: Option<&str>,
        duration: Option<ApprovalDuration>,
    ) -> ApprovalEvent {
        ApprovalEvent {
            kind,
            at: SystemTime::now(),
            subject: self.subject.to_owned(),
            client: self.client.map(str::to_owned),
            object: self.object,
            policy: self.policy.to_owned(),
            digest: self.digest.to_string(),
            by: by.map(str::to_owned),
            duration,
        }
    }
}

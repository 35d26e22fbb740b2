//! Heads: the description of an execution beside its journal.

use std::{fmt, net::IpAddr, sync::Arc};

use gatewright_core::{Claimant, Principal};
use serde::{Deserialize, Serialize};

use crate::{ExecutionError, ExecutionId, reading::Reader};

/// Most things that a head names as waited for; more are left out.
pub const MOST_WAITING: usize = 16;
/// Longest text of a head, in bytes; more is cut off.
pub const LONGEST_TEXT: usize = 256;

/// Code of the end of an execution that was cancelled.
pub const ABORTED: &str = "EXECUTION_ABORTED";

/// State of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// An instance runs it, or did until it was stopped.
    Running,
    /// It waits for an answer. No instance holds it.
    Waiting,
    /// It is over.
    Ended,
}

/// Kind of an answer that an execution waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WaitKind {
    /// Permission for a call.
    Approval,
    /// Input of the user.
    Elicitation,
    /// An answer of the client's model.
    Sampling,
    /// The roots of the client.
    Roots,
    /// A sign-in at an upstream server.
    SignIn,
    /// Anything else.
    Other,
}

impl WaitKind {
    /// A name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Approval => "an approval",
            Self::Elicitation => "input",
            Self::Sampling => "an answer of the model",
            Self::Roots => "the roots of the client",
            Self::SignIn => "a sign-in",
            Self::Other => "an answer",
        }
    }
}

/// One answer that an execution waits for.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingFor {
    /// Its kind.
    pub kind: WaitKind,
    /// The tool whose call asks, in the colon form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The question as people read it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl WaitingFor {
    /// An answer of this kind.
    pub fn new(kind: WaitKind, text: impl Into<String>) -> Self {
        Self { kind, tool: None, text: text.into() }
    }

    /// Asked by a call of `tool`.
    #[must_use]
    pub fn tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    fn bounded(&self) -> Self {
        Self { kind: self.kind, tool: self.tool.as_deref().map(clipped), text: clipped(&self.text) }
    }
}

impl fmt::Debug for WaitingFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitingFor").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Outcome of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// `ok`, or a status of the contract such as `tool_error`.
    pub status: String,
    /// The code of the error, such as `RATE_LIMIT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl Ending {
    /// Ended with `status`.
    pub fn new(status: impl Into<String>) -> Self {
        Self { status: status.into(), code: None }
    }

    /// Ended by its owner or by an operator.
    pub fn cancelled() -> Self {
        Self::new("runtime_error").code(ABORTED)
    }

    /// Returns `true` for [`Ending::cancelled`].
    pub fn is_cancelled(&self) -> bool {
        self.code.as_deref() == Some(ABORTED)
    }

    /// Ended with the error `code`.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    fn bounded(&self) -> Self {
        Self { status: clipped(&self.status), code: self.code.as_deref().map(clipped) }
    }
}

impl From<ExecutionError> for Ending {
    /// The end of an execution that failed with `why`.
    fn from(why: ExecutionError) -> Self {
        Self::new("runtime_error").code(why.code())
    }
}

/// Calls of an execution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCounts {
    /// All of them.
    pub made: u32,
    /// Those that failed.
    pub failed: u32,
}

/// The token by which an execution goes on without its client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Terms {
    /// Time until which its owner's scopes are known, in milliseconds since 1970-01-01 UTC: the end of a token that nobody can be asked about later. None if
    /// they can be looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// Name of the grant that the execution ends with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Arc<str>>,
}

/// Properties of a new execution.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewExecution {
    /// It runs without its client, and another instance takes it over if its own is gone.
    pub detached: bool,
    /// SHA-256 of the script.
    #[serde(with = "hex")]
    pub script: [u8; 32],
    /// A name that people recognise it by, such as the first line of the script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The saved plan that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Terms on which it runs without its client.
    #[serde(flatten)]
    pub terms: Terms,
    /// Address of the caller, by whose network it counts if the caller is anonymous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

impl fmt::Debug for NewExecution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewExecution").field("detached", &self.detached).finish_non_exhaustive()
    }
}

/// Description of an execution. Times are milliseconds since 1970-01-01 UTC.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    /// Its id.
    pub id: ExecutionId,
    /// The principal that started it, with the scopes of that time.
    #[serde(with = "owner")]
    pub owner: Principal,
    /// Properties that it was started with.
    #[serde(flatten)]
    pub about: NewExecution,
    /// Start.
    pub created_ms: u64,
    /// Latest change of its state.
    pub updated_ms: u64,
    /// Time at which it is forgotten.
    pub expires_ms: u64,
    /// State.
    pub state: State,
    /// Answers that it waits for, at most [`MOST_WAITING`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_for: Vec<WaitingFor>,
    /// Outcome, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Calls when its state last changed.
    pub calls: CallCounts,
    /// Times it was taken up again: by an answer, or by another instance.
    pub resumed: u32,
    /// Records of its journal when its state last changed.
    pub(crate) records: u32,
    /// Bytes of its journal when its state last changed.
    pub bytes: u64,
    /// Returns `false` if the journal was too large to be kept.
    pub complete: bool,
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head").field("id", &self.id).field("state", &self.state).finish_non_exhaustive()
    }
}

impl Head {
    pub(crate) fn new(
        id: ExecutionId,
        owner: &Principal,
        about: NewExecution,
        now_ms: u64,
        life_ms: u64,
    ) -> Self {
        let about = NewExecution {
            title: about.title.as_deref().map(clipped),
            plan: about.plan.as_deref().map(clipped),
            ..about
        };
        Self {
            id,
            owner: owner.clone(),
            about,
            created_ms: now_ms,
            updated_ms: now_ms,
            expires_ms: now_ms.saturating_add(life_ms),
            state: State::Running,
            waiting_for: Vec::new(),
            ending: None,
            calls: CallCounts::default(),
            resumed: 0,
            records: 0,
            bytes: 0,
            complete: true,
        }
    }

    /// Returns `true` if it belongs to the same subject and client, at the same endpoint.
    pub fn is_of(&self, principal: &Principal) -> bool {
        let of = |one: &Principal| (one.subject.clone(), one.client_id.clone(), one.endpoint.clone());
        of(&self.owner) == of(principal)
    }

    /// Whoever it counts for while it is open.
    pub fn claimant(&self) -> Claimant {
        Claimant::of(&self.owner, self.about.address)
    }

    /// The one party that it counts for once it has ended: the subject, or the narrowest network. Callers at loopback are one.
    pub(crate) fn counts_for(&self) -> Claimant {
        self.claimant().lines().next().unwrap_or_default()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state != State::Ended
    }

    /// Goes on for `reader`, who has shown the token of `terms`. If they end, that owner's scopes and groups are those of the execution until then.
    pub(crate) fn run_again(&mut self, reader: Reader<'_>, terms: Terms, now_ms: u64) {
        if let (Reader::Owner(owner), Some(_)) = (reader, terms.until_ms) {
            self.owner.scopes = owner.scopes.clone();
            self.owner.groups = owner.groups.clone();
        }
        if terms != Terms::default() {
            self.about.terms = terms;
        }
        self.state = State::Running;
        self.waiting_for.clear();
        self.resumed = self.resumed.saturating_add(1);
        self.updated_ms = now_ms;
    }

    pub(crate) fn wait(&mut self, waiting: &[WaitingFor], calls: CallCounts, now_ms: u64) {
        self.state = State::Waiting;
        self.waiting_for = waiting.iter().take(MOST_WAITING).map(WaitingFor::bounded).collect();
        self.calls = calls;
        self.updated_ms = now_ms;
    }

    pub(crate) fn end(&mut self, ending: &Ending, calls: Option<CallCounts>, now_ms: u64) {
        self.state = State::Ended;
        self.waiting_for.clear();
        self.ending = Some(ending.bounded());
        self.calls = calls.unwrap_or(self.calls);
        self.updated_ms = now_ms;
    }
}

fn clipped(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST_TEXT)].to_owned()
}

/// Principals in records.
mod owner {
    use std::collections::BTreeSet;

    use gatewright_core::{Groups, Scopes};
    use serde::{Deserializer, Serializer};

    use super::{Arc, Deserialize, Principal, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Owner<'a> {
        subject: std::borrow::Cow<'a, str>,
        client: Option<std::borrow::Cow<'a, str>>,
        /// None: all.
        scopes: Option<std::borrow::Cow<'a, BTreeSet<String>>>,
        #[serde(default, skip_serializing_if = "Groups::is_empty")]
        groups: Groups,
        /// None: the main one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        endpoint: Option<std::borrow::Cow<'a, str>>,
    }

    pub(super) fn serialize<S: Serializer>(principal: &Principal, serializer: S) -> Result<S::Ok, S::Error> {
        let scopes = match &principal.scopes {
            Scopes::All => None,
            Scopes::Granted(scopes) => Some(std::borrow::Cow::Borrowed(scopes)),
        };
        let client = principal.client_id.as_deref().map(Into::into);
        let endpoint = principal.endpoint.as_deref().map(Into::into);
        let (subject, groups) = ((&*principal.subject).into(), principal.groups.clone());
        Owner { subject, client, scopes, groups, endpoint }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Principal, D::Error> {
        let owner = Owner::deserialize(deserializer)?;
        Ok(Principal {
            subject: owner.subject.into(),
            client_id: owner.client.map(Arc::from),
            scopes: owner.scopes.map_or(Scopes::All, |scopes| Scopes::Granted(scopes.into_owned())),
            groups: owner.groups,
            endpoint: owner.endpoint.map(Arc::from),
        })
    }
}

/// Digests in records.
mod hex {
    use data_encoding::HEXLOWER;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(digest: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&HEXLOWER.encode(digest))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = HEXLOWER.decode(text.as_bytes()).map_err(D::Error::custom)?;
        bytes.try_into().map_err(|_| D::Error::custom("not a digest"))
    }
}

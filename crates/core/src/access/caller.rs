//! Callers: a principal, and the session it calls in.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use rmcp::{RoleServer, service::Peer};
use tokio_util::sync::CancellationToken;

use super::{AccessMode, OwnPaths, Roots, roots::SessionRoots};
use crate::{Claimant, Principal};

/// An MCP session. Ids are unique within the process.
#[derive(Debug, Clone)]
pub struct SessionRef {
    id: u64,
    ended: CancellationToken,
    roots: SessionRoots,
}

impl SessionRef {
    /// A new session, which ends when `ended` is cancelled.
    pub fn new(ended: CancellationToken) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self { id: LAST.fetch_add(1, Ordering::Relaxed) + 1, ended, roots: SessionRoots::default() }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Asks the client for its roots again when they are next wanted.
    pub(crate) async fn forget_roots(&self) {
        self.roots.forget().await;
    }

    /// Cancelled when the session ends.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }
}

/// The time at which the caller of a request was authenticated: an extension of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownSince(pub Instant);

/// The principal of a request, and its session.
#[derive(Debug, Clone)]
pub struct Caller {
    principal: Arc<Principal>,
    since: Instant,
    session: Option<SessionRef>,
    mode: Option<AccessMode>,
    claimant: Option<Arc<Claimant>>,
}

impl Caller {
    /// A caller outside any session.
    pub fn new(principal: impl Into<Arc<Principal>>) -> Self {
        Self { principal: principal.into(), since: Instant::now(), session: None, mode: None, claimant: None }
    }

    /// The same caller, whose principal is that of `since`; by default, of the time at which this was made.
    #[must_use]
    pub fn known_since(mut self, since: Option<KnownSince>) -> Self {
        self.since = since.map_or(self.since, |since| since.0);
        self
    }

    /// The time of which the principal is.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// The same caller with the rights of `principal`, which are those of now.
    pub(crate) fn renewed(self, principal: Principal) -> Self {
        Self { principal: principal.into(), since: Instant::now(), ..self }
    }

    /// The same caller in `session`.
    #[must_use]
    pub fn in_session(mut self, session: SessionRef) -> Self {
        self.session = Some(session);
        self
    }

    /// The same caller with this access mode; `None` is what the configuration gives every client.
    #[must_use]
    pub fn in_mode(mut self, mode: Option<AccessMode>) -> Self {
        self.mode = mode;
        self
    }

    /// The same caller, of whose shares it takes part; by default those of its subject.
    #[must_use]
    pub fn claiming(mut self, claimant: Option<Arc<Claimant>>) -> Self {
        self.claimant = claimant;
        self
    }

    /// The parties whose shares the caller takes part of. Anonymous callers have no name of their own.
    pub fn claimant(&self) -> Claimant {
        let of_subject = || {
            let subject = Some(self.principal.subject.clone());
            Claimant::new(subject.filter(|subject| *subject != Principal::local().subject), None, &[])
        };
        self.claimant.as_deref().cloned().unwrap_or_else(of_subject)
    }

    /// The access mode; `None` is what the configuration gives every client.
    pub fn mode(&self) -> Option<AccessMode> {
        self.mode
    }

    /// The principal.
    pub fn principal(&self) -> &Arc<Principal> {
        &self.principal
    }

    /// The folders that the client works in: it is asked once in a session, and has none outside of one. `peer` is that of a request under
    /// way.
    pub async fn roots(&self, peer: &Peer<RoleServer>, own: &OwnPaths) -> Arc<Roots> {
        match &self.session {
            Some(session) => session.roots.get(peer, own).await,
            None => Arc::default(),
        }
    }

    /// The session; none for clients of the era without sessions.
    pub fn session(&self) -> Option<&SessionRef> {
        self.session.as_ref()
    }
}

/// Callers that have something in common: a connection of an app, and the changes it announces.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Audience {
    /// All callers.
    #[default]
    Everyone,
    /// Callers with this subject, through whichever client.
    Subject(Arc<str>),
    /// Callers with this subject and client.
    Principal(Arc<str>, Option<Arc<str>>),
    /// The caller of one session.
    Session(u64),
}

impl Audience {
    /// The callers that share the subject of `caller`.
    pub fn subject(caller: &Caller) -> Self {
        Self::Subject(caller.principal.subject.clone())
    }

    /// The callers that share subject and client of `caller`.
    pub fn principal(caller: &Caller) -> Self {
        Self::Principal(caller.principal.subject.clone(), caller.principal.client_id.clone())
    }

    /// The session of `caller`; its subject and client where there is no session.
    pub fn session(caller: &Caller) -> Self {
        caller.session.as_ref().map_or_else(|| Self::principal(caller), |session| Self::Session(session.id))
    }

    /// Returns `true` if `caller` is one of them.
    pub fn includes(&self, caller: &Caller) -> bool {
        match self {
            Self::Everyone => true,
            Self::Subject(subject) => *subject == caller.principal.subject,
            Self::Principal(subject, client) => {
                *subject == caller.principal.subject && *client == caller.principal.client_id
            }
            Self::Session(id) => caller.session.as_ref().is_some_and(|session| session.id == *id),
        }
    }
}

//! What is remembered of an authorization, a login and a consent.

use serde::{Deserialize, Serialize};

use crate::ceiling::RecordedScopes;

/// What a user (or a client for itself) allowed: kept with the code, then with the token family, whatever tokens come of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    pub(crate) sub: String,
    pub(crate) client: String,
    pub(crate) scopes: RecordedScopes,
    pub(crate) resources: Vec<String>,
    /// Where the code was sent; empty for grants without one.
    pub(crate) redirect: String,
    /// S256 challenge; empty for grants without a code.
    pub(crate) challenge: String,
    pub(crate) code_expires_ms: u64,
    /// When it was given; of a pending authorization, when the login was noted. What was cut off then or later ends it.
    pub(crate) issued_ms: u64,
    /// When the login happened, in seconds.
    pub(crate) auth_s: u64,
    /// Digest of the browser session.
    pub(crate) session: Option<String>,
    /// Thumbprint of the DPoP key that the code or the refresh tokens are bound to.
    pub(crate) jkt: Option<String>,
    /// What the user's credentials were, so that a change of them ends the grant.
    pub(crate) credential: Option<String>,
    pub(crate) refreshes: bool,
    /// What the client's request and its first ID token are bound by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nonce: Option<String>,
    /// Who the user is in words, where only the external provider knows.
    #[serde(default, skip_serializing_if = "Person::is_unknown")]
    pub(crate) person: Person,
}

impl Grant {
    /// Returns whether a user gave it: clients that act for themselves, and callers without a login, are their own subjects.
    pub(crate) fn is_of_user(&self) -> bool {
        self.sub != self.client
    }
}

/// A user as the external provider describes them, for `userinfo`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Person {
    pub(crate) name: Option<String>,
    pub(crate) email: Option<String>,
}

impl Person {
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// What the client asked of the login (OpenID Connect Core §3.1.2.1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wish {
    /// `prompt=login`: whoever is signed in signs in again.
    pub(crate) again: bool,
    /// `max_age`: seconds since the login.
    pub(crate) max_age: Option<u64>,
    /// `login_hint`: what the user would type.
    pub(crate) hint: Option<String>,
    /// The only user that will do: the one an `id_token_hint` names.
    pub(crate) subject: Option<String>,
}

/// An authorization request between its start and its code.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub(crate) grant: Grant,
    pub(crate) client_name: String,
    pub(crate) state: String,
    /// Digest of the browser's cookie.
    pub(crate) browser: String,
    pub(crate) expires_ms: u64,
    /// Whether a user has been established; the subject is in the grant.
    pub(crate) logged_in: bool,
    /// `prompt=consent`.
    pub(crate) ask_again: bool,
    /// What a login at the provider must come back with.
    pub(crate) upstream: Option<Upstream>,
    /// Where on this server the browser goes once a user is established, for a login that no client asked for.
    #[serde(default)]
    pub(crate) back: Option<String>,
    #[serde(default)]
    pub(crate) wish: Wish,
}

/// A login at the external provider that is under way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Upstream {
    /// Issuer it is under way at: an answer is for no other.
    #[serde(default)]
    pub(crate) issuer: String,
    pub(crate) state: String,
    pub(crate) nonce: String,
    pub(crate) verifier: String,
}

/// A browser that logged in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) sub: String,
    pub(crate) name: String,
    pub(crate) auth_s: u64,
    pub(crate) started_ms: u64,
    pub(crate) seen_ms: u64,
    pub(crate) credential: Option<String>,
    #[serde(default, skip_serializing_if = "Person::is_unknown")]
    pub(crate) person: Person,
}

/// A consent that is remembered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Consented {
    pub(crate) at_ms: u64,
    /// Scopes that were offered and answered, allowed or not.
    pub(crate) seen: Vec<String>,
    /// Scopes that were allowed. Any other needs the consent page.
    pub(crate) allowed: Vec<String>,
    /// What the client was like.
    pub(crate) client: String,
    /// Whose consent it is, and to which client: for operators.
    #[serde(default)]
    pub(crate) sub: Option<String>,
    #[serde(default)]
    pub(crate) client_id: Option<String>,
}

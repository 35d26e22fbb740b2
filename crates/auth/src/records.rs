//! Records of authorization requests, grants, sessions and consents, as they are stored.

use gatewright_core::Groups;
use serde::{Deserialize, Serialize};

use crate::{crypto::sha256_hex, scopes::RecordedScopes, tuning::AUTHORIZATION_LIFETIME};

/// An authorization grant: what a user, or a client for itself, allowed. It is kept with the code, then with the token family.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    pub(crate) sub: String,
    pub(crate) client: String,
    pub(crate) scopes: RecordedScopes,
    pub(crate) resources: Vec<String>,
    /// Redirect URI that the code was sent to; empty for grants without a code.
    pub(crate) redirect: String,
    /// S256 code challenge; empty for grants without a code.
    pub(crate) challenge: String,
    pub(crate) code_expires_ms: u64,
    /// Time of the grant; in a pending authorization the time of the login. A revocation at that time or later ends the grant.
    pub(crate) issued_ms: u64,
    /// Time of the login, in seconds.
    pub(crate) auth_s: u64,
    /// Digest of the browser session.
    pub(crate) session: Option<String>,
    /// Thumbprint of the DPoP key that the code or the refresh tokens are bound to.
    pub(crate) jkt: Option<String>,
    /// Fingerprint of the user's password hash: a new password ends the grant.
    pub(crate) credential: Option<String>,
    /// The grant comes with refresh tokens.
    pub(crate) refreshes: bool,
    /// `nonce` of the authorization request, for the first ID token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nonce: Option<String>,
    /// Claims about the user that only the identity provider knows.
    #[serde(default, skip_serializing_if = "UserClaims::is_empty")]
    pub(crate) person: UserClaims,
}

impl Grant {
    /// Returns what is known of the grant under which `client` began something for `sub` at `issued_ms`.
    pub(crate) fn behind(sub: &str, client: &str, issued_ms: u64) -> Self {
        Self {
            sub: sub.to_owned(),
            client: client.to_owned(),
            scopes: RecordedScopes::default(),
            resources: Vec::new(),
            redirect: String::new(),
            challenge: String::new(),
            code_expires_ms: 0,
            issued_ms,
            auth_s: 0,
            session: None,
            jkt: None,
            credential: None,
            refreshes: false,
            nonce: None,
            person: UserClaims::default(),
        }
    }

    /// Returns whether a user gave it: clients that act for themselves, and callers without a login, are their own subjects.
    pub(crate) fn is_of_user(&self) -> bool {
        self.sub != self.client
    }
}

/// Claims of the identity provider about a user: for `userinfo`, and groups for policies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UserClaims {
    pub(crate) name: Option<String>,
    pub(crate) email: Option<String>,
    #[serde(default, skip_serializing_if = "Groups::is_empty")]
    pub(crate) groups: Groups,
}

impl UserClaims {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Login parameters of an authorization request (OpenID Connect Core §3.1.2.1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoginRequest {
    /// `prompt=login`: a signed-in user signs in again.
    #[serde(rename = "again")]
    pub(crate) force: bool,
    /// `max_age`: seconds since the login.
    pub(crate) max_age: Option<u64>,
    /// `login_hint`: the text to fill in as user name.
    pub(crate) hint: Option<String>,
    /// The user whom `id_token_hint` names. No other may sign in.
    pub(crate) subject: Option<String>,
}

/// An authorization request between its start and its code.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AuthorizationRequest {
    pub(crate) grant: Grant,
    pub(crate) client_name: String,
    pub(crate) state: String,
    /// Digest of the browser's cookie.
    pub(crate) browser: String,
    pub(crate) expires_ms: u64,
    /// A user signed in; the subject is in the grant.
    pub(crate) logged_in: bool,
    /// `prompt=consent`.
    #[serde(rename = "ask_again")]
    pub(crate) force_consent: bool,
    /// The login at the identity provider that is under way.
    pub(crate) upstream: Option<ProviderLogin>,
    /// Path on this server that the browser goes to after the login, for a login that no client requested.
    #[serde(default, rename = "back")]
    pub(crate) return_path: Option<String>,
    #[serde(default, rename = "wish")]
    pub(crate) login: LoginRequest,
    /// Digest of the cookie that the browser got when the user signed in for this request. Whoever knows only the cookie that it had before, such as
    /// the last user of a shared machine, does not go on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signed_in: Option<String>,
    /// Failure of the last try to sign in, which the login page shows.
    #[serde(default)]
    pub(crate) failure: Option<LoginFailure>,
}

/// A try to sign in that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LoginFailure {
    /// The name and the password do not fit.
    Password,
    /// The passkey was not accepted.
    Passkey,
    /// The passkey button of the page has expired or was used.
    PageExpired,
    /// There were too many failures: no try counts before this time.
    Locked { until_ms: u64 },
}

impl AuthorizationRequest {
    /// A login that no client requested, of the browser with this `cookie`: it leads to the page at `path`, which users know as `name`.
    pub(crate) fn of_page(name: &str, path: &str, cookie: &str, now_ms: u64) -> Self {
        Self {
            grant: Grant::default(),
            client_name: name.to_owned(),
            state: String::new(),
            browser: sha256_hex(cookie),
            expires_ms: now_ms + AUTHORIZATION_LIFETIME.as_millis() as u64,
            logged_in: false,
            force_consent: false,
            upstream: None,
            return_path: Some(path.to_owned()),
            login: LoginRequest::default(),
            signed_in: None,
            failure: None,
        }
    }

    /// Records who signed in, and when: a revocation from then on ends the request.
    pub(crate) fn log_in(&mut self, session: &Session, id: Option<String>, now_ms: u64) {
        self.logged_in = true;
        self.failure = None;
        self.grant.issued_ms = now_ms;
        self.grant.sub.clone_from(&session.sub);
        self.grant.auth_s = session.auth_s;
        self.grant.credential.clone_from(&session.credential);
        self.grant.session = id;
        self.grant.person.clone_from(&session.person);
    }
}

/// A login at the identity provider that is under way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ProviderLogin {
    /// Issuer of the provider. An answer of any other is refused.
    #[serde(default)]
    pub(crate) issuer: String,
    pub(crate) state: String,
    pub(crate) nonce: String,
    pub(crate) verifier: String,
}

/// A browser session of a user who signed in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) sub: String,
    pub(crate) name: String,
    pub(crate) auth_s: u64,
    pub(crate) started_ms: u64,
    pub(crate) seen_ms: u64,
    pub(crate) credential: Option<String>,
    #[serde(default, skip_serializing_if = "UserClaims::is_empty")]
    pub(crate) person: UserClaims,
    /// Digests of the sessions of the same user that this one replaced in the same browser. What was granted in them ends with this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) earlier: Vec<String>,
}

/// A remembered consent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Consent {
    pub(crate) at_ms: u64,
    /// Scopes that were offered and answered, allowed or not.
    #[serde(rename = "seen")]
    pub(crate) answered: Vec<String>,
    /// Scopes that were allowed. Any other needs the consent page.
    pub(crate) allowed: Vec<String>,
    /// Fingerprint of the client.
    pub(crate) client: String,
    /// Subject and client identifier, for operators.
    #[serde(default)]
    pub(crate) sub: Option<String>,
    #[serde(default)]
    pub(crate) client_id: Option<String>,
}

//! Scope ceilings: what the configuration, the client and the user allow at this moment.
//!
//! Records and tokens hold [`RecordedScopes`], which grant nothing by themselves. [`Ceiling::narrow`] and [`Ceiling::request`] are the only
//! makers of [`GrantedScopes`], and only those are offered on the consent page, issued in a token, or put on a principal.

use gatewright_core::Scopes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    clients::OAuthClient,
    config::AuthConfig,
    keys::Claims,
    server::{Core, OAuthError},
};

/// Scopes about a user, and so nothing for a client that acts for itself.
pub(crate) const STANDARD: [&str; 4] = ["openid", "profile", "email", "offline_access"];

/// Returns whether a text can be one scope (RFC 6749 §3.3): printable ASCII without spaces, quotes and backslashes.
pub(crate) fn is_scope_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_graphic() && c != b'"' && c != b'\\')
}

/// Subject and client of tokens for callers without a login; no configured client may have this name.
pub(crate) const ANONYMOUS: &str = "anonymous";

/// Scopes as a record or a token names them. They may have been taken away since.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct RecordedScopes(Vec<String>);

impl RecordedScopes {
    /// The `scope` claim of an access token of ours.
    pub(crate) fn of_claims(claims: &Claims) -> Self {
        Self::parse(claims.get("scope").and_then(Value::as_str).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        Self(text.split_ascii_whitespace().map(str::to_owned).collect())
    }

    /// The scopes that a refresh asks for; `None` when it names none, or one that was never granted (RFC 6749 §6).
    pub(crate) fn select(&self, asked: &str) -> Option<Self> {
        let asked = Self::parse(asked);
        (!asked.0.is_empty() && asked.0.iter().all(|scope| self.0.contains(scope))).then_some(asked)
    }
}

/// Scopes within every ceiling at the moment they were looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GrantedScopes(Vec<String>);

impl GrantedScopes {
    pub(crate) fn names(&self) -> &[String] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, scope: &str) -> bool {
        self.0.iter().any(|held| held == scope)
    }

    /// Those of them that are among `names`.
    pub(crate) fn only(&self, names: &[String]) -> Self {
        Self(self.0.iter().filter(|scope| names.contains(scope)).cloned().collect())
    }

    /// The form in which records keep them.
    pub(crate) fn record(&self) -> RecordedScopes {
        RecordedScopes(self.0.clone())
    }

    /// A space-separated scope string (RFC 6749 §3.3).
    pub(crate) fn to_text(&self) -> String {
        self.0.join(" ")
    }
}

impl From<GrantedScopes> for Scopes {
    fn from(scopes: GrantedScopes) -> Self {
        Self::Granted(scopes.0.into_iter().collect())
    }
}

/// Whom scopes are granted to.
enum Holder<'a> {
    /// Callers without a login.
    Anonymous,
    /// A client that acts for itself.
    Client,
    /// A user, with the scopes the configuration limits them to.
    User(Option<&'a [String]>),
}

/// The bounds of a grant at this moment; a scope must be within each.
pub(crate) struct Ceiling<'a> {
    config: &'a AuthConfig,
    holder: Holder<'a>,
    /// Scopes the client may have; `None` when it is not limited.
    client: Option<&'a [String]>,
}

impl Core {
    /// The ceiling of what `sub` grants to `client`. Before the login `sub` is empty, and no user bounds it yet.
    pub(crate) fn ceiling<'a>(&'a self, sub: &str, client: &'a OAuthClient) -> Ceiling<'a> {
        self.ceiling_of(sub, &client.id, client.scopes.as_deref())
    }

    /// The same for a client of which the id and the scopes are known.
    pub(crate) fn ceiling_of<'a>(
        &'a self,
        sub: &str,
        client_id: &str,
        client: Option<&'a [String]>,
    ) -> Ceiling<'a> {
        let user = sub.strip_prefix("user:").and_then(|name| self.users.get(name));
        let holder = match client_id {
            ANONYMOUS => Holder::Anonymous,
            id if sub == id => Holder::Client,
            _ => Holder::User(user.and_then(|user| user.config.scopes.as_deref())),
        };
        Ceiling { config: &self.config, holder, client }
    }

    /// The scopes of callers without a login; `None` when they are refused.
    pub(crate) fn anonymous_scopes(&self) -> Option<GrantedScopes> {
        let all = RecordedScopes(self.config.anonymous_scopes.clone());
        let granted = || self.ceiling_of(ANONYMOUS, ANONYMOUS, None).narrow(&all);
        self.config.allow_default_public.then(granted)
    }
}

impl Ceiling<'_> {
    fn allows(&self, scope: &str) -> bool {
        let listed = |list: &[String]| list.iter().any(|held| held == scope);
        let exists = self.config.scopes.contains_key(scope);
        // Scopes about a user need one, even where the configuration lists them.
        let about_user = STANDARD.contains(&scope);
        let by_holder = match self.holder {
            Holder::Anonymous => {
                self.config.allow_default_public && !about_user && listed(&self.config.anonymous_scopes)
            }
            Holder::Client => exists && !about_user,
            Holder::User(limit) => (exists || about_user) && limit.is_none_or(listed),
        };
        by_holder && self.client.is_none_or(listed)
    }

    /// What is left of `recorded`.
    pub(crate) fn narrow(&self, recorded: &RecordedScopes) -> GrantedScopes {
        let mut granted: Vec<String> = Vec::new();
        for scope in &recorded.0 {
            if self.allows(scope) && !granted.contains(scope) {
                granted.push(scope.clone());
            }
        }
        GrantedScopes(granted)
    }

    /// What a request gets that asks for `asked`, or names no scope.
    ///
    /// # Errors
    /// `invalid_scope` when nothing is left.
    pub(crate) fn request(&self, asked: Option<&str>) -> Result<GrantedScopes, OAuthError> {
        let asked = match asked {
            Some(text) => RecordedScopes::parse(text),
            None if self.config.default_scopes.is_empty() => {
                RecordedScopes(self.config.scopes.keys().cloned().collect())
            }
            None => RecordedScopes(self.config.default_scopes.clone()),
        };
        let granted = self.narrow(&asked);
        if granted.is_empty() {
            return Err(OAuthError::new("invalid_scope", "none of the scopes can be granted"));
        }
        Ok(granted)
    }
}

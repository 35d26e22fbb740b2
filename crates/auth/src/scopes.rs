//! Scopes as requests, records and tokens name them. They grant nothing by themselves: see `ceiling`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::keys::Claims;

/// Scopes about a user (OpenID Connect Core §5.4, §11): only users can grant them.
pub(crate) const USER_SCOPES: [&str; 4] = ["openid", "profile", "email", "offline_access"];

/// Subject and client of tokens for callers without a login. No configured client may have this name.
pub(crate) const ANONYMOUS: &str = "anonymous";

/// Returns the values of a space-delimited list (RFC 6749 §3.3). No other character separates them.
pub(crate) fn space_delimited(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|value| !value.is_empty())
}

/// Returns whether a text can be one scope (RFC 6749 §3.3): printable ASCII without spaces, quotes and backslashes.
pub(crate) fn is_scope_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_graphic() && c != b'"' && c != b'\\')
}

/// Scopes of a record or a token. They may have been withdrawn since.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct RecordedScopes(Vec<String>);

impl RecordedScopes {
    pub(crate) fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    /// Splits a `scope` parameter.
    pub(crate) fn parse(text: &str) -> Self {
        Self(space_delimited(text).map(str::to_owned).collect())
    }

    /// Returns the scopes of the `scope` claim of an access token of this server.
    pub(crate) fn of_claims(claims: &Claims) -> Self {
        Self::parse(claims.get("scope").and_then(Value::as_str).unwrap_or_default())
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.0
    }

    /// Returns the scopes that a refresh asks for; `None` when it names none, or one that was never granted (RFC 6749 §6).
    pub(crate) fn select(&self, requested: &str) -> Option<Self> {
        let requested = Self::parse(requested);
        let is_granted = requested.0.iter().all(|scope| self.0.contains(scope));
        (!requested.0.is_empty() && is_granted).then_some(requested)
    }
}

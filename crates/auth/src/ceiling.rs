//! Scope ceilings: the scopes that the configuration, the client and the user allow at this moment.
//!
//! [`Ceiling::narrow`] and [`Ceiling::request`] are the only functions that make [`GrantedScopes`], and only granted scopes are offered on
//! the consent page, issued in a token, or put on a principal.

use gatewright_core::Scopes;

use crate::{
    config::AuthConfig,
    error::OAuthError,
    error_codes::Code,
    scopes::{RecordedScopes, USER_SCOPES, is_scope_token},
};

/// Scopes that were within every ceiling when they were checked.
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
        self.0.iter().any(|granted| granted == scope)
    }

    /// Returns those that are among `names`.
    pub(crate) fn only(&self, names: &[String]) -> Self {
        Self(self.0.iter().filter(|scope| names.contains(scope)).cloned().collect())
    }

    /// Returns the value of a `scope` parameter or claim.
    pub(crate) fn to_text(&self) -> String {
        self.0.join(" ")
    }

    pub(crate) fn record(&self) -> RecordedScopes {
        RecordedScopes::new(self.0.clone())
    }
}

impl From<GrantedScopes> for Scopes {
    fn from(granted: GrantedScopes) -> Self {
        Self::Granted(granted.0.into_iter().collect())
    }
}

/// The party that scopes are granted to or by.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Grantor<'a> {
    /// Callers without a login.
    Anonymous,
    /// A client that acts for itself.
    Client,
    /// A user, with the scopes that the configuration limits them to.
    User(Option<&'a [String]>),
}

/// The bounds of a grant at this moment. A scope must be within each of them.
#[derive(Debug)]
pub(crate) struct Ceiling<'a> {
    pub(crate) config: &'a AuthConfig,
    pub(crate) grantor: Grantor<'a>,
    /// Scopes that the client may have; `None` when it is not limited.
    pub(crate) client: Option<&'a [String]>,
}

impl Ceiling<'_> {
    fn allows(&self, scope: &str) -> bool {
        let listed = |list: &[String]| list.iter().any(|listed| listed == scope);
        let exists = self.config.scopes.contains_key(scope);
        // Scopes about a user need one, even where the configuration lists them.
        let about_user = USER_SCOPES.contains(&scope);
        let by_grantor = match self.grantor {
            Grantor::Anonymous => {
                self.config.allow_default_public && !about_user && listed(&self.config.anonymous_scopes)
            }
            Grantor::Client => exists && !about_user,
            Grantor::User(limit) => (exists || about_user) && limit.is_none_or(listed),
        };
        by_grantor && self.client.is_none_or(listed)
    }

    /// Returns the scopes of `recorded` that are allowed, each once.
    pub(crate) fn narrow(&self, recorded: &RecordedScopes) -> GrantedScopes {
        let mut granted: Vec<String> = Vec::new();
        for scope in recorded.names() {
            if self.allows(scope) && !granted.contains(scope) {
                granted.push(scope.clone());
            }
        }
        GrantedScopes(granted)
    }

    /// Returns the scopes granted to a request for `requested`, or for the default scopes when it names none.
    ///
    /// # Errors
    /// `invalid_scope` when one is no scope (RFC 6749 §3.3), or none can be granted.
    pub(crate) fn request(&self, requested: Option<&str>) -> Result<GrantedScopes, OAuthError> {
        let requested = match requested {
            Some(text) => RecordedScopes::parse(text),
            None if self.config.default_scopes.is_empty() => {
                RecordedScopes::new(self.config.scopes.keys().cloned().collect())
            }
            None => RecordedScopes::new(self.config.default_scopes.clone()),
        };
        if !requested.names().iter().all(|scope| is_scope_token(scope)) {
            return Err(OAuthError::new(
                Code::InvalidScope,
                "a scope contains a character that no scope may have",
            ));
        }
        let granted = self.narrow(&requested);
        if granted.is_empty() {
            return Err(OAuthError::new(Code::InvalidScope, "none of the scopes can be granted"));
        }
        Ok(granted)
    }
}

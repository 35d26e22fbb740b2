//! Credentials of a user at a server behind the gateway: what an upstream app asks for before it calls for somebody.
//!
//! Obtaining, keeping and refreshing them is left to the implementation. The caller's own token is never one of them.

use std::{fmt, sync::Arc};

use crate::{AppFuture, Principal};

/// A bearer token for one server. Its `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(Arc<str>);

impl BearerToken {
    /// Hides `token`.
    pub fn new(token: impl Into<Arc<str>>) -> Self {
        Self(token.into())
    }

    /// The token, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(..)")
    }
}

/// The address at which a user lets the gateway act for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorize {
    /// The address to open in a browser.
    pub url: String,
    /// Names this request; it appears in nothing secret.
    pub id: String,
}

/// Keeps what users allowed the gateway to do for them at other servers.
///
/// Errors are texts that are safe to show to the caller.
pub trait UserCredentials: Send + Sync + 'static {
    /// The token of `principal` for the app called `app`, refreshed when it is about to expire. `None`: the user has to authorize first,
    /// for the first time or because one of `scopes` was not asked for yet.
    fn bearer<'a>(
        &'a self,
        app: &'a str,
        principal: &'a Principal,
        scopes: &'a [String],
    ) -> AppFuture<'a, Result<Option<BearerToken>, String>>;

    /// Begins an authorization for `scopes` beside those of the app's settings and those that the user's token was asked for with.
    fn authorize<'a>(
        &'a self,
        app: &'a str,
        principal: &'a Principal,
        scopes: &'a [String],
    ) -> AppFuture<'a, Result<Authorize, String>>;

    /// The server refused `token`: another one when there is one, by refreshing; else the token is forgotten.
    fn refused<'a>(
        &'a self,
        app: &'a str,
        principal: &'a Principal,
        token: &'a BearerToken,
    ) -> AppFuture<'a, Result<Option<BearerToken>, String>>;
}

//! The interface of whatever authenticates requests.

use futures::future::BoxFuture;
use gatewright_core::Principal;
use http::request::Parts;

/// An answer an [`Authenticator`] gives instead of letting a request pass.
pub type HttpResponse = http::Response<axum::body::Body>;

/// Tells who sends a request to `/mcp` (and to the older transport's two paths).
pub trait Authenticator: Send + Sync + 'static {
    /// The caller, or the response to send instead: 401 with `WWW-Authenticate` (RFC 6750 §3).
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> BoxFuture<'a, Result<Principal, HttpResponse>>;

    /// Done once the token that `parts` show is not accepted any more: it expired, or what it came of has ended. Streams that were opened
    /// with it end then. Never done unless an authenticator says otherwise.
    fn until_ended(&self, _parts: &Parts) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    /// The response to a call that needs scopes its caller lacks: 403 with `error="insufficient_scope"` (RFC 6750 §3.1).
    fn insufficient_scope(&self, missing: &[String]) -> HttpResponse;
}

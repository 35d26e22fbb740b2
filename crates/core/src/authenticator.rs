//! Authentication of HTTP requests to the MCP endpoint.
//!
//! Transports ask an [`Authenticator`]; the crate `gatewright-auth` has one for its own tokens and for those of external providers.

use std::{sync::Arc, time::SystemTime};

use futures::future::BoxFuture;
use http::request::Parts;
use serde::{Deserialize, Serialize};

use crate::{Principal, RecordsError};

/// Response to a request that is not let through: its status and headers are sent, and its body, a JSON text such as
/// `{"error": …, "error_description": …}`, becomes the `data` of a JSON-RPC error.
pub type AuthRefusal = http::Response<String>;

/// Terms of work that goes on without a request, besides its principal: the token of the request that began it or took it up.
/// A request that another instance authenticated carries them as an extension.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkTerms {
    /// The time until which it may go on, for callers of whom nothing but their token is known. `None` if [`Authenticator::principal_now`] knows more.
    pub until: Option<SystemTime>,
    /// Name of the grant behind the token, at most 128 bytes: the work ends with it. `None` where the authenticator knows no grants.
    pub grant: Option<Arc<str>>,
}

/// Identifies the callers of the MCP endpoint.
pub trait Authenticator: Send + Sync + 'static {
    /// Returns the caller at the endpoint that [`EndpointName`](crate::EndpointName) on `parts` names, or the response to send instead: 401 with `WWW-Authenticate` (RFC 6750 §3).
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> BoxFuture<'a, Result<Principal, AuthRefusal>>;

    /// Resolves once the token of `parts` is no longer accepted: it expired or was revoked. Streams that were opened with it end then.
    /// The default never resolves.
    fn until_ended(&self, _parts: &Parts) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    /// Returns `principal`, who was authenticated at `since`, with the scopes that it has now of those that it had then, and its groups of now: for
    /// work that goes on without a request, under `grant` of its [`WorkTerms`]. `None` once its access has ended. The default: the same, for ever.
    ///
    /// # Errors
    /// The store that knows does not answer.
    fn principal_now<'a>(
        &'a self,
        principal: &'a Principal,
        _since: SystemTime,
        _grant: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Principal>, RecordsError>> {
        Box::pin(std::future::ready(Ok(Some(principal.clone()))))
    }

    /// Returns a name of the credential by which `principal` is known, if others may have its subject after it: what was approved for one is not approved for the
    /// next. `None` where the subject is the caller, which is the default.
    ///
    /// # Errors
    /// The store that knows does not answer.
    fn credential<'a>(
        &'a self,
        _principal: &'a Principal,
    ) -> BoxFuture<'a, Result<Option<String>, RecordsError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns what work rests on that the request of `parts` begins and that goes on without another one. The default: nothing.
    fn work_terms<'a>(&'a self, _parts: &'a Parts) -> BoxFuture<'a, WorkTerms> {
        Box::pin(std::future::ready(WorkTerms::default()))
    }

    /// Returns the response to a call that needs scopes which `principal` lacks: 403 with `error="insufficient_scope"` (RFC 6750 §3.1).
    fn insufficient_scope(&self, principal: &Principal, missing: &[String]) -> AuthRefusal;
}

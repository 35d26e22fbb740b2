//! Errors that keep a guarded server from starting.

use std::net::SocketAddr;

use gatewright_auth::{OpenError, store::StoreError};
use gatewright_operator::admin::AdminError;
use gatewright_server::ServeError;

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Error that keeps a guarded server from starting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// The configuration cannot be used.
    #[error("{0}")]
    Config(String),
    /// The store of rate limits does not answer.
    #[error("`rateLimits` are counted in `auth.tokenStorage`, which cannot be used")]
    RateLimits(#[source] StoreError),
    /// The store of executions does not answer.
    #[error(
        "`executions` are kept in `auth.tokenStorage`, which cannot be used; is the store running and reachable?"
    )]
    Executions(#[source] StoreError),
    /// The token store does not answer.
    #[error("`auth.tokenStorage` cannot be used; is the store running and reachable?")]
    TokenStore(#[source] OpenError),
    /// The authorization server cannot start.
    #[error("the authorization server cannot start")]
    AuthorizationServer(#[source] OpenError),
    /// No client can be made for tokens of users at this upstream server.
    #[error("{0}")]
    UserTokens(String),
    /// The Redis through which instances reach each other does not answer.
    #[error("`http.cluster` connects instances through the Redis of `{section}`, which cannot be reached")]
    Cluster {
        /// Section that names the Redis.
        section: &'static str,
        /// The error of the connection.
        source: StoreError,
    },
    /// The address is taken, or belongs to another machine.
    #[error("cannot listen on {address}; choose another `http.port` or `http.host`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The server cannot start.
    #[error(transparent)]
    Serve(ServeError),
    /// The admin listener cannot start.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The metrics cannot be registered.
    #[error("the metrics cannot be set up")]
    Metrics(#[source] Source),
    /// No client for the collector of traces can be made.
    #[error("traces cannot be sent")]
    Traces(#[source] Source),
}

impl From<OpenError> for GuardError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Config(_) | OpenError::Keys(_) => Self::Config(error.to_string()),
            OpenError::Store(_) => Self::TokenStore(error),
            other => Self::AuthorizationServer(other),
        }
    }
}

impl From<ServeError> for GuardError {
    fn from(error: ServeError) -> Self {
        match error {
            // Such as a bad certificate.
            error @ ServeError::Config(_) => Self::Config(error.to_string()),
            other => Self::Serve(other),
        }
    }
}

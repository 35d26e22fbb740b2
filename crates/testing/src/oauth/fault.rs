//! Faults on demand.

use std::time::Duration;

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// Both metadata documents.
    Metadata,
    /// The key set.
    Jwks,
    /// `/oauth/authorize`.
    Authorize,
    /// `/oauth/token`.
    Token,
    /// `/userinfo`.
    Userinfo,
    /// Every endpoint.
    All,
}

/// How it is broken.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Answers after this time.
    Slow(Duration),
    /// Answers with this status and `server_error`.
    Status(u16),
    /// Answers with text that is no JSON.
    Garbage,
    /// Metadata and the `iss` of answers and tokens name this issuer.
    WrongIssuer(String),
    /// Tokens are expired when they are issued.
    ExpiredTokens,
    /// Tokens have this `aud`, whatever was asked for.
    WrongAudience(String),
}

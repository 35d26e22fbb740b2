//! The token endpoint (RFC 6749 §3.2): one file for each grant.

mod authorization_code;
mod client_credentials;
mod endpoint;
mod refresh_token;
mod request;

pub(super) use self::endpoint::endpoint;

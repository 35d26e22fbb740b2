//! Servers and values that several files need.

pub(crate) mod account;
pub(crate) mod authenticator;
pub(crate) mod idp;
pub(crate) mod log;
pub(crate) mod redis_server;
pub(crate) mod redis_sets;
pub(crate) mod site;
pub(crate) mod web;

/// A private RSA key of 2048 bits, made for these tests.
pub(crate) fn rsa_jwk() -> gatewright_auth::keys::Jwk {
    serde_json::from_str(include_str!("rsa-2048.jwk.json")).unwrap()
}

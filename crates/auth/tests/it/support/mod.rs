//! Servers and values that several files need.

pub(crate) mod account;
pub(crate) mod authenticator;
pub(crate) mod idp;
pub(crate) mod log;
pub(crate) mod redis_server;
pub(crate) mod redis_sets;
pub(crate) mod site;
pub(crate) mod web;

/// The scopes that work of `principal` has now.
pub(crate) async fn scopes_now(
    guard: &gatewright_auth::ResourceServer,
    principal: &gatewright_core::Principal,
    since: std::time::SystemTime,
) -> Result<Option<gatewright_core::Scopes>, gatewright_core::RecordsError> {
    use gatewright_core::Authenticator as _;
    Ok(guard.principal_now(principal, since, None).await?.map(|now| now.scopes))
}

/// A private RSA key of 2048 bits, made for these tests.
pub(crate) fn rsa_jwk() -> gatewright_auth::keys::Jwk {
    serde_json::from_str(include_str!("rsa-2048.jwk.json")).unwrap()
}

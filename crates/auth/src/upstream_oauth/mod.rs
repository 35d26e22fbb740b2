//! The vault: tokens that users let the gateway obtain for them at the servers behind it.
//!
//! The gateway is an ordinary OAuth client of the other server's authorization server ([`discovery`], [`client`]): code flow with PKCE, state
//! and issuer checks, tokens bound to the server by `resource`, kept encrypted and refreshed by one instance at a time ([`tokens`]). The
//! address that a user opens leads to our own pages ([`browser`]) first: only a browser in which that user is signed in goes on, so that
//! nobody can connect another person's account to their own. The caller's own token is never sent to the other server.

mod browser;
mod client;
mod discovery;
mod router;
mod tokens;
mod vault;

pub use self::vault::{OauthEndpoints, UpstreamProvider, UpstreamVault};

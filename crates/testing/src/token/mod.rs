//! Signed access tokens and ID tokens for tests.

mod auth;
mod factory;
mod key;

pub use auth::{Auth, TokenOptions, Users};
pub use factory::{CreateTokenOptions, TokenFactory, TokenFactoryOptions};
pub use key::KeyFileError;
#[cfg(feature = "oauth")]
pub(crate) use key::{TestKey, jwks};

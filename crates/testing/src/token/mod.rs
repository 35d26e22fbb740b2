//! Signed access tokens and ID tokens for tests.

mod algorithm;
mod auth;
mod broken;
mod factory;
mod jws;
mod key;

pub use algorithm::Algorithm;
pub use auth::{Auth, TokenOptions, Users};
pub use broken::Defect;
pub use factory::{CreateTokenOptions, TokenFactory, TokenFactoryOptions};
#[cfg(feature = "oauth")]
pub(crate) use jws::{is_signed_by, sha256, thumbprint, unverified};
pub use key::KeyFileError;
#[cfg(feature = "oauth")]
pub(crate) use key::{TestKey, jwks};

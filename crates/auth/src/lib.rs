//! An OAuth 2.1 authorization server and resource server.
//!
//! `store` keeps what must be remembered.
#![forbid(unsafe_code)]

mod clock;
mod crypto;
pub mod keys;
pub mod store;

pub use clock::{Clock, Entropy, ManualClock, SystemClock, SystemEntropy};
pub use crypto::Sealer;

//! Cassettes: recorded responses in a JSON file, replayed on later runs. Secrets are redacted.
//!
//! A recorder defines its own [`Entry`]: the HTTP mock for HTTP calls, the client for JSON-RPC requests.

mod file;
pub(crate) mod redact;

pub use file::CassetteError;
pub(crate) use file::{Cassette, Entry, Protocol};

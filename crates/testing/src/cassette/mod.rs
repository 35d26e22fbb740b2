//! The file of a cassette: recorded responses as JSON, without secrets.
//!
//! Recording and replaying is elsewhere, each with an [`Entry`] of its own: `client/transport/recording.rs` for MCP,
//! `http_mock/recording.rs` for HTTP.

mod file;
pub(crate) mod redact;

pub use file::CassetteError;
pub(crate) use file::{Cassette, Entry, Protocol};

//! The file of a cassette: recorded responses as JSON, without secrets.
//!
//! `options` says when to record and what is secret, `redact` removes it. Recording and replaying is elsewhere, each with an
//! [`Entry`] of its own: `client/transport/recording.rs` for MCP, `http_mock/recording.rs` for HTTP.

mod file;
mod options;
pub(crate) mod redact;

pub use file::CassetteError;
pub(crate) use file::{Cassette, Entry, Protocol};
pub use options::{RecordMode, RecordOptions, Redaction};

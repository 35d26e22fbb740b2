//! Transports: they carry messages to and from a server, and know nothing of requests and responses.

mod http;
mod lines;
mod memory;
mod message;
mod recording;
mod routes;
mod shared;
mod sse;

pub(super) use http::HttpTransport;
pub(crate) use lines::LineTransport;
pub(super) use memory::{MemoryTransport, TokenGuard};
pub(crate) use message::{Connector, Incoming, Outgoing, Transport};
pub(super) use message::{SharedHeaders, is_stateless};
#[cfg(feature = "suites")]
pub(crate) use recording::Tape;
pub(super) use recording::{Recording, recorded};
pub(crate) use shared::{Handshake, SharedConnection};
pub(super) use sse::SseTransport;

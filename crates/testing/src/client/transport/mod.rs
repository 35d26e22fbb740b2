//! Transports: they carry messages to and from a server, and know nothing of requests and responses.

mod http;
mod lines;
mod memory;
mod message;
mod recording;
#[cfg(feature = "suites")]
mod routes;
#[cfg(feature = "suites")]
mod shared;
mod sse;

pub(super) use http::HttpTransport;
pub(crate) use lines::LineTransport;
pub(super) use memory::{MemoryTransport, TokenGuard};
pub(crate) use message::{Connector, Outgoing, Transport};
pub(super) use message::{Incoming, SharedHeaders, is_stateless};
#[cfg(feature = "suites")]
pub(crate) use recording::Tape;
pub(super) use recording::{Recording, recorded};
#[cfg(feature = "suites")]
pub(crate) use shared::SharedConnection;
pub(super) use sse::SseTransport;

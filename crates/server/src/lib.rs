//! MCP over Streamable HTTP and stdio: what `rmcp` leaves open, closed.
//!
//! [`Server`] puts a [`Gateway`](gatewright_core::Gateway) on a socket: Host and Origin are checked, bodies, sessions and
//! concurrent requests are capped, every refusal is JSON, and shutdown ends within a set time. [`serve_stdio`] serves one
//! client on standard input and output. Protocol and dispatch live in `rmcp` and `gatewright-core`.
#![forbid(unsafe_code)]

// The channel of the integration tests serves the unit tests too.
#[cfg(test)]
extern crate self as gatewright_server;

mod answer_memory;
mod batch;
mod batch_answers;
mod body;
mod bound;
pub mod clients;
mod cluster;
mod config;
mod connections;
mod ctrl_c;
mod dispatcher;
mod edge;
mod gate;
mod health;
mod homes;
mod host_and_origin;
mod http_metrics;
mod idle;
mod in_flight;
mod kept_messages;
mod landing;
mod lines;
mod mcp;
mod message_limit;
mod mode;
mod paths;
mod refusal;
mod relay;
mod request_memory;
mod resumption;
mod server;
mod session_room;
mod sessions;
mod sse;
mod stdio;
mod tls;
mod unsent;

pub use bound::Bound;
pub use cluster::{ClusterConfig, ClusterKey, ClusterRedis};
pub use config::HttpConfig;
pub use ctrl_c::until_ctrl_c;
pub use http_metrics::{Occupancy, Occupied};
pub use lines::LineTransport;
pub use relay::{Delivery, FromPeers, NotDelivered, PeerChannel};
pub use server::{ServeError, Server, ServerBuilder, listen};
pub use stdio::{serve_lines, serve_stdio, serve_stdio_as};
pub use tls::{Certificate, TlsConfig};

pub use axum;

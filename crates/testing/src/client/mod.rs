//! The MCP client of a test: it sees and can send everything that goes over the wire.
//!
//! From the bottom up: `transport` carries messages, `recorder` keeps what the server sent, `connection` sorts incoming messages,
//! `engine` sends requests, and `mcp` with its parts (`tools`, `resources`, `prompts`, `raw`, `subscription`) is the face.

mod builder;
mod connection;
mod engine;
mod handlers;
mod initialize;
mod interceptors;
mod kept;
mod logs;
mod mcp;
pub mod mock_response;
mod mocks;
mod notifications;
mod pending_call;
mod pending_requests;
mod prompts;
mod raw;
mod recorder;
mod resources;
mod server_requests;
mod settings;
mod subscription;
mod tools;
mod trace;
mod transport;

pub use builder::McpBuilder;
pub use handlers::ElicitResult;
pub use interceptors::{
    InterceptedRequest, InterceptedResponse, InterceptorHandle, Interceptors, RequestAction, ResponseAction,
};
pub use logs::{LogEntry, LogLevel, Logs};
pub use mcp::{Mcp, ServerIdentity};
pub use mocks::{MockHandle, MockOptions, Mocks};
pub use notifications::Notifications;
pub use pending_call::PendingCall;
pub use prompts::Prompts;
pub use raw::Raw;
pub use resources::Resources;
pub use subscription::Subscription;
pub use tools::{ToolCall, Tools};
pub use trace::{RequestTrace, Trace};

pub(crate) use builder::memory_connector;
pub(crate) use settings::Startup;
#[cfg(feature = "suites")]
pub(crate) use transport::Tape;
pub(crate) use transport::{
    Connector, Handshake, Incoming, LineTransport, Outgoing, SharedConnection, Transport,
};

//! MCP servers in other processes and on other hosts, as apps of the gateway.
//!
//! [`UpstreamApp`] is an [`App`](gatewright_core::App) over stdio, Streamable HTTP or the older HTTP+SSE. Each has one
//! supervisor that connects, reads the lists, follows their changes, and restarts the server with growing waits when it
//! fails. Nothing of one upstream waits for another. [`PerCallerApp`] has one of them for each principal or session, so that callers
//! share nothing at the server.
//!
//! # What passes through
//!
//! * Progress of a server reaches the caller of that call under the caller's own token. Cancelled, timed-out and
//!   dropped calls are cancelled at the server. `_meta` passes but for the keys that belong to a connection.
//! * Log messages name no call. They reach the callers of all open calls when these are one principal, and nobody else.
//! * Elicitation, sampling and roots are declared to every server, because the gateway forwards them. A question goes to
//!   the call on whose response stream it came (Streamable HTTP), or to the caller when only one session has calls open
//!   (stdio, HTTP+SSE). Otherwise it is refused, and for five minutes calls to that server take turns, so that the next
//!   question has an owner; each question that came while others waited makes it five minutes again. Subjects take their
//!   turns one after the other, however many calls one of them has. A caller without the capability is not asked. A caller of the 2026-07-28 era cannot be
//!   asked by a server of the older era: that server waits inside the call, and a stateless retry cannot resume it.
//!   It gets an error that says so. Roots asked outside a call are answered with none.
//! * A tool with `taskSupport: "required"` (MCP 2025-11-25) is called as a task, which is awaited: its caller gets a plain result. So does
//!   the caller of a 2026-07-28 server that answers with a task, unless it declared the extension. Calls that are cancelled, time out or
//!   lose their client cancel the task. A task takes the place of a call (`maxConcurrency`) until it is over.
//! * `input_required` results and the answers to them pass untouched between peers of the 2026-07-28 era.
#![expect(
    deprecated,
    reason = "the older era still has logging, sampling and roots, which SEP-2577 marks as deprecated"
)]

mod app;
mod arriving;
mod authorize;
mod backoff;
mod call;
mod config;
mod connect;
mod connection;
mod connections;
mod error_text;
mod event_stream;
mod failure;
mod followed;
mod handler;
mod handshake;
mod http;
mod http_client;
mod http_error;
mod jsonc;
mod kept_lists;
mod list_room;
mod mcp_servers;
mod message_limit;
mod open_calls;
mod outgoing;
mod per_caller;
mod places;
mod post;
mod rare_line;
mod redactor;
mod result_kinds;
mod sessions;
mod short_messages;
mod sse_posts;
mod stdio;
mod supervisor;
mod tap;
mod task_tools;
mod tasks;
mod turns;
mod upstream;
mod user;

pub use app::UpstreamApp;
pub use config::{
    INHERITED, OauthClient, RestartConfig, Sessions, TransportType, UpstreamAuth, UpstreamConfig,
    names_credential,
};
pub use gatewright_core::Secret;
pub use jsonc::strict_json;
pub use mcp_servers::{McpServer, McpServersError, mcp_servers, parse_mcp_servers, read_mcp_servers};
pub use per_caller::PerCallerApp;

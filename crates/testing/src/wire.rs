//! How messages travel: one small trait, four transports. JSON-RPC itself is in `client`.

pub(crate) mod http;
pub(crate) mod lines;
pub(crate) mod memory;
pub(crate) mod sse;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::ClientError;

/// What comes from the server.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A JSON value: a message, or what the server takes for one.
    Message(Value),
    /// Text that is no JSON, such as a `println!` on a stdio server.
    Garbage(String),
    /// The stream that was to carry the answer to this id ended without it.
    Unanswered(Value, String),
    /// Nothing more will come.
    Closed(String),
}

pub(crate) type Inbox = mpsc::UnboundedSender<Incoming>;

/// One message on its way out, with what a transport may need to know of it.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) text: String,
    /// The id an answer will carry; absent for notifications and answers.
    pub(crate) id: Option<Value>,
    pub(crate) method: Option<String>,
    /// `Mcp-Name` and `Mcp-Param-*` (2026-07-28), HTTP only.
    pub(crate) headers: Vec<(String, String)>,
}

impl Outgoing {
    pub(crate) fn message(message: &Value) -> Self {
        Self {
            text: message.to_string(),
            id: message.get("id").filter(|_| message.get("method").is_some()).cloned(),
            method: message.get("method").and_then(Value::as_str).map(str::to_owned),
            headers: Vec::new(),
        }
    }
}

/// A connection to a server.
#[async_trait]
pub(crate) trait Wire: Send + Sync {
    /// Sends one message. Answers go to the inbox the transport was made with.
    async fn send(&self, message: Outgoing) -> Result<(), ClientError>;

    /// Uses `token` from the next message on. `false`: this transport carries no token.
    fn set_token(&self, token: Option<String>) -> bool;

    /// The session the server gave out, if any.
    fn session_id(&self) -> Option<String> {
        None
    }

    /// Says which revision was agreed on. Called once `initialize` is answered.
    async fn agreed(&self, _version: &str) {}

    /// Whether headers that mirror the body are wanted.
    fn is_http(&self) -> bool {
        false
    }

    /// Ends the stream that a request has for itself. `false`: it has none.
    fn cancel(&self, _id: &Value) -> bool {
        false
    }

    /// Ends the connection.
    async fn close(&self);
}

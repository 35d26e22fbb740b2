//! The trait of transports, and the messages they carry.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::future::BoxFuture;
use gatewright_core::Era;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{protocol::ClientError, shapes::Violation};

/// True for protocol revisions without `initialize` and sessions.
pub(crate) fn is_stateless(version: &str) -> bool {
    Era::of_version(version).is_stateless()
}

/// A message or event from the server.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A JSON value, usually a JSON-RPC message.
    Message(Value),
    /// Text that is not JSON, such as a `println!` of a stdio server.
    NotJson(String),
    /// A message that breaks a rule of its transport. Precedes the message.
    Violation(Violation),
    /// The stream for the response to this id ended without one, for this reason.
    NoResponse(Value, String),
    /// The connection has ended, for this reason.
    Closed(String),
}

/// The channel into which a transport sends incoming messages.
pub(crate) type MessageSender = mpsc::UnboundedSender<Incoming>;

/// An outgoing message, with the parts of it that transports need.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) text: String,
    /// The id of a request; absent for notifications and responses.
    pub(crate) id: Option<Value>,
    pub(crate) method: Option<String>,
    /// `Mcp-Name` and `Mcp-Param-*` (2026-07-28), for HTTP only.
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
pub(crate) trait Transport: Send + Sync {
    /// Sends a message. Responses arrive through the [`MessageSender`] of the transport.
    async fn send(&self, message: Outgoing) -> Result<(), ClientError>;

    /// Uses `token` from the next message on. Returns false if the transport cannot carry tokens.
    fn set_token(&self, token: Option<String>) -> bool;

    /// The session id from the server.
    fn session_id(&self) -> Option<String> {
        None
    }

    /// Sets the negotiated protocol revision, during the handshake.
    async fn negotiated(&self, _version: &str) {}

    /// True if requests need headers that mirror the body.
    fn is_http(&self) -> bool {
        false
    }

    /// Closes the stream of a request. Returns false if the request has no stream of its own.
    fn cancel(&self, _id: &Value) -> bool {
        false
    }

    /// Closes the connection.
    async fn close(&self);
}

/// Headers of the test for every HTTP request. They may change while a client is connected.
pub(crate) type SharedHeaders = Arc<Mutex<Vec<(String, String)>>>;

/// Opens a connection. Takes the sender for incoming messages, and the bearer token.
pub(crate) type Connector = Arc<
    dyn Fn(MessageSender, Option<String>) -> BoxFuture<'static, Result<Arc<dyn Transport>, ClientError>>
        + Send
        + Sync,
>;

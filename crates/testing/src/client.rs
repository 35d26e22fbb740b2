//! The MCP client of a test: sees and can say everything that goes over the wire.
//!
//! Connecting is in `connect`, the way of a request in `engine`, what the server asks the client in `handlers`.

mod connect;
mod engine;
mod greeting;
mod handlers;
mod link;
mod listen;
mod logs;
mod notifications;
mod open_call;
mod prompts;
mod raw;
mod resources;
mod tools;
mod trace;
mod waiting;

pub use connect::McpBuilder;
pub use handlers::Elicited;
pub use listen::Subscription;
pub use logs::{LogEntry, LogLevel, Logs};
pub use notifications::{Notification, Notifications};
pub use open_call::OpenCall;
pub use prompts::Prompts;
pub use raw::Raw;
pub use resources::Resources;
pub use tools::{ToolCall, Tools};
pub use trace::{RequestTrace, Trace};

pub(crate) use connect::{Connector, Starting, memory_connector};

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    ClientError,
    intercept::Interceptors,
    lock,
    mock::{Mocks, RpcRequest},
};
use engine::Core;

/// A client of one MCP server. Clones share the connection.
#[derive(Clone)]
pub struct Mcp {
    core: Arc<Core>,
}

impl std::fmt::Debug for Mcp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mcp")
            .field("connected", &self.is_connected())
            .field("protocol_version", &self.protocol_version())
            .finish_non_exhaustive()
    }
}

/// Who the server says it is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ServerIdentity {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Mcp {
    /// Tools of the server.
    pub fn tools(&self) -> Tools<'_> {
        Tools { core: &self.core }
    }

    /// Resources of the server.
    pub fn resources(&self) -> Resources<'_> {
        Resources { core: &self.core }
    }

    /// Prompts of the server.
    pub fn prompts(&self) -> Prompts<'_> {
        Prompts { core: &self.core }
    }

    /// Messages as they are.
    pub fn raw(&self) -> Raw<'_> {
        Raw { core: &self.core }
    }

    /// Log messages: the server's (`notifications/message`) and the client's own.
    pub fn logs(&self) -> &Logs {
        &self.core.logs
    }

    /// Every request made, with its answer.
    pub fn trace(&self) -> &Trace {
        &self.core.trace
    }

    /// Notifications the server sent.
    pub fn notifications(&self) -> &Notifications {
        &self.core.notifications
    }

    /// Requests the server made of the client, oldest first: `elicitation/create`, `sampling/createMessage`, `roots/list`,
    /// `ping`. What a server of 2026-07-28 asks in its answers is not among them.
    pub fn questions(&self) -> Vec<RpcRequest> {
        lock(&self.core.questions).clone()
    }

    /// Answers given in place of the server's.
    pub fn mock(&self) -> &Mocks {
        &self.core.mocks
    }

    /// Hands on the way between the client and the server.
    pub fn intercept(&self) -> &Interceptors {
        &self.core.interceptors
    }

    /// Whether the connection stands.
    pub fn is_connected(&self) -> bool {
        self.core.is_connected()
    }

    /// The session the server gave out. None over stdio, in memory, and from 2026-07-28.
    pub fn session_id(&self) -> Option<String> {
        self.core.session_id()
    }

    /// Who the server says it is; before `initialize` is answered, nobody.
    pub fn server_info(&self) -> Option<ServerIdentity> {
        let facts = lock(&self.core.facts);
        Some(ServerIdentity {
            name: facts.server_info["name"].as_str()?.to_owned(),
            version: facts.server_info["version"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// The revision that was agreed on, such as `2025-11-25`.
    pub fn protocol_version(&self) -> String {
        lock(&self.core.facts).version.clone()
    }

    /// What the server can do, as it said.
    pub fn capabilities(&self) -> Value {
        lock(&self.core.facts).capabilities.clone()
    }

    /// Whether the server said it can do `name`: `tools`, `resources`, `prompts`, or any other key.
    pub fn has_capability(&self, name: &str) -> bool {
        lock(&self.core.facts).capabilities.get(name).is_some_and(|value| !value.is_null())
    }

    /// The server's text for the model.
    pub fn instructions(&self) -> Option<String> {
        lock(&self.core.facts).instructions.clone()
    }

    /// How long to wait for an answer. Default 30 s.
    pub fn set_timeout(&self, timeout: Duration) {
        *lock(&self.core.timeout) = timeout;
    }

    /// Sends `token` as bearer token from now on, and asks the server at once whether it takes it. A client whose
    /// connection was refused connects.
    ///
    /// # Errors
    /// The server refused the token ([`ClientError::Refused`]); the token is used all the same from then on. Or this
    /// transport carries no tokens.
    pub async fn authenticate(&self, token: impl AsRef<str>) -> Result<(), ClientError> {
        self.core.authenticate(Some(token.as_ref().to_owned())).await
    }

    /// Sends no token any more.
    ///
    /// # Errors
    /// As [`Mcp::authenticate`].
    pub async fn forget_token(&self) -> Result<(), ClientError> {
        self.core.authenticate(None).await
    }

    /// Ends the session and connects again, with the same token.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub async fn reconnect(&self) -> Result<(), ClientError> {
        self.core.disconnect().await;
        self.core.connect().await
    }

    /// Ends the session and the connection.
    pub async fn disconnect(&self) {
        self.core.disconnect().await;
    }

    /// Answers questions of the server (`elicitation/create`). Without a handler they are declined.
    pub fn on_elicitation<F, A>(&self, handler: F)
    where
        F: Fn(Value) -> A + Send + Sync + 'static,
        A: Future<Output = Elicited> + Send + 'static,
    {
        lock(&self.core.handlers).elicitation = Some(Arc::new(move |params| Box::pin(handler(params))));
    }

    /// Declines questions again.
    pub fn clear_elicitation_handler(&self) {
        lock(&self.core.handlers).elicitation = None;
    }

    /// Answers requests for a completion (`sampling/createMessage`) with a `CreateMessageResult`. Without a handler they
    /// fail with -32601.
    pub fn on_sampling<F, A>(&self, handler: F)
    where
        F: Fn(Value) -> A + Send + Sync + 'static,
        A: Future<Output = Value> + Send + 'static,
    {
        lock(&self.core.handlers).sampling = Some(Arc::new(move |params| Box::pin(handler(params))));
    }

    /// What `roots/list` answers: objects with `uri` and `name`. Default: none.
    pub fn set_roots(&self, roots: Vec<Value>) {
        lock(&self.core.handlers).roots = roots;
    }
}

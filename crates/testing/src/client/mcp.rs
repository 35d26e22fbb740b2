//! The client as a test uses it.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    engine::Engine, handlers::ElicitResult, interceptors::Interceptors, logs::Logs, mocks::Mocks,
    notifications::Notifications, prompts::Prompts, raw::Raw, resources::Resources, tools::Tools,
    trace::Trace,
};
#[cfg(feature = "suites")]
use crate::protocol::RpcError;
use crate::{
    base::lock,
    protocol::{ClientError, RpcRequest},
    shapes::Violation,
};

/// A client of one MCP server. Clones share the connection.
#[derive(Debug, Clone)]
pub struct Mcp {
    pub(super) engine: Arc<Engine>,
}

/// Name and version of the server.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ServerIdentity {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
}

impl Mcp {
    /// The tools of the server.
    pub fn tools(&self) -> Tools<'_> {
        Tools { engine: &self.engine }
    }

    /// The resources of the server.
    pub fn resources(&self) -> Resources<'_> {
        Resources { engine: &self.engine }
    }

    /// The prompts of the server.
    pub fn prompts(&self) -> Prompts<'_> {
        Prompts { engine: &self.engine }
    }

    /// Messages exactly as written.
    pub fn raw(&self) -> Raw<'_> {
        Raw { engine: &self.engine }
    }

    /// Log messages: the server's (`notifications/message`) and the client's own.
    pub fn logs(&self) -> &Logs {
        &self.engine.recorder.logs
    }

    /// All requests of this client, with their responses.
    pub fn trace(&self) -> &Trace {
        &self.engine.trace
    }

    /// Notifications the server sent.
    pub fn notifications(&self) -> &Notifications {
        &self.engine.recorder.notifications
    }

    /// Requests of the server to the client, oldest first: `elicitation/create`, `sampling/createMessage`, `roots/list`, `ping`.
    /// Includes the input that a server of 2026-07-28 requests in its responses, with the key of the request as its id.
    pub fn server_requests(&self) -> Vec<RpcRequest> {
        self.engine.recorder.requests.all()
    }

    /// Waits for `count` requests of the server of this method, counting earlier ones.
    ///
    /// # Errors
    /// They did not arrive within `timeout`.
    pub async fn wait_for_server_requests(
        &self,
        method: &str,
        count: usize,
        timeout: Duration,
    ) -> Result<Vec<RpcRequest>, ClientError> {
        self.engine.recorder.requests.wait_for(method, count, timeout).await
    }

    /// Answers requests of the server with `rule`, where it returns something, before all other handlers.
    #[cfg(feature = "suites")]
    pub(crate) fn answer_with(
        &self,
        rule: impl Fn(&str, &Value) -> Option<Result<Value, RpcError>> + Send + Sync + 'static,
    ) {
        lock(&self.engine.recorder.handlers).rule = Some(Arc::new(rule));
    }

    /// Messages of the server that broke a rule of [`McpBuilder::strict`](super::McpBuilder::strict), oldest first; the first 100.
    pub fn violations(&self) -> Vec<Violation> {
        self.engine.recorder.shapes.all()
    }

    /// The error of violations that no call has failed with: of notifications and requests of the server after the last call.
    pub(crate) fn untold_violations(&self) -> Option<ClientError> {
        self.engine.recorder.shapes.untold()
    }

    /// Violations since the last time that were not the error of a call.
    #[cfg(feature = "suites")]
    pub(crate) fn take_violations(&self) -> Vec<Violation> {
        self.engine.recorder.shapes.take()
    }

    /// Forgets what the client recorded: a run of many calls keeps none of it.
    #[cfg(feature = "suites")]
    pub(crate) fn forget(&self) {
        let recorder = &self.engine.recorder;
        self.engine.trace.clear();
        recorder.logs.clear();
        recorder.notifications.clear();
        recorder.shapes.clear();
        recorder.requests.clear();
        lock(&recorder.not_json).clear();
    }

    /// Mocked responses, returned instead of the server's.
    pub fn mock(&self) -> &Mocks {
        &self.engine.mocks
    }

    /// Interceptors of requests and responses.
    pub fn intercept(&self) -> &Interceptors {
        &self.engine.interceptors
    }

    /// True while the client is connected.
    pub fn is_connected(&self) -> bool {
        self.engine.is_connected()
    }

    /// The session id from the server. `None` over stdio, in memory, and from 2026-07-28 on.
    pub fn session_id(&self) -> Option<String> {
        self.engine.session_id()
    }

    /// Name and version of the server; `None` before the handshake.
    pub fn server_info(&self) -> Option<ServerIdentity> {
        let server = lock(&self.engine.server);
        Some(ServerIdentity {
            name: server.info["name"].as_str()?.to_owned(),
            version: server.info["version"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// The negotiated protocol revision, such as `2025-11-25`.
    pub fn protocol_version(&self) -> String {
        lock(&self.engine.server).version.clone()
    }

    /// The capabilities of the server.
    pub fn capabilities(&self) -> Value {
        lock(&self.engine.server).capabilities.clone()
    }

    /// True if the server declares the capability `name`: `tools`, `resources`, `prompts`, or any other key.
    pub fn has_capability(&self, name: &str) -> bool {
        lock(&self.engine.server).capabilities.get(name).is_some_and(|value| !value.is_null())
    }

    /// The instructions of the server for the model.
    pub fn instructions(&self) -> Option<String> {
        lock(&self.engine.server).instructions.clone()
    }

    /// Sets the timeout of responses. Default 30 s.
    pub fn set_timeout(&self, timeout: Duration) {
        *lock(&self.engine.timeout) = timeout;
    }

    /// Uses `token` as bearer token from now on, and sends a request to check that the server accepts it. Connects a client whose
    /// connection was rejected.
    ///
    /// # Errors
    /// The server rejects the token ([`ClientError::Refused`]); the client keeps using it. Or the transport cannot carry tokens.
    pub async fn authenticate(&self, token: impl AsRef<str>) -> Result<(), ClientError> {
        self.engine.authenticate(Some(token.as_ref().to_owned())).await
    }

    /// As [`Mcp::authenticate`], with these headers on every HTTP request instead of those so far, such as an API key; the token may be absent.
    ///
    /// # Errors
    /// As [`Mcp::authenticate`].
    pub async fn authenticate_with(
        &self,
        token: Option<String>,
        headers: Vec<(String, String)>,
    ) -> Result<(), ClientError> {
        *lock(&self.engine.headers) = headers;
        self.engine.authenticate(token).await
    }

    /// Stops using the token.
    ///
    /// # Errors
    /// As [`Mcp::authenticate`].
    pub async fn forget_token(&self) -> Result<(), ClientError> {
        self.engine.authenticate(None).await
    }

    /// Ends the session and connects again, with the same token.
    ///
    /// # Errors
    /// The server cannot be reached or rejects the client.
    pub async fn reconnect(&self) -> Result<(), ClientError> {
        self.engine.disconnect().await;
        self.engine.connect().await
    }

    /// Ends the session and the connection.
    pub async fn disconnect(&self) {
        self.engine.disconnect().await;
    }

    /// Sets the handler of `elicitation/create`. Without one, elicitations are declined.
    pub fn on_elicitation<F, A>(&self, handler: F)
    where
        F: Fn(Value) -> A + Send + Sync + 'static,
        A: Future<Output = ElicitResult> + Send + 'static,
    {
        lock(&self.engine.recorder.handlers).elicitation =
            Some(Arc::new(move |params| Box::pin(handler(params))));
    }

    /// Removes the handler of `elicitation/create`.
    pub fn clear_elicitation_handler(&self) {
        lock(&self.engine.recorder.handlers).elicitation = None;
    }

    /// Sets the handler of `sampling/createMessage`; it returns a `CreateMessageResult`. Without one, such requests fail with
    /// -32601.
    pub fn on_sampling<F, A>(&self, handler: F)
    where
        F: Fn(Value) -> A + Send + Sync + 'static,
        A: Future<Output = Value> + Send + 'static,
    {
        lock(&self.engine.recorder.handlers).sampling =
            Some(Arc::new(move |params| Box::pin(handler(params))));
    }

    /// Sets the result of `roots/list`: objects with `uri` and `name`. Default: none.
    pub fn set_roots(&self, roots: Vec<Value>) {
        lock(&self.engine.recorder.handlers).roots = roots;
    }
}

//! A server handler in this process. Messages pass as JSON, so that a test sees exactly what a socket would carry.

use std::{
    borrow::Cow,
    future::Future,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use gatewright_core::{
    Principal, Scopes,
    rmcp::{
        RoleServer, ServerHandler, ServiceExt,
        model::{GetExtensions as _, JsonRpcMessage},
        service::{RxJsonRpcMessage, TxJsonRpcMessage},
        transport,
    },
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::message::{Incoming, MessageSender, Outgoing, Transport};
use crate::{base::lock, protocol::ClientError, token::TokenFactory};

/// The client end.
pub(crate) struct MemoryTransport {
    to_server: Mutex<Option<mpsc::UnboundedSender<String>>>,
    stop: CancellationToken,
    guard: Option<TokenGuard>,
}

/// Accepts only callers with a token of an issuer, like a resource server.
#[derive(Clone)]
pub(crate) struct TokenGuard {
    issuer: TokenFactory,
    token: Arc<Mutex<Option<String>>>,
}

impl TokenGuard {
    pub(crate) fn new(issuer: TokenFactory, token: Option<String>) -> Self {
        Self { issuer, token: Arc::new(Mutex::new(token)) }
    }

    /// The head of an HTTP request with the caller, as an HTTP server would see it.
    fn parts(&self) -> Result<http::request::Parts, &'static str> {
        let token = lock(&self.token).clone().ok_or("there is no token")?;
        let claims = self.issuer.verify(&token)?;
        let request = http::Request::post("/mcp").header("authorization", format!("Bearer {token}")).body(());
        let (mut parts, ()) = request.map_err(|_| "the token does not fit into a header")?.into_parts();
        let text = |name: &str| claims[name].as_str().map(Arc::from);
        parts.extensions.insert(Principal {
            subject: text("sub").ok_or("the token names nobody")?,
            client_id: text("client_id"),
            scopes: Scopes::parse(claims["scope"].as_str().unwrap_or_default()),
            ..Principal::local()
        });
        Ok(parts)
    }

    /// HTTP 401 with a challenge (RFC 6750 §3).
    fn unauthorized(&self, reason: &str) -> ClientError {
        let challenge = match lock(&self.token).is_some() {
            true => format!("Bearer error=\"invalid_token\", error_description=\"{reason}\""),
            false => "Bearer".to_owned(),
        };
        ClientError::Refused { status: 401, challenge: Some(challenge), body: String::new() }
    }
}

impl MemoryTransport {
    /// Serves `handler` to one client, which receives messages from `sender`.
    pub(crate) fn serve<H: ServerHandler>(
        handler: H,
        sender: MessageSender,
        guard: Option<TokenGuard>,
    ) -> Self {
        let (to_server, from_client) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        let end = ServerEnd { from_client, to_client: sender.clone(), guard: guard.clone() };
        let serving = handler.serve_with_ct(end, stop.clone());
        tokio::spawn(async move {
            let reason = match serving.await {
                Ok(running) => match running.waiting().await {
                    Ok(quit) => format!("the in-memory server ended ({quit:?})"),
                    Err(error) => format!("the in-memory server panicked: {error}"),
                },
                Err(error) => format!("the in-memory server did not start: {error}"),
            };
            let _ = sender.send(Incoming::Closed(reason));
        });
        Self { to_server: Mutex::new(Some(to_server)), stop, guard }
    }
}

#[async_trait]
impl Transport for MemoryTransport {
    async fn send(&self, message: Outgoing) -> Result<(), ClientError> {
        if let Some(guard) = &self.guard {
            guard.parts().map_err(|reason| guard.unauthorized(reason))?;
        }
        let sender = lock(&self.to_server).clone();
        sender
            .and_then(|sender| sender.send(message.text).ok())
            .ok_or_else(|| ClientError::Closed("the in-memory connection is closed".into()))
    }

    fn set_token(&self, token: Option<String>) -> bool {
        let Some(guard) = &self.guard else { return false };
        *lock(&guard.token) = token;
        true
    }

    async fn close(&self) {
        lock(&self.to_server).take();
        self.stop.cancel();
    }
}

impl Drop for MemoryTransport {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The server end: it parses text, like any server.
struct ServerEnd {
    from_client: mpsc::UnboundedReceiver<String>,
    to_client: MessageSender,
    guard: Option<TokenGuard>,
}

impl ServerEnd {
    /// Adds the caller to a message, as an HTTP server does.
    fn with_caller(&self, mut message: RxJsonRpcMessage<RoleServer>) -> RxJsonRpcMessage<RoleServer> {
        let Some(parts) = self.guard.as_ref().and_then(|guard| guard.parts().ok()) else { return message };
        match &mut message {
            JsonRpcMessage::Request(request) => {
                request.request.extensions_mut().insert(parts);
            }
            JsonRpcMessage::Notification(notification) => {
                notification.notification.extensions_mut().insert(parts);
            }
            _ => {}
        }
        message
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the client is gone")]
struct ClientGone;

impl transport::Transport<RoleServer> for ServerEnd {
    type Error = ClientGone;

    fn name() -> Cow<'static, str> {
        "memory".into()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), ClientGone>> + Send + 'static {
        let sent = serde_json::to_value(&message)
            .ok()
            .and_then(|value| self.to_client.send(Incoming::Message(value)).ok())
            .ok_or(ClientGone);
        std::future::ready(sent)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let text = self.from_client.recv().await?;
            let (code, message, id) = match serde_json::from_str::<Value>(&text) {
                Err(error) => (-32700, format!("Parse error: {error}"), Value::Null),
                Ok(value) => {
                    let id = value.get("id").cloned().unwrap_or(Value::Null);
                    match serde_json::from_value(value) {
                        Ok(message) => return Some(self.with_caller(message)),
                        Err(error) => (-32600, format!("Invalid Request: {error}"), id),
                    }
                }
            };
            let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
            self.to_client.send(Incoming::Message(error)).ok()?;
        }
    }

    async fn close(&mut self) -> Result<(), ClientGone> {
        self.from_client.close();
        Ok(())
    }
}

//! A server handler in this process. Messages pass as JSON values, so a test sees exactly what a socket would carry.

use std::{borrow::Cow, future::Future, sync::Mutex};

use async_trait::async_trait;
use gatewright_core::rmcp::{
    RoleServer, ServerHandler, ServiceExt,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Inbox, Incoming, Outgoing, Wire};
use crate::ClientError;

/// The client's end.
pub(crate) struct MemoryWire {
    to_server: Mutex<Option<mpsc::UnboundedSender<String>>>,
    stop: CancellationToken,
}

impl MemoryWire {
    /// Serves `handler` to the one client that reads `inbox`.
    pub(crate) fn serve<H: ServerHandler>(handler: H, inbox: Inbox) -> Self {
        let (to_server, from_client) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        let end = ServerEnd { from_client, inbox: inbox.clone() };
        let serving = handler.serve_with_ct(end, stop.clone());
        tokio::spawn(async move {
            let why = match serving.await {
                Ok(running) => match running.waiting().await {
                    Ok(reason) => format!("the in-memory server ended ({reason:?})"),
                    Err(error) => format!("the in-memory server panicked: {error}"),
                },
                Err(error) => format!("the in-memory server did not start: {error}"),
            };
            let _ = inbox.send(Incoming::Closed(why));
        });
        Self { to_server: Mutex::new(Some(to_server)), stop }
    }
}

#[async_trait]
impl Wire for MemoryWire {
    async fn send(&self, message: Outgoing) -> Result<(), ClientError> {
        let sender = crate::lock(&self.to_server).clone();
        sender
            .and_then(|sender| sender.send(message.text).ok())
            .ok_or_else(|| ClientError::Closed("the in-memory connection is closed".into()))
    }

    fn set_token(&self, _token: Option<String>) -> bool {
        false
    }

    async fn close(&self) {
        crate::lock(&self.to_server).take();
        self.stop.cancel();
    }
}

impl Drop for MemoryWire {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The server's end: reads text, as any server would.
struct ServerEnd {
    from_client: mpsc::UnboundedReceiver<String>,
    inbox: Inbox,
}

#[derive(Debug, thiserror::Error)]
#[error("the client is gone")]
struct Gone;

impl Transport<RoleServer> for ServerEnd {
    type Error = Gone;

    fn name() -> Cow<'static, str> {
        "memory".into()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Gone>> + Send + 'static {
        let sent = serde_json::to_value(&message)
            .ok()
            .and_then(|value| self.inbox.send(Incoming::Message(value)).ok())
            .ok_or(Gone);
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
                        Ok(message) => return Some(message),
                        Err(error) => (-32600, format!("Invalid Request: {error}"), id),
                    }
                }
            };
            let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
            self.inbox.send(Incoming::Message(error)).ok()?;
        }
    }

    async fn close(&mut self) -> Result<(), Gone> {
        self.from_client.close();
        Ok(())
    }
}

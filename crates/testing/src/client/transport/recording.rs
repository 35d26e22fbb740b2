//! Cassettes of MCP: a transport that records the responses of another, and one that replays them.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use super::message::{Connector, Incoming, MessageSender, Outgoing, Transport};
use crate::{
    base::{lock, text::shorten},
    cassette::{Cassette, Entry, Protocol, redact::redacted},
    protocol::ClientError,
};

/// A request and all messages until its response, which is the last one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct McpEntry {
    method: String,
    params: Value,
    messages: Vec<Value>,
}

impl Entry for McpEntry {
    const PROTOCOL: Protocol = Protocol::Mcp;
}

impl McpEntry {
    /// Id and entry of an outgoing request; `None` for other messages.
    fn of_request(text: &str) -> Option<(Value, Self)> {
        let message: Value = serde_json::from_str(text).ok()?;
        let method = message["method"].as_str()?.to_owned();
        let id = message.get("id")?.clone();
        Some((id, Self { method, params: message["params"].clone(), messages: Vec::new() }))
    }

    fn redacted(&self) -> Self {
        Self {
            method: self.method.clone(),
            params: redacted(&self.params),
            messages: self.messages.iter().map(redacted).collect(),
        }
    }
}

type SharedCassette = Arc<Mutex<Cassette<McpEntry>>>;

/// Replays `file` if it exists; otherwise connects with `inner` and records.
pub(crate) fn recorded(file: PathBuf, inner: Connector) -> Connector {
    let opened: Arc<Mutex<Option<SharedCassette>>> = Arc::default();
    Arc::new(move |sender, token| {
        let cassette = {
            let mut opened = lock(&opened);
            match &*opened {
                Some(cassette) => Ok(cassette.clone()),
                None => Cassette::open(file.clone())
                    .map(|cassette| opened.insert(Arc::new(Mutex::new(cassette))).clone()),
            }
        };
        let inner = inner.clone();
        Box::pin(async move {
            let cassette = cassette.map_err(|error| ClientError::Closed(error.to_string()))?;
            if !lock(&cassette).is_recording() {
                return Ok(Arc::new(Replay { cassette, sender }) as Arc<dyn Transport>);
            }
            let (tap, incoming) = mpsc::unbounded_channel();
            let open = OpenRequests::default();
            tokio::spawn(record_incoming(incoming, sender, open.clone(), cassette.clone()));
            let transport = inner(tap, token).await?;
            Ok(Arc::new(Record { transport, open, cassette }) as Arc<dyn Transport>)
        })
    })
}

/// Requests without a response yet, by id.
type OpenRequests = Arc<Mutex<Vec<(Value, McpEntry)>>>;

async fn record_incoming(
    mut incoming: mpsc::UnboundedReceiver<Incoming>,
    sender: MessageSender,
    open: OpenRequests,
    cassette: SharedCassette,
) {
    while let Some(one) = incoming.recv().await {
        if let Incoming::Message(message) = &one {
            let mut open = lock(&open);
            let is_response = message.get("method").is_none();
            let answered = open.iter().position(|(id, _)| is_response && message.get("id") == Some(id));
            match answered {
                Some(at) => {
                    let (_, mut entry) = open.remove(at);
                    entry.messages.push(message.clone());
                    lock(&cassette).record(entry.redacted());
                }
                None => {
                    if let Some((_, entry)) = open.last_mut() {
                        entry.messages.push(message.clone());
                    }
                }
            }
        }
        if sender.send(one).is_err() {
            return;
        }
    }
}

struct Record {
    transport: Arc<dyn Transport>,
    open: OpenRequests,
    cassette: SharedCassette,
}

#[async_trait]
impl Transport for Record {
    async fn send(&self, message: Outgoing) -> Result<(), ClientError> {
        if let Some(request) = McpEntry::of_request(&message.text) {
            lock(&self.open).push(request);
        }
        self.transport.send(message).await
    }

    fn set_token(&self, token: Option<String>) -> bool {
        self.transport.set_token(token)
    }

    fn session_id(&self) -> Option<String> {
        self.transport.session_id()
    }

    async fn negotiated(&self, version: &str) {
        self.transport.negotiated(version).await;
    }

    fn is_http(&self) -> bool {
        self.transport.is_http()
    }

    async fn close(&self) {
        self.transport.close().await;
        lock(&self.cassette).save();
    }
}

struct Replay {
    cassette: SharedCassette,
    sender: MessageSender,
}

#[async_trait]
impl Transport for Replay {
    async fn send(&self, message: Outgoing) -> Result<(), ClientError> {
        let Some((id, request)) = McpEntry::of_request(&message.text) else { return Ok(()) };
        let params = redacted(&request.params);
        let matches = |entry: &McpEntry| entry.method == request.method && entry.params == params;
        let entry = lock(&self.cassette).replay(matches).ok_or_else(|| {
            ClientError::Closed(format!(
                "the cassette has no answer (left) to `{}` with {}; delete it to record a new one",
                request.method,
                shorten(&request.params.to_string(), 300)
            ))
        })?;
        for mut message in entry.messages {
            // The recorded response gets the id of this request.
            if message.get("method").is_none()
                && let Some(message) = message.as_object_mut()
            {
                message.insert("id".into(), id.clone());
            }
            let _ = self.sender.send(Incoming::Message(message));
        }
        Ok(())
    }

    fn set_token(&self, _token: Option<String>) -> bool {
        true
    }

    async fn close(&self) {}
}

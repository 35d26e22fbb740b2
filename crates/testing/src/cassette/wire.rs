//! A transport that records, and one that replays.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Cassette, Kind, McpEntry};
use crate::{
    ClientError,
    client::Connector,
    lock,
    wire::{Inbox, Incoming, Outgoing, Wire},
};

type Tape = Arc<Mutex<Cassette>>;

/// Replays `file` when it is there; else connects with `inner` and records.
pub(crate) fn cassette_connector(file: PathBuf, inner: Connector) -> Connector {
    let tape: Mutex<Option<Tape>> = Mutex::default();
    let tape = Arc::new(tape);
    Arc::new(move |inbox, token| {
        let opened = {
            let mut tape = lock(&tape);
            match &*tape {
                Some(tape) => Ok(tape.clone()),
                None => Cassette::open(file.clone(), Kind::Mcp)
                    .map(|cassette| tape.insert(Arc::new(Mutex::new(cassette))).clone()),
            }
        };
        let inner = inner.clone();
        Box::pin(async move {
            let tape = opened.map_err(|error| ClientError::Closed(error.to_string()))?;
            if !lock(&tape).is_recording() {
                return Ok(Arc::new(Replay { tape, inbox }) as Arc<dyn Wire>);
            }
            let (listener, heard) = mpsc::unbounded_channel();
            let open = Arc::new(Mutex::new(Vec::new()));
            let kept = tape.clone();
            tokio::spawn(listen(heard, inbox, open.clone(), tape));
            let wire = inner(listener, token).await?;
            Ok(Arc::new(Record { wire, open, tape: kept }) as Arc<dyn Wire>)
        })
    })
}

/// Requests that wait for their answer.
type Open = Arc<Mutex<Vec<(Value, McpEntry)>>>;

async fn listen(mut heard: mpsc::UnboundedReceiver<Incoming>, inbox: Inbox, open: Open, tape: Tape) {
    while let Some(one) = heard.recv().await {
        if let Incoming::Message(message) = &one {
            let mut open = lock(&open);
            let is_answer = message.get("method").is_none();
            let answered = open.iter().position(|(id, _)| is_answer && message.get("id") == Some(id));
            match answered {
                Some(at) => {
                    let (_, mut entry) = open.remove(at);
                    entry.messages.push(message.clone());
                    lock(&tape).keep_mcp(&entry);
                }
                None => {
                    if let Some((_, entry)) = open.last_mut() {
                        entry.messages.push(message.clone());
                    }
                }
            }
        }
        if inbox.send(one).is_err() {
            return;
        }
    }
}

fn parts(text: &str) -> Option<(Value, McpEntry)> {
    let message: Value = serde_json::from_str(text).ok()?;
    let method = message["method"].as_str()?.to_owned();
    let id = message.get("id")?.clone();
    Some((id, McpEntry { method, params: message["params"].clone(), messages: Vec::new() }))
}

struct Record {
    wire: Arc<dyn Wire>,
    open: Open,
    tape: Tape,
}

#[async_trait]
impl Wire for Record {
    async fn send(&self, message: Outgoing) -> Result<(), ClientError> {
        if let Some(asked) = parts(&message.text) {
            lock(&self.open).push(asked);
        }
        self.wire.send(message).await
    }

    fn set_token(&self, token: Option<String>) -> bool {
        self.wire.set_token(token)
    }

    fn session_id(&self) -> Option<String> {
        self.wire.session_id()
    }

    async fn agreed(&self, version: &str) {
        self.wire.agreed(version).await;
    }

    fn is_http(&self) -> bool {
        self.wire.is_http()
    }

    async fn close(&self) {
        self.wire.close().await;
        lock(&self.tape).save();
    }
}

struct Replay {
    tape: Tape,
    inbox: Inbox,
}

#[async_trait]
impl Wire for Replay {
    async fn send(&self, message: Outgoing) -> Result<(), ClientError> {
        let Some((id, asked)) = parts(&message.text) else { return Ok(()) };
        let messages = lock(&self.tape).replay_mcp(&asked.method, &asked.params).ok_or_else(|| {
            ClientError::Closed(format!(
                "the cassette has no answer (left) to `{}` with {}; delete it to record a new one",
                asked.method,
                crate::shorten(&asked.params.to_string(), 300)
            ))
        })?;
        for mut message in messages {
            // The answer comes to the request of today.
            if message.get("method").is_none()
                && let Some(message) = message.as_object_mut()
            {
                message.insert("id".into(), id.clone());
            }
            let _ = self.inbox.send(Incoming::Message(message));
        }
        Ok(())
    }

    fn set_token(&self, _token: Option<String>) -> bool {
        true
    }

    async fn close(&self) {}
}

//! Cassettes of MCP: a transport that records the responses of another, and one that replays them.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use super::message::{Connector, Incoming, MessageSender, Outgoing, SharedHeaders, Transport};
use crate::{
    base::{lock, text::shorten},
    cassette::{Cassette, Entry, Protocol, RecordOptions, redact::same_json},
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

    #[cfg(feature = "http-mock")]
    fn name(&self) -> String {
        format!("{} {}", self.method, shorten(&self.params.to_string(), 100))
    }

    fn is_same_request(&self, other: &Self) -> bool {
        (&self.method, &self.params) == (&other.method, &other.params)
    }

    fn map_text(&mut self, scrub: &dyn Fn(&str) -> String) {
        [&mut self.params].into_iter().chain(&mut self.messages).for_each(|value| map_text(value, scrub));
    }
}

/// Replaces every text in a JSON value, but no key.
fn map_text(value: &mut Value, scrub: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = scrub(text),
        Value::Array(items) => items.iter_mut().for_each(|item| map_text(item, scrub)),
        Value::Object(fields) => fields.values_mut().for_each(|value| map_text(value, scrub)),
        _ => {}
    }
}

impl McpEntry {
    /// Id and entry of an outgoing request; `None` for other messages.
    fn of_request(text: &str) -> Option<(Value, Self)> {
        let message: Value = serde_json::from_str(text).ok()?;
        let method = message["method"].as_str()?.to_owned();
        let id = message.get("id")?.clone();
        Some((id, Self { method, params: message["params"].clone(), messages: Vec::new() }))
    }
}

/// Records an exchange without the secrets in it.
fn record(cassette: &mut Cassette<McpEntry>, entry: McpEntry) {
    let (redactor, secrets) = (&cassette.redactor, &mut cassette.secrets);
    let mut clean = |value: &Value| match value {
        // Pointers start at the parameters and the result.
        Value::Object(fields) if fields.contains_key("jsonrpc") => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), redactor.json(value, secrets)));
            Value::Object(fields.collect())
        }
        value => redactor.json(value, secrets),
    };
    let entry = McpEntry {
        params: clean(&entry.params),
        messages: entry.messages.iter().map(&mut clean).collect(),
        method: entry.method,
    };
    cassette.record(entry);
}

type SharedCassette = Arc<Mutex<Cassette<McpEntry>>>;

/// A cassette that the caller finishes, who knows whether the test passed.
#[cfg(feature = "suites")]
#[derive(Clone)]
pub(crate) struct Tape(SharedCassette);

#[cfg(feature = "suites")]
impl Tape {
    /// Opens a cassette.
    pub(crate) fn open(
        file: PathBuf,
        options: &RecordOptions,
    ) -> Result<Self, crate::cassette::CassetteError> {
        let mut cassette = Cassette::open(file, options)?;
        cassette.manage();
        Ok(Self(Arc::new(Mutex::new(cassette))))
    }

    /// Writes a recording whose test passed, and returns notes for the report.
    pub(crate) fn finish(&self, passed: bool) -> Result<Vec<String>, String> {
        lock(&self.0).finish(passed, true)
    }
}

/// The cassette of a client.
pub(crate) enum Recording {
    /// A file, written when the client disconnects or is dropped.
    File(PathBuf, RecordOptions),
    /// A cassette that the caller finishes.
    #[cfg(feature = "suites")]
    Tape(Tape),
}

/// Replays the cassette if it exists; otherwise connects with `inner` and records. `headers` are those of every request.
pub(crate) fn recorded(recording: Recording, headers: SharedHeaders, inner: Connector) -> Connector {
    let opened: Arc<Mutex<Option<SharedCassette>>> = Arc::default();
    Arc::new(move |sender, token| {
        let cassette = {
            let mut opened = lock(&opened);
            match (&*opened, &recording) {
                (Some(cassette), _) => Ok(cassette.clone()),
                #[cfg(feature = "suites")]
                (None, Recording::Tape(tape)) => Ok(tape.0.clone()),
                (None, Recording::File(file, options)) => Cassette::open(file.clone(), options)
                    .map(|cassette| opened.insert(Arc::new(Mutex::new(cassette))).clone()),
            }
        };
        let (inner, headers) = (inner.clone(), headers.clone());
        Box::pin(async move {
            let cassette = cassette.map_err(|error| ClientError::Closed(error.to_string()))?;
            learn(&mut lock(&cassette), token.as_deref(), &headers);
            if !lock(&cassette).is_recording() {
                return Ok(Arc::new(Replay { cassette, sender }) as Arc<dyn Transport>);
            }
            let (tap, incoming) = mpsc::unbounded_channel();
            let open = OpenRequests::default();
            tokio::spawn(record_incoming(incoming, sender, open.clone(), cassette.clone()));
            let transport = inner(tap, token).await?;
            Ok(Arc::new(Record { transport, open, cassette, headers }) as Arc<dyn Transport>)
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
                    record(&mut lock(&cassette), entry);
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
    headers: SharedHeaders,
}

/// Remembers the credentials that the client sends.
fn learn(cassette: &mut Cassette<McpEntry>, token: Option<&str>, headers: &SharedHeaders) {
    let (redactor, secrets) = (&cassette.redactor, &mut cassette.secrets);
    redactor.headers(&lock(headers), secrets);
    token.iter().for_each(|token| secrets.learn(token));
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
        learn(&mut lock(&self.cassette), token.as_deref(), &self.headers);
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
        lock(&self.cassette).save_unmanaged();
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
        let matches =
            |entry: &McpEntry| entry.method == request.method && same_json(&entry.params, &request.params);
        let entry = lock(&self.cassette).replay(matches).ok_or_else(|| {
            ClientError::Closed(format!(
                "the cassette has no answer (left) to `{}` with {}; record it again with the mode `all`",
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

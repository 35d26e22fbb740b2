//! Messages as lines of JSON over any byte stream; a line that is no message is answered, and the next one is read.

use std::{borrow::Cow, io, sync::Arc};

use gatewright_core::{Claimant, Line, LineReader, NoShare, Revision, measure, write_line};
use rmcp::{
    RoleServer,
    model::{ErrorCode, GetExtensions as _, JsonRpcMessage, ServerResult},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::Mutex,
    task::JoinHandle,
};

use crate::{
    batch,
    in_flight::InFlight,
    message_limit,
    refusal::{TRANSPORT, not_a_message_code},
    request_memory::{DEFAULT_MIB, RequestMemory},
};

/// Longest line read, in bytes. Longer ones are answered with an error.
const MOST_BYTES: usize = 16 << 20;

/// A server's end of a connection that carries one JSON message per line.
pub struct LineTransport<R, W> {
    lines: LineReader<R>,
    met_a_request: bool,
    /// An answer to an unusable line that is being written. A task of its own, so that it is written whole: `receive` may
    /// be dropped at any await.
    owed: Option<JoinHandle<io::Result<()>>>,
    writer: Arc<Mutex<Option<W>>>,
    in_flight: InFlight,
    memory: RequestMemory,
    /// The handshake agreed on 2025-03-26, which has batches.
    takes_batches: bool,
    /// Messages of a batch that are not read yet, first one last.
    batch: Vec<Box<[u8]>>,
}

impl<R, W> std::fmt::Debug for LineTransport<R, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineTransport").finish_non_exhaustive()
    }
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> LineTransport<R, W> {
    /// A connection that reads from `reader` and writes to `writer`.
    pub fn new(reader: R, writer: W) -> Self {
        Self {
            lines: LineReader::new(reader, MOST_BYTES),
            met_a_request: false,
            owed: None,
            writer: Arc::new(Mutex::new(Some(writer))),
            in_flight: InFlight::default(),
            memory: RequestMemory::new(DEFAULT_MIB),
            takes_batches: false,
            batch: Vec::new(),
        }
    }

    /// Takes the line apart if it is a batch of a client that may send one; returns false if it is something else.
    fn take_batch(&mut self, line: &[u8]) -> bool {
        if !self.takes_batches || !batch::is_batch(line) {
            return false;
        }
        match batch::messages(line) {
            Ok(messages) => {
                let bytes = messages.iter().rev().map(|message| message.get().as_bytes().into());
                self.batch = bytes.collect();
            }
            Err(why) => self.owe(-32600, &format!("Invalid Request: {why}")),
        }
        true
    }

    /// Returns the next line, or the next message of a batch; an empty one in place of a line that is dealt with here, and `None` at the end of the
    /// input. Can be dropped and called again.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        if let Some(message) = self.batch.pop() {
            return Some(message.into_vec());
        }
        match self.lines.next().await {
            Ok(Some(Line::Whole(line))) => Some(if self.take_batch(&line) { Vec::new() } else { line }),
            Ok(Some(Line::TooLong { .. })) => {
                self.owe(-32600, &format!("Invalid Request: the line is longer than {MOST_BYTES} bytes"));
                Some(Vec::new())
            }
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(%error, "the input cannot be read");
                None
            }
        }
    }

    fn owe(&mut self, code: i32, message: &str) {
        self.owe_to(&Value::Null, code, message);
    }

    fn owe_to(&mut self, id: &Value, code: i32, message: &str) {
        tracing::info!(error.code = code, "a line was refused");
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
        let writer = self.writer.clone();
        self.owed = Some(tokio::spawn(async move { write(&writer, error.to_string().into_bytes()).await }));
    }

    /// Takes room for a message of `bytes` bytes in memory, until its call ends.
    fn hold(&self, message: &mut RxJsonRpcMessage<RoleServer>, bytes: u64) -> Result<(), NoShare> {
        let mut room = self.memory.begin(Claimant::default());
        room.grow(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        let context = match message {
            JsonRpcMessage::Request(request) => request.request.extensions_mut(),
            JsonRpcMessage::Notification(notification) => notification.notification.extensions_mut(),
            // Whoever asked waits for it.
            _ => return Ok(()),
        };
        context.insert(Arc::new(room));
        Ok(())
    }

    async fn pay(&mut self) -> io::Result<()> {
        if let Some(owed) = &mut self.owed {
            let written = owed.await;
            self.owed = None;
            written.map_err(io::Error::other)??;
        }
        Ok(())
    }
}

async fn write<W: AsyncWrite + Unpin>(writer: &Mutex<Option<W>>, line: Vec<u8>) -> io::Result<()> {
    let mut writer = writer.lock().await;
    write_line(writer.as_mut().ok_or(io::ErrorKind::NotConnected)?, line).await
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn name() -> Cow<'static, str> {
        "lines".into()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.in_flight.send(&message);
        if let JsonRpcMessage::Response(response) = &message
            && let ServerResult::InitializeResult(agreed) = &response.result
        {
            self.takes_batches = agreed.protocol_version.as_str() == Revision::V2025_03_26.as_str();
        }
        let writer = self.writer.clone();
        async move { write(&writer, serde_json::to_vec(&message)?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Err(error) = self.pay().await {
                tracing::warn!(%error, "an answer cannot be written");
                return None;
            }
            let line = self.next_line().await?;
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let bytes = match measure(line, usize::MAX) {
                Ok(measured) => measured.bytes.saturating_add(line.len() as u64),
                Err(unreadable) => {
                    self.owe(ErrorCode::INVALID_REQUEST.0, &format!("Invalid Request: {unreadable}"));
                    continue;
                }
            };
            let bytes = match message_limit::check_ids(line) {
                Ok(copies) => bytes.saturating_add(copies),
                Err(why) => {
                    self.owe(ErrorCode::INVALID_REQUEST.0, &format!("Invalid Request: {why}"));
                    continue;
                }
            };
            match serde_json::from_slice(line) {
                Ok(mut message) => {
                    if self.hold(&mut message, bytes).is_err() {
                        let id = if let JsonRpcMessage::Request(request) = &message {
                            json!(request.id)
                        } else {
                            Value::Null
                        };
                        let why = format!(
                            "requests take more than {DEFAULT_MIB} MiB of memory; wait until one is answered"
                        );
                        self.owe_to(&id, TRANSPORT, &why);
                        continue;
                    }
                    if let Err(refused) = self.in_flight.receive(&message, None) {
                        // Without the id: it would be read as the answer to the first request.
                        self.owe(refused.code.0, &refused.message);
                        continue;
                    }
                    // `rmcp` gives up on a client whose first message is no request.
                    self.met_a_request |= matches!(message, JsonRpcMessage::Request(_));
                    if self.met_a_request {
                        return Some(message);
                    }
                    tracing::info!("a message before the first request was ignored");
                }
                Err(_) => {
                    let (code, message) = not_a_message_code(line);
                    self.owe(code, &message);
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        if let Some(mut writer) = self.writer.lock().await.take() {
            writer.shutdown().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    use super::*;

    #[tokio::test]
    async fn requests_take_room_until_their_calls_end_and_one_that_finds_none_gets_an_error() {
        let (mut input, reader) = tokio::io::duplex(1 << 20);
        let (writer, output) = tokio::io::duplex(1 << 16);
        let mut lines = LineTransport::new(reader, writer);
        lines.memory = RequestMemory::new(1);
        for id in 1..=3 {
            let arguments = json!({"a": "x".repeat(220_000)});
            let params = json!({"name": "t", "arguments": arguments});
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            input.write_all(format!("{call}\n").as_bytes()).await.unwrap();
        }
        let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{}\",\"method\":\"ping\"}}\n", "x".repeat(2_000));
        input.write_all(long.as_bytes()).await.unwrap();
        drop(input);
        let first = lines.receive().await.unwrap();
        let second = lines.receive().await.unwrap();
        assert!((800_000..1 << 20).contains(&lines.memory.taken()), "{}", lines.memory.taken());
        assert!(lines.receive().await.is_none(), "neither the third nor the one of a long id is served");
        drop((first, second));
        assert_eq!(lines.memory.taken(), 0);
        let mut answers = BufReader::new(output).lines();
        for (id, code, text) in [(json!(3), -32000, "memory"), (Value::Null, -32600, "`id`")] {
            let answer: Value = serde_json::from_str(&answers.next_line().await.unwrap().unwrap()).unwrap();
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)));
            assert!(answer["error"]["message"].as_str().unwrap().contains(text), "{answer}");
        }
    }
}

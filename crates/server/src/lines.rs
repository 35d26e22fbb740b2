//! Messages as lines of JSON over any byte stream; a line that is no message is answered, and the next one is read.

use std::{borrow::Cow, io, sync::Arc};

use gatewright_core::{Line, LineReader, Revision, count_values, write_line};
use rmcp::{
    RoleServer,
    model::{ErrorCode, JsonRpcMessage, ServerResult},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::Mutex,
    task::JoinHandle,
};

use crate::{batch, in_flight::InFlight, refusal::not_a_message_code};

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
        tracing::info!(error.code = code, "a line was refused");
        let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
        let writer = self.writer.clone();
        self.owed = Some(tokio::spawn(async move { write(&writer, error.to_string().into_bytes()).await }));
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
            if let Err(unreadable) = count_values(line, usize::MAX) {
                self.owe(ErrorCode::INVALID_REQUEST.0, &format!("Invalid Request: {unreadable}"));
                continue;
            }
            match serde_json::from_slice(line) {
                Ok(message) => {
                    if let Err(refused) = self.in_flight.receive(&message) {
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

//! One JSON message per line over any byte stream: standard input and output of a process, a duplex pipe, a socket.

use async_trait::async_trait;
use futures::future::BoxFuture;
use gatewright_core::{Line, LineReader, write_line};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::Mutex,
    task::{AbortHandle, JoinHandle},
};

use super::message::{Incoming, MessageSender, Outgoing, Transport};
use crate::protocol::ClientError;

/// Longest line read, in bytes. A server that sends a longer one is disconnected.
const MOST_BYTES: usize = 64 << 20;

pub(crate) struct LineTransport {
    writer: Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>,
    reader: JoinHandle<()>,
}

impl LineTransport {
    pub(crate) fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        sender: MessageSender,
    ) -> Self {
        Self::with_end(reader, writer, sender, |reason| Box::pin(std::future::ready(reason)))
    }

    /// As [`LineTransport::new`]. When the stream ends, `explain` may extend the reason.
    pub(crate) fn with_end(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        sender: MessageSender,
        explain: impl FnOnce(String) -> BoxFuture<'static, String> + Send + 'static,
    ) -> Self {
        let reader = tokio::spawn(async move {
            let reason = read_lines(reader, &sender).await;
            let _ = sender.send(Incoming::Closed(explain(reason).await));
        });
        Self { writer: Mutex::new(Some(Box::new(writer))), reader }
    }
}

impl LineTransport {
    /// Ends the reading, for a stream that others read from now on.
    pub(crate) fn reader(&self) -> AbortHandle {
        self.reader.abort_handle()
    }
}

/// Reads messages until the stream ends, and returns the reason.
async fn read_lines(reader: impl AsyncRead + Unpin, sender: &MessageSender) -> String {
    let mut lines = LineReader::new(reader, MOST_BYTES);
    loop {
        let line = match lines.next().await {
            Ok(Some(Line::Whole(line))) => line,
            Ok(Some(Line::TooLong { .. })) => {
                return format!("the server sent a line of more than {MOST_BYTES} bytes");
            }
            Ok(None) => return "the server closed its standard output".to_owned(),
            Err(error) => return format!("the server's standard output cannot be read: {error}"),
        };
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let incoming = serde_json::from_slice(text)
            .map(Incoming::Message)
            .unwrap_or_else(|_| Incoming::NotJson(String::from_utf8_lossy(text).into_owned()));
        if sender.send(incoming).is_err() {
            return "the test reads no more".to_owned();
        }
    }
}

#[async_trait]
impl Transport for LineTransport {
    async fn send(&self, message: Outgoing) -> Result<(), ClientError> {
        let mut writer = self.writer.lock().await;
        let writer = writer.as_mut().ok_or_else(|| ClientError::Closed("already disconnected".into()))?;
        let broken =
            |error| ClientError::Closed(format!("the server's standard input cannot be written: {error}"));
        write_line(writer, message.text.into_bytes()).await.map_err(broken)
    }

    fn set_token(&self, _token: Option<String>) -> bool {
        false
    }

    async fn close(&self) {
        // A stdio server ends at the end of its input.
        if let Some(mut writer) = self.writer.lock().await.take() {
            let _ = writer.shutdown().await;
        }
    }
}

impl Drop for LineTransport {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

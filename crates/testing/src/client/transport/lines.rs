//! One JSON message per line over any byte stream: standard input and output of a process, a duplex pipe, a socket.

use async_trait::async_trait;
use futures::future::BoxFuture;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::Mutex,
    task::JoinHandle,
};

use super::message::{Incoming, MessageSender, Outgoing, Transport};
use crate::protocol::ClientError;

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
            let reason = read_lines(BufReader::new(reader), &sender).await;
            let _ = sender.send(Incoming::Closed(explain(reason).await));
        });
        Self { writer: Mutex::new(Some(Box::new(writer))), reader }
    }
}

/// Reads messages until the stream ends, and returns the reason.
async fn read_lines(mut reader: impl AsyncBufReadExt + Unpin, sender: &MessageSender) -> String {
    let mut line = Vec::new();
    loop {
        line.clear();
        return match reader.read_until(b'\n', &mut line).await {
            Ok(0) => "the server closed its standard output".to_owned(),
            Err(error) => format!("the server's standard output cannot be read: {error}"),
            Ok(_) => {
                let text = line.trim_ascii();
                if text.is_empty() {
                    continue;
                }
                let incoming = serde_json::from_slice(text)
                    .map(Incoming::Message)
                    .unwrap_or_else(|_| Incoming::NotJson(String::from_utf8_lossy(text).into_owned()));
                match sender.send(incoming) {
                    Ok(()) => continue,
                    Err(_) => "the test reads no more".to_owned(),
                }
            }
        };
    }
}

#[async_trait]
impl Transport for LineTransport {
    async fn send(&self, message: Outgoing) -> Result<(), ClientError> {
        let mut line = message.text.into_bytes();
        line.push(b'\n');
        let mut writer = self.writer.lock().await;
        let writer = writer.as_mut().ok_or_else(|| ClientError::Closed("already disconnected".into()))?;
        let broken =
            |error| ClientError::Closed(format!("the server's standard input cannot be written: {error}"));
        writer.write_all(&line).await.map_err(broken)?;
        writer.flush().await.map_err(broken)
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

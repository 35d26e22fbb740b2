//! One JSON message per line over any byte stream: stdio of a child process, a duplex pipe, a socket.

use std::{process::ExitStatus, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::Mutex,
    task::JoinHandle,
};

use super::{Inbox, Incoming, Outgoing, Wire};
use crate::{ClientError, server::Child};

pub(crate) struct LinesWire {
    writer: Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>,
    reader: JoinHandle<()>,
    process: Arc<Mutex<Option<Child>>>,
}

impl LinesWire {
    pub(crate) fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        inbox: Inbox,
    ) -> Self {
        let reader = tokio::spawn(async move {
            let why = read(BufReader::new(reader), &inbox).await;
            let _ = inbox.send(Incoming::Closed(why));
        });
        Self { writer: Mutex::new(Some(Box::new(writer))), reader, process: Arc::default() }
    }

    /// As `new`, for a process that ends with the connection. `told` makes the error of its end.
    pub(crate) fn of_process(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        inbox: Inbox,
        process: Child,
        told: impl Fn(String, Option<ExitStatus>) -> String + Send + 'static,
    ) -> Self {
        let process = Arc::new(Mutex::new(Some(process)));
        let ending = process.clone();
        let reader = tokio::spawn(async move {
            let why = read(BufReader::new(reader), &inbox).await;
            // Who closes the output mostly ends, and how it ended says most.
            let status = match ending.lock().await.as_mut() {
                Some(process) => {
                    tokio::time::timeout(Duration::from_secs(1), process.wait()).await.ok().flatten()
                }
                None => None,
            };
            let _ = inbox.send(Incoming::Closed(told(why, status)));
        });
        Self { writer: Mutex::new(Some(Box::new(writer))), reader, process }
    }
}

/// Reads until the end, and says why it is the end.
async fn read(mut reader: impl AsyncBufReadExt + Unpin, inbox: &Inbox) -> String {
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
                    .unwrap_or_else(|_| Incoming::Garbage(String::from_utf8_lossy(text).into_owned()));
                match inbox.send(incoming) {
                    Ok(()) => continue,
                    Err(_) => "the test reads no more".to_owned(),
                }
            }
        };
    }
}

#[async_trait]
impl Wire for LinesWire {
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
        // End of input is how a stdio server hears that it should go.
        if let Some(mut writer) = self.writer.lock().await.take() {
            let _ = writer.shutdown().await;
        }
        if let Some(mut process) = self.process.lock().await.take()
            && tokio::time::timeout(Duration::from_secs(1), process.wait()).await.is_err()
        {
            process.stop().await;
        }
    }
}

impl Drop for LinesWire {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

//! Servers that are a command: messages over its standard input and output.

mod lines;
mod process;
mod spawner;
mod sys;

use std::{borrow::Cow, future::Future, io, sync::Arc, time::Duration};

pub(crate) use process::Process;

use gatewright_core::write_line;
use lines::{Lines, Received};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    process::{ChildStdin, ChildStdout},
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::{redactor::Redactor, task_tools::TaskTools};

/// A server that does not read its input for this long is of no use any more.
const LONGEST_WRITE: Duration = Duration::from_secs(30);

type Write = (Vec<u8>, oneshot::Sender<io::Result<()>>);

/// The connection to a child.
#[derive(Debug)]
pub(crate) struct StdioTransport {
    writer: Option<mpsc::Sender<Write>>,
    reader: mpsc::Receiver<ServerJsonRpcMessage>,
    tasks: [JoinHandle<()>; 2],
}

impl StdioTransport {
    pub(crate) fn new(
        id: &str,
        stdin: ChildStdin,
        stdout: ChildStdout,
        longest: usize,
        redactor: Redactor,
        task_tools: Arc<TaskTools>,
    ) -> Self {
        let (writer, to_write) = mpsc::channel(64);
        let (from_reader, reader) = mpsc::channel(64);
        let lines = Lines::new(id, stdout, longest, redactor, task_tools);
        Self {
            writer: Some(writer),
            reader,
            tasks: [tokio::spawn(read(lines, from_reader)), tokio::spawn(write(stdin, to_write))],
        }
    }
}

async fn read(mut lines: Lines<ChildStdout>, messages: mpsc::Sender<ServerJsonRpcMessage>) {
    while let Received::Messages(batch) = lines.next().await {
        for message in batch {
            if messages.send(message).await.is_err() {
                return;
            }
        }
    }
}

/// Ends, and so closes the child's input, when the transport is closed or a write fails.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<Write>) {
    while let Some((line, answer)) = lines.recv().await {
        let written =
            tokio::time::timeout(LONGEST_WRITE, write_line(&mut stdin, line)).await.unwrap_or_else(|_| {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the server does not read its standard input"))
            });
        let failed = written.is_err();
        let _ = answer.send(written);
        if failed {
            return;
        }
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn name() -> Cow<'static, str> {
        "stdio".into()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = self.writer.clone();
        async move {
            let closed =
                || io::Error::new(io::ErrorKind::BrokenPipe, "the server's standard input is closed");
            let line = serde_json::to_vec(&message).map_err(io::Error::other)?;
            let (answer, written) = oneshot::channel();
            writer.ok_or_else(closed)?.send((line, answer)).await.map_err(|_| closed())?;
            written.await.map_err(|_| closed())?
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.reader.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer = None;
        self.reader.close();
        Ok(())
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

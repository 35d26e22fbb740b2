//! Servers that are a command: messages over its standard input and output.

mod lines;
mod outbox;
mod process;
mod spawner;
mod sys;

use std::{borrow::Cow, future::Future, io, sync::Arc, time::Duration};

pub(crate) use outbox::InputLost;
pub(crate) use process::Process;

use lines::{Lines, Received};
use outbox::{Outbox, closed};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    process::{ChildStdin, ChildStdout},
    sync::{mpsc, watch},
    task::JoinHandle,
};

use crate::{UpstreamConfig, open_calls::OpenCalls, redactor::Redactor, task_tools::TaskTools};

/// Time beyond the longest call for which a server may leave its input unread: one that does one thing at a time reads again after a
/// call.
const UNREAD_SLACK: Duration = Duration::from_secs(30);

/// The connection to a child.
#[derive(Debug)]
pub(crate) struct StdioTransport {
    outbox: Arc<Outbox>,
    reader: mpsc::Receiver<ServerJsonRpcMessage>,
    tasks: [JoinHandle<()>; 2],
}

impl StdioTransport {
    /// Starts to read and write. The second value says when nothing can be written any more.
    pub(crate) fn new(
        id: &str,
        stdin: ChildStdin,
        stdout: ChildStdout,
        config: &UpstreamConfig,
        redactor: Redactor,
        task_tools: Arc<TaskTools>,
        calls: Arc<OpenCalls>,
    ) -> (Self, InputLost) {
        let outbox = Arc::new(Outbox::new(id));
        let (from_reader, reader) = mpsc::channel(64);
        let lines = Lines::new(id, stdout, config.max_message_bytes, redactor, task_tools, calls);
        let (lost, input_lost) = watch::channel(None);
        let longest = config.timeout.saturating_add(UNREAD_SLACK);
        let writing = {
            let outbox = outbox.clone();
            async move { outbox.write_to(stdin, longest, lost).await }
        };
        let tasks = [tokio::spawn(read(lines, from_reader)), tokio::spawn(writing)];
        (Self { outbox, reader, tasks }, input_lost)
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

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn name() -> Cow<'static, str> {
        "stdio".into()
    }

    // Queued at once, so that a cancellation never comes before its request.
    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let queued = self.outbox.push(&message);
        async move { queued?.await.map_err(|_| closed())? }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.reader.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.outbox.close();
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

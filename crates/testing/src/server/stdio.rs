//! Servers over standard input and output: a process per client, which ends with its connection.

use std::{
    process::ExitStatus,
    sync::{Arc, Weak},
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::{
    process::{Output, Process, spawn_advice},
    state::ServerState,
};
use crate::{
    base::lock,
    client::{Connector, LineTransport, Outgoing, Transport},
    protocol::ClientError,
};

/// Time for a process to end by itself after its connection ended.
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// Starts a process for each connection.
pub(super) fn connector(server: Weak<ServerState>) -> Connector {
    Arc::new(move |sender, _| {
        let server = server.upgrade();
        Box::pin(async move {
            let server = server.ok_or_else(|| ClientError::Closed("the server is gone".into()))?;
            let (options, log) = (&server.options, &server.log);
            let spawned = Process::spawn(
                options.command(0),
                Output::Pipes,
                log,
                options.stop_timeout,
                &server.last_exit,
            );
            let (process, pipes) = spawned.map_err(|error| {
                let mut failure = options.failure(0, format!("it cannot be run: {error}"), log);
                failure.advice = spawn_advice(&error);
                ClientError::Closed(failure.to_string())
            })?;
            lock(&server.info).pid = process.pid();
            let (stdin, stdout) = pipes.ok_or_else(|| ClientError::Closed("it has no pipes".into()))?;
            let process = Arc::new(Mutex::new(Some(process)));
            let (options, log, ended) = (options.clone(), log.clone(), process.clone());
            let lines = LineTransport::with_end(stdout, stdin, sender, move |reason| {
                Box::pin(async move {
                    let mut failure = options.failure(0, reason, &log);
                    failure.exit = exit_status(&ended).await.map(|status| status.to_string());
                    failure.advice = "run the command by hand and look at its last lines above".into();
                    failure.to_string()
                })
            });
            Ok(Arc::new(StdioTransport { lines, process }) as Arc<dyn Transport>)
        })
    })
}

/// A process that closes its output usually ends, and its status is the best explanation.
async fn exit_status(process: &Mutex<Option<Process>>) -> Option<ExitStatus> {
    let mut process = process.lock().await;
    tokio::time::timeout(EXIT_GRACE, process.as_mut()?.wait()).await.ok().flatten()
}

struct StdioTransport {
    lines: LineTransport,
    process: Arc<Mutex<Option<Process>>>,
}

#[async_trait]
impl Transport for StdioTransport {
    async fn send(&self, message: Outgoing) -> Result<(), ClientError> {
        self.lines.send(message).await
    }

    fn set_token(&self, token: Option<String>) -> bool {
        self.lines.set_token(token)
    }

    async fn close(&self) {
        self.lines.close().await;
        if let Some(mut process) = self.process.lock().await.take()
            && tokio::time::timeout(EXIT_GRACE, process.wait()).await.is_err()
        {
            process.stop().await;
        }
    }
}

//! The server under test: watched, restarted and ended. How it is to be started is in `builder`, until it answers in `ready`.

mod builder;
mod error;
mod log_ring;
mod port;
mod process;
mod program;
mod ready;

pub use builder::{ServerBuilder, Transport};
pub use error::StartError;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use gatewright_core::rmcp::ServerHandler;

use crate::{
    ClientError, Mcp, McpBuilder, RequestTrace,
    client::{Connector, Starting, memory_connector},
    lock,
    wire::{Wire, lines::LinesWire},
};
use log_ring::LogRing;
use process::Process;

/// Where a server is.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct ServerInfo {
    /// Such as `http://127.0.0.1:40123`; empty for stdio and in-memory servers.
    pub base_url: String,
    /// Its port; 0 for stdio and in-memory servers.
    pub port: u16,
    /// Its process; 0 when the test did not start one.
    pub pid: u32,
}

enum Kind {
    Child,
    Stdio,
    Elsewhere,
    Memory(Connector),
}

struct Shared {
    options: ServerBuilder,
    kind: Kind,
    log: LogRing,
    running: tokio::sync::Mutex<Option<Process>>,
    info: Mutex<ServerInfo>,
    ended: process::Ended,
    clients: Mutex<Vec<Mcp>>,
}

/// The server under test. Clones are the same server; with the last one its processes end.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("info", &self.info()).finish_non_exhaustive()
    }
}

/// How a further client connects.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// Another transport than the server's.
    pub transport: Option<Transport>,
    /// A bearer token.
    pub token: Option<String>,
}

impl Server {
    /// A server to be started: an executable, a cargo binary's name, a `.js`, `.mjs`, `.ts` or `.py` file, or a command line.
    pub fn builder(server: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(server)
    }

    /// A server in this process. Each client gets what `make` returns.
    pub fn in_memory<H: ServerHandler>(make: impl Fn() -> H + Send + Sync + 'static) -> Self {
        Self::memory(memory_connector(make, None))
    }

    /// A server in this process behind a guard that lets in who has a token of `auth`: signed by its key, with its issuer and
    /// audience, not expired. Everybody else gets HTTP 401 in words. The handler finds the caller where an HTTP server puts it:
    /// an `http::request::Parts` among the request's extensions, with `authorization` and a `Principal` of `gatewright-core`.
    pub fn in_memory_with_auth<H: ServerHandler>(
        make: impl Fn() -> H + Send + Sync + 'static,
        auth: &crate::Auth,
    ) -> Self {
        Self::memory(memory_connector(make, Some(auth.factory().clone())))
    }

    fn memory(connector: Connector) -> Self {
        Self {
            shared: Arc::new(Shared {
                options: ServerBuilder::new("in memory"),
                kind: Kind::Memory(connector),
                log: LogRing::default(),
                running: tokio::sync::Mutex::new(None),
                info: Mutex::default(),
                ended: process::Ended::default(),
                clients: Mutex::default(),
            }),
        }
    }

    /// Where it is.
    pub fn info(&self) -> ServerInfo {
        lock(&self.shared.info).clone()
    }

    /// A further client, to be set up.
    pub fn client(&self) -> McpBuilder {
        self.client_over(self.shared.options.transport)
    }

    fn client_over(&self, transport: Transport) -> McpBuilder {
        let options = &self.shared.options;
        let url =
            |default: &str| format!("{}{}", self.info().base_url, options.path.as_deref().unwrap_or(default));
        match (&self.shared.kind, transport) {
            (Kind::Memory(connector), _) => McpBuilder::with_connector("memory", connector.clone()),
            (_, Transport::Stdio) => {
                McpBuilder::with_connector("stdio", self.stdio()).starting(self.starting())
            }
            (_, Transport::StreamableHttp) => Mcp::http(url("/mcp")),
            (_, Transport::Sse) => Mcp::sse(url("/sse")),
        }
    }

    /// What a client is told of a server over standard input and output that does not answer when it is greeted.
    fn starting(&self) -> Starting {
        let (options, log) = (self.shared.options.clone(), self.shared.log.clone());
        let timeout = options.startup_timeout;
        let details = move || {
            let advice = "it must answer on its standard output, one JSON message a line; raise `startup_timeout` when it \
                          needs longer, and leave `transport` out when it serves HTTP";
            StartError { advice: advice.into(), ..options.failure(0, String::new(), &log) }.details()
        };
        Starting { timeout, details: Box::new(details) }
    }

    /// How it ended, when it did by itself. One that left a request without an answer may be about to: that is waited for.
    pub(crate) async fn died(&self, requests: &[RequestTrace]) -> Option<std::process::ExitStatus> {
        const MOMENT: Duration = Duration::from_secs(1);
        let broke = requests.last().is_some_and(|last| last.disconnected);
        match self.shared.running.lock().await.as_mut() {
            Some(process) if broke => tokio::time::timeout(MOMENT, process.wait()).await.ok().flatten(),
            Some(process) => process.exited(),
            None => None,
        }
    }

    /// A further client, connected.
    ///
    /// # Errors
    /// The server cannot be reached, refuses, or answers with something else than MCP.
    pub async fn create_client(&self, options: ClientOptions) -> Result<Mcp, ClientError> {
        let mut client = self.client_over(options.transport.unwrap_or(self.shared.options.transport));
        if let Some(token) = options.token {
            client = client.token(token);
        }
        let client = client.connect().await?;
        lock(&self.shared.clients).push(client.clone());
        Ok(client)
    }

    /// The clients [`Server::create_client`] made.
    pub(crate) fn clients(&self) -> Vec<Mcp> {
        lock(&self.shared.clients).clone()
    }

    /// Lines it printed, to standard output and standard error, oldest first; the last 10,000.
    pub fn get_logs(&self) -> Vec<String> {
        self.shared.log.all()
    }

    /// Forgets what it printed.
    pub fn clear_logs(&self) {
        self.shared.log.clear();
    }

    /// Waits until it printed a line that holds `text`, before now or from now on.
    ///
    /// # Errors
    /// It did not within `timeout`.
    pub async fn wait_for_log(&self, text: &str, timeout: Duration) -> Result<String, ClientError> {
        let mut changes = self.shared.log.changes();
        let found = async {
            loop {
                changes.borrow_and_update();
                if let Some(line) = self.get_logs().into_iter().find(|line| line.contains(text)) {
                    return line;
                }
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::time::timeout(timeout, found).await.map_err(|_| ClientError::TimedOut {
            method: format!("a log line with {text:?}"),
            after: timeout,
            hint: format!("; the last lines: {:?}", self.shared.log.tail(5)),
        })
    }

    /// Ends it and starts it again on the same port. Clients begin a new session with their next request.
    ///
    /// # Errors
    /// As [`ServerBuilder::start`].
    pub async fn restart(&self) -> Result<(), StartError> {
        self.stop().await;
        self.start().await
    }

    /// Ends it: SIGTERM to its process group, SIGKILL when it does not end in time.
    pub async fn stop(&self) {
        if let Some(process) = self.shared.running.lock().await.take() {
            process.stop().await;
        }
    }

    /// How its last process ended; none while it runs, and for a server the test did not start.
    pub fn last_exit(&self) -> Option<std::process::ExitStatus> {
        *lock(&self.shared.ended)
    }

    /// Every client gets a process of its own.
    fn stdio(&self) -> Connector {
        let shared = Arc::downgrade(&self.shared);
        Arc::new(move |inbox, _| {
            let shared = shared.upgrade();
            Box::pin(async move {
                let shared = shared.ok_or_else(|| ClientError::Closed("the server is gone".into()))?;
                let options = &shared.options;
                let spawned = Process::spawn(
                    options.command(0),
                    true,
                    &shared.log,
                    options.stop_timeout,
                    &shared.ended,
                );
                let (process, pipes) = spawned.map_err(|error| {
                    let mut failure = options.failure(0, format!("it cannot be run: {error}"), &shared.log);
                    failure.advice = ready::not_runnable(&error);
                    ClientError::Closed(failure.to_string())
                })?;
                lock(&shared.info).pid = process.pid();
                let (stdin, stdout) = pipes.ok_or_else(|| ClientError::Closed("it has no pipes".into()))?;
                let (options, log) = (options.clone(), shared.log.clone());
                let told = move |problem: String, status: Option<std::process::ExitStatus>| {
                    let mut failure = options.failure(0, problem, &log);
                    failure.exit = status.map(|status| status.to_string());
                    failure.advice = "run the command by hand and look at its last lines above".into();
                    failure.to_string()
                };
                let wire = LinesWire::of_process(stdout, stdin, inbox, process, told);
                Ok(Arc::new(wire) as Arc<dyn Wire>)
            })
        })
    }
}

pub(crate) use process::Process as Child;

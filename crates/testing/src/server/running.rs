//! A running server: its clients, its log, restart and stop.

use std::{sync::Arc, time::Duration};

use gatewright_core::rmcp::ServerHandler;

use super::{
    builder::{ServerBuilder, Transport},
    error::StartError,
    leased::leased_process::LeasedProcess,
    state::{Hosting, ServerInfo, ServerState},
    stdio,
};
use crate::{
    base::lock,
    client::{Connector, Mcp, McpBuilder, RequestTrace, Startup, memory_connector},
    protocol::ClientError,
    shapes::Strict,
    token::Auth,
};

/// The server under test. Clones share it; its processes end with the last clone.
#[derive(Clone)]
pub struct Server {
    pub(super) state: Arc<ServerState>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("info", &self.info()).finish_non_exhaustive()
    }
}

/// Options of a further client.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// The transport. Default: that of the server.
    pub transport: Option<Transport>,
    /// The bearer token.
    pub token: Option<String>,
    /// The rules that messages of the server are checked against. Default: those of [`ServerBuilder::strict`].
    pub strict: Option<Strict>,
}

impl Server {
    /// Builds a server to be started: an executable, a cargo binary's name, a `.js`, `.mjs`, `.ts` or `.py` file, or a command line.
    pub fn builder(server: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(server)
    }

    /// A server in this process. Each client gets the handler that `make` returns.
    pub fn in_memory<H: ServerHandler>(make: impl Fn() -> H + Send + Sync + 'static) -> Self {
        Self::memory(memory_connector(make, None))
    }

    /// A server in this process that accepts only tokens of `auth`: signed by its key, with its issuer and audience, not expired.
    /// Other callers get [`ClientError::Refused`] with status 401. The handler finds the caller where an HTTP server puts it:
    /// `http::request::Parts` in the extensions of the request, with `authorization` and a `Principal` of `gatewright-core`.
    pub fn in_memory_with_auth<H: ServerHandler>(
        make: impl Fn() -> H + Send + Sync + 'static,
        auth: &Auth,
    ) -> Self {
        Self::memory(memory_connector(make, Some(auth.factory().clone())))
    }

    fn memory(connector: Connector) -> Self {
        Self { state: ServerState::new(ServerBuilder::new("in memory"), Hosting::InMemory(connector)) }
    }

    /// A server that is not started yet.
    pub(super) fn with_options(options: ServerBuilder) -> Self {
        let hosting = match (&options.base_url, options.transport) {
            (Some(_), _) => Hosting::External,
            (None, Transport::Stdio) => Hosting::Stdio,
            (None, _) => Hosting::Process,
        };
        Self { state: ServerState::new(options, hosting) }
    }

    /// A server that is shared with other processes, and not found or started yet.
    pub(super) fn leased(options: ServerBuilder) -> Self {
        Self { state: ServerState::new(options, Hosting::Leased) }
    }

    /// Address and process of the server.
    pub fn info(&self) -> ServerInfo {
        lock(&self.state.info).clone()
    }

    /// Builds a further client.
    pub fn client(&self) -> McpBuilder {
        self.client_over(self.state.options.transport)
    }

    fn client_over(&self, transport: Transport) -> McpBuilder {
        let options = &self.state.options;
        let url =
            |default: &str| format!("{}{}", self.info().base_url, options.path.as_deref().unwrap_or(default));
        let client = match (&self.state.hosting, transport) {
            (Hosting::InMemory(connector), _) => McpBuilder::with_connector("memory", connector.clone()),
            (Hosting::Leased, Transport::Stdio) if options.transport == Transport::Stdio => {
                let connector = lock(&self.state.leased).as_ref().and_then(LeasedProcess::connector);
                let connector = connector.unwrap_or_else(|| {
                    let gone = || Err(ClientError::Closed("the shared server was given back".into()));
                    Arc::new(move |_, _| Box::pin(std::future::ready(gone())))
                });
                McpBuilder::with_connector("stdio", connector).startup(self.startup())
            }
            (_, Transport::Stdio) => {
                let connector = stdio::connector(Arc::downgrade(&self.state));
                McpBuilder::with_connector("stdio", connector).startup(self.startup())
            }
            (_, Transport::StreamableHttp) => Mcp::http(url("/mcp")),
            (_, Transport::Sse) => Mcp::sse(url("/sse")),
        };
        client.strict(options.strict.clone())
    }

    /// Timeout and error details for a stdio server that does not answer the handshake.
    pub(super) fn startup(&self) -> Startup {
        let (options, log) = (self.state.options.clone(), self.state.log.clone());
        let timeout = options.startup_timeout;
        let details = move || {
            let advice = format!(
                "it must answer on its standard output, one JSON message a line; raise `{}` when it needs longer, and leave \
                 `transport` out when it serves HTTP",
                options.startup_option
            );
            StartError { advice, ..options.failure(0, String::new(), &log) }.details()
        };
        Startup { timeout, details: Box::new(details) }
    }

    /// The exit status, if the server ended by itself. If the last request lost its connection, waits a moment for the exit.
    pub(crate) async fn unexpected_exit(
        &self,
        requests: &[RequestTrace],
    ) -> Option<std::process::ExitStatus> {
        const GRACE: Duration = Duration::from_secs(1);
        let disconnected = requests.last().is_some_and(|last| last.disconnected);
        match self.state.process.lock().await.as_mut() {
            Some(process) if disconnected => tokio::time::timeout(GRACE, process.wait()).await.ok().flatten(),
            Some(process) => process.exited(),
            None => None,
        }
    }

    /// Connects a further client.
    ///
    /// # Errors
    /// The server cannot be reached, rejects the client, or does not speak MCP.
    pub async fn create_client(&self, options: ClientOptions) -> Result<Mcp, ClientError> {
        let mut client = self.client_over(options.transport.unwrap_or(self.state.options.transport));
        if let Some(token) = options.token {
            client = client.token(token);
        }
        if let Some(strict) = options.strict {
            client = client.strict(strict);
        }
        let client = client.connect().await?;
        lock(&self.state.clients).push(client.clone());
        Ok(client)
    }

    /// The clients from [`Server::create_client`].
    pub(crate) fn clients(&self) -> Vec<Mcp> {
        lock(&self.state.clients).clone()
    }

    /// Lines from standard output and standard error, oldest first; the last 10,000.
    pub fn get_logs(&self) -> Vec<String> {
        self.state.log.all()
    }

    /// Removes all log lines.
    pub fn clear_logs(&self) {
        self.state.log.clear();
    }

    /// Waits for a log line that contains `text`, counting earlier ones.
    ///
    /// # Errors
    /// None was printed within `timeout`.
    pub async fn wait_for_log(&self, text: &str, timeout: Duration) -> Result<String, ClientError> {
        let mut changes = self.state.log.changes();
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
            hint: format!("; the last lines: {:?}", self.state.log.tail(5)),
        })
    }

    /// Stops the server and starts it again on the same port. Clients start a new session with their next request.
    ///
    /// # Errors
    /// As [`ServerBuilder::start`]; or the server is shared with other tests.
    pub async fn restart(&self) -> Result<(), StartError> {
        if matches!(self.state.hosting, Hosting::Leased) {
            let problem = "other tests share it, so that one cannot restart it".into();
            let failure = self.state.options.failure(self.info().port, problem, &self.state.log);
            return Err(StartError { advice: "leave `shared` out for this test".into(), ..failure });
        }
        self.stop().await;
        self.start().await
    }

    /// Stops the server: SIGTERM to its process group, then SIGKILL if it does not end in time. One that is shared with other tests is
    /// given back instead, and ends after the last of them.
    pub async fn stop(&self) {
        if matches!(self.state.hosting, Hosting::Leased) {
            drop(lock(&self.state.leased).take());
            return;
        }
        #[cfg(feature = "suites")]
        self.stop_shared().await;
        if let Some(process) = self.state.process.lock().await.take() {
            process.stop().await;
        }
    }

    /// Exit status of the last process; `None` while it runs, and for a server the test did not start.
    pub fn last_exit(&self) -> Option<std::process::ExitStatus> {
        *lock(&self.state.last_exit)
    }
}

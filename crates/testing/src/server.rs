//! The server under test: started, watched, restarted and ended.

mod error;
mod log_ring;
mod port;
mod process;
mod program;
mod ready;

pub use error::StartError;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use gatewright_core::rmcp::ServerHandler;
use serde::Deserialize;
use tokio::process::Command;

#[cfg(feature = "http-mock")]
use crate::http_mock::HttpMock;
use crate::{
    ClientError, Mcp, McpBuilder, RequestTrace,
    client::{Connector, Starting, memory_connector},
    lock,
    wire::{Wire, lines::LinesWire},
};
use log_ring::LogRing;
use process::Process;
use program::Program;

/// How a client talks to the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "suites", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// One endpoint, `/mcp` unless said otherwise.
    #[default]
    StreamableHttp,
    /// The older HTTP+SSE, at `/sse` unless said otherwise.
    Sse,
    /// Standard input and output; every client gets a process of its own.
    Stdio,
}

/// How to start a server. Every field has a setter of the same name.
#[derive(Debug, Clone)]
#[must_use = "call `start`"]
pub struct ServerBuilder {
    server: String,
    args: Vec<String>,
    port: Option<u16>,
    transport: Transport,
    log_level: String,
    env: BTreeMap<String, String>,
    startup_timeout: Duration,
    stop_timeout: Duration,
    base_url: Option<String>,
    path: Option<String>,
    ready_path: String,
    current_dir: Option<PathBuf>,
    #[cfg(feature = "http-mock")]
    http_mock: Option<HttpMock>,
}

impl ServerBuilder {
    fn new(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            args: Vec::new(),
            port: None,
            transport: Transport::default(),
            log_level: "warn".into(),
            env: BTreeMap::new(),
            startup_timeout: Duration::from_secs(30),
            stop_timeout: Duration::from_secs(5),
            base_url: None,
            path: None,
            ready_path: "/health".into(),
            current_dir: None,
            #[cfg(feature = "http-mock")]
            http_mock: None,
        }
    }

    /// Another program: see [`Server::builder`].
    pub fn server(mut self, server: impl Into<String>) -> Self {
        self.server = server.into();
        self
    }

    /// One more argument. `{port}` in it becomes the port.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// The port, given to the server as `PORT`. Default: a free one.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// How clients talk to it. Default: Streamable HTTP.
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// Given to the server as `LOG_LEVEL` and, when the test sets no other, `RUST_LOG`: `debug`, `info`, `warn` or `error`.
    /// Default `warn`.
    pub fn log_level(mut self, level: impl Into<String>) -> Self {
        self.log_level = level.into();
        self
    }

    /// One more environment variable, over those of the test.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// How long it may take until it answers. Default 30 s.
    pub fn startup_timeout(mut self, timeout: Duration) -> Self {
        self.startup_timeout = timeout;
        self
    }

    /// How long it may take to end after SIGTERM before SIGKILL. Default 5 s.
    pub fn stop_timeout(mut self, timeout: Duration) -> Self {
        self.stop_timeout = timeout;
        self
    }

    /// A server that runs already, such as `http://127.0.0.1:3000`; nothing is started.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into().trim_end_matches('/').to_owned());
        self
    }

    /// The endpoint. Default `/mcp`, for SSE `/sse`.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// What is asked to see whether it is up. Any HTTP answer but 503 means yes. Default `/health`.
    pub fn ready_path(mut self, path: impl Into<String>) -> Self {
        self.ready_path = path.into();
        self
    }

    /// Where it runs. Default: where the test runs.
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(dir.into());
        self
    }

    #[cfg(feature = "http-mock")]
    /// Sends its HTTP calls to the outside world to `mock`, whatever language it is written in.
    pub fn http_mock(mut self, mock: &HttpMock) -> Self {
        self.http_mock = Some(mock.clone());
        self
    }

    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// It cannot be run, ends at once, or does not answer in time.
    pub async fn start(self) -> Result<Server, StartError> {
        if self.base_url.is_none()
            && let Some((problem, advice)) =
                program::missing_script(&self.server, self.current_dir.as_deref())
        {
            return Err(StartError {
                advice,
                ..self.failure(self.port.unwrap_or(0), problem, &LogRing::default())
            });
        }
        let server = Server {
            shared: Arc::new(Shared {
                log: LogRing::default(),
                running: tokio::sync::Mutex::new(None),
                info: Mutex::new(ServerInfo::default()),
                kind: match (&self.base_url, self.transport) {
                    (Some(_), _) => Kind::Elsewhere,
                    (None, Transport::Stdio) => Kind::Stdio,
                    (None, _) => Kind::Child,
                },
                options: self,
                ended: process::Ended::default(),
                clients: Mutex::default(),
            }),
        };
        server.start().await?;
        Ok(server)
    }

    fn command(&self, port: u16) -> Command {
        let program = Program::find(&self.server);
        let mut command = Command::new(&program.program);
        command.args(&program.args);
        command.args(self.args.iter().map(|arg| arg.replace("{port}", &port.to_string())));
        if let Some(dir) = &self.current_dir {
            command.current_dir(dir);
        }
        command.env("LOG_LEVEL", &self.log_level).env("RUST_LOG", &self.log_level);
        if self.transport != Transport::Stdio {
            command.env("PORT", port.to_string());
        }
        let lists = self.join_mock(&mut command);
        command.envs(self.env.iter().filter(|(name, _)| !lists.contains(&name.as_str())));
        command
    }

    /// Adds what an HTTP mock needs; the names that hold the server's own values already, joined with the mock's.
    #[cfg(feature = "http-mock")]
    fn join_mock(&self, command: &mut Command) -> &'static [&'static str] {
        let Some(mock) = &self.http_mock else { return &[] };
        for (name, value) in mock.child_env() {
            let joined = match (name.as_str(), self.env.get(&name)) {
                ("NODE_OPTIONS", Some(own)) => format!("{value} {own}"),
                ("PYTHONPATH", Some(own)) => format!("{value}:{own}"),
                (_, Some(own)) => own.clone(),
                (_, None) => value,
            };
            command.env(name, joined);
        }
        &["NODE_OPTIONS", "PYTHONPATH"]
    }

    #[cfg(not(feature = "http-mock"))]
    fn join_mock(&self, _: &mut Command) -> &'static [&'static str] {
        &[]
    }

    fn command_line(&self, port: u16) -> String {
        let program = Program::find(&self.server);
        let mut words = vec![program.program.display().to_string()];
        words.extend(program.args);
        words.extend(self.args.iter().map(|arg| arg.replace("{port}", &port.to_string())));
        words.join(" ")
    }

    fn failure(&self, port: u16, problem: String, log: &LogRing) -> StartError {
        StartError {
            problem,
            command: self.command_line(port),
            exit: None,
            log_tail: log.tail(20),
            advice: String::new(),
        }
    }
}

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
        let broke =
            |one: &RequestTrace| one.failure.as_ref().is_some_and(|why| why.starts_with("not connected"));
        match self.shared.running.lock().await.as_mut() {
            Some(process) if requests.last().is_some_and(broke) => {
                tokio::time::timeout(MOMENT, process.wait()).await.ok().flatten()
            }
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

//! How a server is to be started: the command, its environment, and how clients will talk to it.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde::Deserialize;
use tokio::process::Command;

use super::{
    Kind, Server, ServerInfo, Shared, StartError,
    log_ring::LogRing,
    process,
    program::{self, Program},
};
#[cfg(feature = "http-mock")]
use crate::http_mock::HttpMock;

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
    pub(super) server: String,
    pub(super) args: Vec<String>,
    pub(super) port: Option<u16>,
    pub(super) transport: Transport,
    pub(super) log_level: String,
    pub(super) env: BTreeMap<String, String>,
    pub(super) startup_timeout: Option<Duration>,
    pub(super) stop_timeout: Duration,
    pub(super) base_url: Option<String>,
    pub(super) path: Option<String>,
    pub(super) ready_path: String,
    pub(super) current_dir: Option<PathBuf>,
    #[cfg(feature = "http-mock")]
    pub(super) http_mock: Option<HttpMock>,
}

impl ServerBuilder {
    pub(super) fn new(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            args: Vec::new(),
            port: None,
            transport: Transport::default(),
            log_level: "warn".into(),
            env: BTreeMap::new(),
            startup_timeout: None,
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

    /// How long it may take until it answers. Default 30 s. Over standard input and output this is the time until `initialize`
    /// is answered, in place of [`McpBuilder::timeout`](crate::McpBuilder::timeout), which holds for every later request, and
    /// for this one when no `startup_timeout` is set.
    pub fn startup_timeout(mut self, timeout: Duration) -> Self {
        self.startup_timeout = Some(timeout);
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

    pub(super) fn command(&self, port: u16) -> Command {
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

    pub(super) fn failure(&self, port: u16, problem: String, log: &LogRing) -> StartError {
        StartError {
            problem,
            command: self.command_line(port),
            exit: None,
            log_tail: log.tail(20),
            advice: String::new(),
        }
    }
}

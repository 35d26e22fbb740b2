//! Building a server: its command, its environment, and the transport of its clients.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde::Deserialize;
use tokio::process::Command;

use super::{error::StartError, log_ring::LogRing, program::Program};
#[cfg(feature = "http-mock")]
use crate::http_mock::HttpMock;
use crate::shapes::Strict;

/// The transport between client and server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "suites", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Streamable HTTP, by default at `/mcp`.
    #[default]
    StreamableHttp,
    /// HTTP+SSE (2024-11-05), by default at `/sse`.
    Sse,
    /// Standard input and output; each client gets its own process.
    Stdio,
}

/// A server to be configured and started.
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
    /// The name of the option above, for advice.
    pub(super) startup_option: &'static str,
    pub(super) stop_timeout: Duration,
    pub(super) base_url: Option<String>,
    pub(super) path: Option<String>,
    pub(super) ready_path: String,
    pub(super) current_dir: Option<PathBuf>,
    pub(super) strict: Strict,
    /// The file for the output of a server that outlives this process.
    pub(super) log_file: Option<PathBuf>,
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
            startup_option: "startup_timeout",
            stop_timeout: Duration::from_secs(5),
            base_url: None,
            path: None,
            ready_path: "/health".into(),
            current_dir: None,
            strict: Strict::default(),
            log_file: None,
            #[cfg(feature = "http-mock")]
            http_mock: None,
        }
    }

    /// Sets the program: see `Server::builder`.
    pub fn server(mut self, server: impl Into<String>) -> Self {
        self.server = server.into();
        self
    }

    /// Adds an argument. `{port}` in it is replaced by the port.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Sets the port, passed to the server as `PORT`. Default: a free one.
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Sets the transport. Default: Streamable HTTP.
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// Sets `LOG_LEVEL` and, unless the test sets it, `RUST_LOG` of the server: `debug`, `info`, `warn` or `error`. Default
    /// `warn`.
    pub fn log_level(mut self, level: impl Into<String>) -> Self {
        self.log_level = level.into();
        self
    }

    /// Adds an environment variable to those of the test process.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the time until the server must respond. Default 30 s. Over standard input and output it is the timeout of `initialize`,
    /// where it replaces [`McpBuilder::timeout`](crate::McpBuilder::timeout), which applies to all later requests.
    pub fn startup_timeout(mut self, timeout: Duration) -> Self {
        self.startup_timeout = Some(timeout);
        self
    }

    /// Sets the name that advice has for `startup_timeout`.
    #[cfg(feature = "suites")]
    pub(crate) fn startup_option(mut self, name: &'static str) -> Self {
        self.startup_option = name;
        self
    }

    /// Sets the time between SIGTERM and SIGKILL. Default 5 s.
    pub fn stop_timeout(mut self, timeout: Duration) -> Self {
        self.stop_timeout = timeout;
        self
    }

    /// Sets the rules that messages of the server are checked against, for all its clients: see
    /// [`McpBuilder::strict`](crate::McpBuilder::strict). Default: all.
    pub fn strict(mut self, strict: impl Into<Strict>) -> Self {
        self.strict = strict.into();
        self
    }

    /// Uses a server that is already running, such as `http://127.0.0.1:3000`; nothing is started.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into().trim_end_matches('/').to_owned());
        self
    }

    /// Sets the path of the endpoint. Default `/mcp`, for SSE `/sse`.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets the path of the readiness check. Any HTTP response except 503 means ready. Default `/health`.
    pub fn ready_path(mut self, path: impl Into<String>) -> Self {
        self.ready_path = path.into();
        self
    }

    /// Sets the working directory. Default: that of the test.
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(dir.into());
        self
    }

    /// Directs the server's external HTTP calls to `mock`, in whatever language it is written.
    #[cfg(feature = "http-mock")]
    pub fn http_mock(mut self, mock: &HttpMock) -> Self {
        self.http_mock = Some(mock.clone());
        self
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
        let joined = self.join_mock(&mut command);
        let own = self.env.iter().filter(|(name, _)| !joined.contains(&name.as_str()));
        command.envs(own.map(|(name, value)| (name, value.replace("{port}", &port.to_string()))));
        command
    }

    /// Adds the environment of the HTTP mock. Returns the variables whose value is joined with the server's own.
    #[cfg(feature = "http-mock")]
    fn join_mock(&self, command: &mut Command) -> &'static [&'static str] {
        let Some(mock) = &self.http_mock else { return &[] };
        for (name, value) in mock.child_env() {
            let own = self.env.get(&name).cloned();
            let joined = match (name.as_str(), own) {
                ("NODE_OPTIONS", own) => join(&value, " ", own.or_else(|| inherited(&name))),
                ("PYTHONPATH", own) => join(&value, ":", own.or_else(|| inherited(&name))),
                (_, Some(own)) => own,
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

/// A variable of this process, which its children have unless it is replaced.
#[cfg(feature = "http-mock")]
fn inherited(name: &str) -> Option<String> {
    std::env::vars_os().find(|(found, _)| found == name)?.1.into_string().ok()
}

#[cfg(feature = "http-mock")]
fn join(first: &str, between: &str, second: Option<String>) -> String {
    match second.filter(|second| !second.is_empty()) {
        Some(second) => format!("{first}{between}{second}"),
        None => first.to_owned(),
    }
}

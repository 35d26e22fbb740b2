//! The server that is tested: a command to start, an endpoint, or the server of a suite.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    base::text::random_text,
    client::{Mcp, McpBuilder},
    protocol::ClientError,
    server::{Server, StartError, Transport},
    suite::{RunOptions, Session, Suite},
};

/// The environment variable of a value that no answer of a started server may have.
pub(crate) const CANARY: &str = "GATEWRIGHT_CANARY_SECRET";

/// The server that is tested.
#[derive(Debug)]
pub struct Target {
    kind: Kind,
    token: Option<String>,
    canary: Option<String>,
}

#[derive(Debug)]
enum Kind {
    Command { server: Server, command: String, args: Vec<String> },
    Url(String),
    Suite(Box<Session>),
}

impl Target {
    /// A server over standard input and output, started for each client: an executable, a `.js`, `.mjs`, `.ts` or `.py` file, or a name
    /// on `PATH`, and its arguments. It must answer within `startup`.
    ///
    /// # Errors
    /// As [`ServerBuilder::start`](crate::ServerBuilder::start).
    pub async fn command(command: &str, args: &[String], startup: Duration) -> Result<Self, StartError> {
        let canary = format!("gw-canary-{}", random_text());
        let server = Server::builder(command)
            .transport(Transport::Stdio)
            .startup_timeout(startup)
            .startup_option("--startup-seconds")
            .stop_timeout(Duration::from_secs(2))
            .env(CANARY, &canary);
        let server = args.iter().fold(server, |server, arg| server.arg(arg)).start().await?;
        let kind = Kind::Command { server, command: command.to_owned(), args: args.to_vec() };
        Ok(Self { kind, token: None, canary: Some(canary) })
    }

    /// A server at a Streamable HTTP endpoint, such as `http://127.0.0.1:3000/mcp`.
    pub fn url(url: impl Into<String>) -> Self {
        Self { kind: Kind::Url(url.into()), token: None, canary: None }
    }

    /// The server of a suite, with its mocks and its authorization server.
    ///
    /// # Errors
    /// Something of it does not start, for this reason.
    pub async fn suite(suite: &Suite, options: &RunOptions) -> Result<Self, String> {
        let session = Session::start(suite, options).await?;
        Ok(Self { kind: Kind::Suite(Box::new(session)), token: None, canary: None })
    }

    /// Sets the bearer token of clients. Default: none, and for a suite that of its user.
    #[must_use]
    pub fn token(mut self, token: Option<String>) -> Self {
        self.token = token;
        self
    }

    /// A client that is not connected yet.
    pub(crate) fn client(&self) -> McpBuilder {
        let client = match &self.kind {
            Kind::Command { server, .. } => server.client(),
            Kind::Url(url) => Mcp::http(url),
            Kind::Suite(session) => session.client(),
        };
        self.token.iter().fold(client, |client, token| client.token(token))
    }

    /// Connects a client whose requests are answered within `timeout`. It keeps violations and does not fail with them.
    pub(crate) async fn connect(&self, timeout: Duration) -> Result<Mcp, ClientError> {
        self.client().observe().timeout(timeout).connect().await
    }

    /// The endpoint, if the server is tested over HTTP by its address.
    pub(crate) fn endpoint(&self) -> Option<&str> {
        match &self.kind {
            Kind::Url(url) => Some(url),
            _ => None,
        }
    }

    /// The server, if it was started.
    pub(crate) fn server(&self) -> Option<&Server> {
        match &self.kind {
            Kind::Command { server, .. } => Some(server),
            Kind::Url(_) => None,
            Kind::Suite(session) => Some(session.server()),
        }
    }

    pub(crate) fn bearer(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// A value in the server's environment that no answer may have.
    pub(crate) fn canary(&self) -> Option<&str> {
        self.canary.as_deref()
    }

    /// The key `server` of a suite for this server; `None` for that of a suite.
    pub(crate) fn section(&self) -> Option<Value> {
        match &self.kind {
            Kind::Command { command, args, .. } => {
                Some(json!({"command": command, "args": args, "transport": "stdio"}))
            }
            Kind::Url(url) => Some(json!({"url": url})),
            Kind::Suite(_) => None,
        }
    }

    /// Stops what was started.
    pub async fn stop(&self) {
        match &self.kind {
            Kind::Command { server, .. } => server.stop().await,
            Kind::Url(_) => {}
            Kind::Suite(session) => session.server().stop().await,
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            Kind::Command { command, args, .. } => {
                f.write_str(command)?;
                args.iter().try_for_each(|arg| write!(f, " {arg}"))
            }
            Kind::Url(url) => f.write_str(url),
            Kind::Suite(session) => f.write_str(session.name()),
        }
    }
}

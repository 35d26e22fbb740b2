//! Which server to connect to, and how.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use gatewright_core::rmcp::ServerHandler;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Mcp, engine::Core};
use crate::{
    ClientError, TokenFactory, lock,
    wire::{
        Inbox, Wire,
        http::HttpWire,
        lines::LinesWire,
        memory::{Guard, MemoryWire},
        sse::SseWire,
    },
};

/// Makes one more connection. Takes the token to begin with.
pub(crate) type Connector = Arc<
    dyn Fn(Inbox, Option<String>) -> BoxFuture<'static, Result<Arc<dyn Wire>, ClientError>> + Send + Sync,
>;

pub(super) struct Settings {
    pub(super) version: String,
    pub(super) capabilities: Value,
    pub(super) client_info: Value,
    pub(super) timeout: Duration,
    pub(super) transport: &'static str,
    pub(super) starting: Option<Starting>,
}

/// A server that is started for the connection.
pub(crate) struct Starting {
    /// How long it may take until it answers `initialize`. None: as long as the client waits for any answer.
    pub(crate) timeout: Option<Duration>,
    /// What was run and what it printed, for the error when it does not.
    pub(crate) details: Box<dyn Fn() -> String + Send + Sync>,
}

enum Target {
    Http(String),
    Sse(String),
    Other(&'static str, Connector),
}

/// A client that is not connected yet.
#[must_use = "call `connect`"]
pub struct McpBuilder {
    target: Target,
    headers: Vec<(String, String)>,
    token: Option<String>,
    cassette: Option<std::path::PathBuf>,
    settings: Settings,
}

impl std::fmt::Debug for McpBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpBuilder").field("protocol_version", &self.settings.version).finish_non_exhaustive()
    }
}

impl Mcp {
    /// A client of a Streamable HTTP endpoint, such as `http://127.0.0.1:3000/mcp`.
    pub fn http(url: impl Into<String>) -> McpBuilder {
        McpBuilder::new(Target::Http(url.into()))
    }

    /// A client of an HTTP+SSE endpoint (2024-11-05), such as `http://127.0.0.1:3000/sse`.
    pub fn sse(url: impl Into<String>) -> McpBuilder {
        McpBuilder::new(Target::Sse(url.into()))
    }

    /// A client of a handler in this process.
    pub fn in_memory<H: ServerHandler>(handler: H) -> McpBuilder {
        let handler = Arc::new(handler);
        Self::in_memory_with(move || handler.clone())
    }

    /// A client of a handler in this process that is made anew for each connection.
    pub fn in_memory_with<H: ServerHandler>(make: impl Fn() -> H + Send + Sync + 'static) -> McpBuilder {
        McpBuilder::new(Target::Other("memory", memory_connector(make, None)))
    }

    /// A client that writes one message per line to `writer` and reads them from `reader`. It connects once.
    pub fn lines(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> McpBuilder {
        let ends = std::sync::Mutex::new(Some((reader, writer)));
        let connector: Connector = Arc::new(move |inbox, _| {
            let ends = lock(&ends).take();
            Box::pin(async move {
                let (reader, writer) =
                    ends.ok_or_else(|| ClientError::Closed("this stream can be used once".into()))?;
                Ok(Arc::new(LinesWire::new(reader, writer, inbox)) as Arc<dyn Wire>)
            })
        });
        McpBuilder::new(Target::Other("a byte stream", connector))
    }
}

/// With an `issuer`, every message needs one of its tokens.
pub(crate) fn memory_connector<H: ServerHandler>(
    make: impl Fn() -> H + Send + Sync + 'static,
    issuer: Option<TokenFactory>,
) -> Connector {
    Arc::new(move |inbox, token| {
        let guard = issuer.clone().map(|issuer| Guard::new(issuer, token));
        let wire: Arc<dyn Wire> = Arc::new(MemoryWire::serve(make(), inbox, guard));
        Box::pin(std::future::ready(Ok(wire)))
    })
}

impl McpBuilder {
    fn new(target: Target) -> Self {
        let transport = match &target {
            Target::Http(_) => "Streamable HTTP",
            Target::Sse(_) => "SSE",
            Target::Other(name, _) => name,
        };
        Self {
            target,
            headers: Vec::new(),
            token: None,
            cassette: None,
            settings: Settings {
                version: "2025-11-25".into(),
                capabilities: json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}}),
                client_info: json!({"name": "gatewright-testing", "version": env!("CARGO_PKG_VERSION")}),
                timeout: Duration::from_secs(30),
                transport,
                starting: None,
            },
        }
    }

    pub(crate) fn starting(mut self, starting: Starting) -> Self {
        self.settings.starting = Some(starting);
        self
    }

    pub(crate) fn with_connector(transport: &'static str, connector: Connector) -> Self {
        Self::new(Target::Other(transport, connector))
    }

    /// The revision to ask for. Default `2025-11-25`; from `2026-07-28` on there is no session and no `initialize`.
    pub fn protocol_version(mut self, version: impl Into<String>) -> Self {
        self.settings.version = version.into();
        self
    }

    /// The bearer token to begin with.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// One more header on every HTTP request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Replays the cassette `file` when it is there. When it is not, records what the server answers and writes it to `file`
    /// when the client disconnects or is gone; secrets are written as `[redacted]`. Each answer is replayed once, to a request with the same
    /// method and `params`.
    pub fn record(mut self, file: impl Into<std::path::PathBuf>) -> Self {
        self.cassette = Some(file.into());
        self
    }

    /// How long to wait for an answer. Default 30 s. For the first one of a server that is started for the connection,
    /// [`ServerBuilder::startup_timeout`](crate::ServerBuilder::startup_timeout) counts where it is set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// What the client says it can do. Default: elicitation by form, sampling, roots.
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.settings.capabilities = capabilities;
        self
    }

    /// Who the client says it is.
    pub fn client_info(mut self, name: &str, version: &str) -> Self {
        self.settings.client_info = json!({"name": name, "version": version});
        self
    }

    fn core(self) -> Arc<Core> {
        let headers = self.headers;
        let connector: Connector = match self.target {
            Target::Other(_, connector) => connector,
            Target::Http(url) => Arc::new(move |inbox, token| {
                let wire = HttpWire::new(url.clone(), token, headers.clone(), inbox);
                Box::pin(std::future::ready(wire.map(|wire| Arc::new(wire) as Arc<dyn Wire>)))
            }),
            Target::Sse(url) => Arc::new(move |inbox, token| {
                let (url, headers) = (url.clone(), headers.clone());
                Box::pin(async move {
                    Ok(Arc::new(SseWire::open(&url, token, headers, inbox).await?) as Arc<dyn Wire>)
                })
            }),
        };
        let connector = match self.cassette {
            Some(file) => crate::cassette::cassette_connector(file, connector),
            None => connector,
        };
        Core::new(self.settings, connector, self.token)
    }

    /// Connects and shakes hands.
    ///
    /// # Errors
    /// The server cannot be reached, refuses, or answers with something else than MCP.
    pub async fn connect(self) -> Result<Mcp, ClientError> {
        let core = self.core();
        core.connect().await?;
        Ok(Mcp { core })
    }

    /// As [`McpBuilder::connect`], but a server that refuses the caller (401, 403) gives a client that is not connected yet:
    /// [`Mcp::authenticate`] connects it, and any request before that fails with the refusal.
    ///
    /// # Errors
    /// Every other failure of [`McpBuilder::connect`].
    pub async fn connect_or_refused(self) -> Result<Mcp, ClientError> {
        let core = self.core();
        match core.connect().await {
            Ok(()) | Err(ClientError::Refused { .. }) => Ok(Mcp { core }),
            Err(error) => Err(error),
        }
    }
}

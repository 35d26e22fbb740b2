//! Building a client: its server, and how to connect.

use std::{sync::Arc, time::Duration};

use gatewright_core::rmcp::ServerHandler;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    engine::Engine,
    mcp::Mcp,
    settings::{Settings, Startup},
    transport::{
        Connector, HttpTransport, LineTransport, MemoryTransport, Recording, SharedHeaders, SseTransport,
        TokenGuard, Transport, recorded,
    },
};
use crate::{
    base::lock, cassette::RecordOptions, protocol::ClientError, shapes::Strict, token::TokenFactory,
};

enum Target {
    Http(String),
    Sse(String),
    Custom(&'static str, Connector),
}

/// A client to be configured and connected.
#[must_use = "call `connect`"]
pub struct McpBuilder {
    target: Target,
    headers: Vec<(String, String)>,
    token: Option<String>,
    recording: Option<Recording>,
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

    /// A client of a handler in this process; each connection gets a new handler.
    pub fn in_memory_with<H: ServerHandler>(make: impl Fn() -> H + Send + Sync + 'static) -> McpBuilder {
        McpBuilder::new(Target::Custom("memory", memory_connector(make, None)))
    }

    /// A client that exchanges messages over byte streams, one per line. It can connect only once.
    pub fn lines(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> McpBuilder {
        let streams = std::sync::Mutex::new(Some((reader, writer)));
        let connector: Connector = Arc::new(move |sender, _| {
            let streams = lock(&streams).take();
            Box::pin(async move {
                let (reader, writer) =
                    streams.ok_or_else(|| ClientError::Closed("this stream can be used once".into()))?;
                Ok(Arc::new(LineTransport::new(reader, writer, sender)) as Arc<dyn Transport>)
            })
        });
        McpBuilder::new(Target::Custom("a byte stream", connector))
    }
}

/// Connects to a handler in this process. With an `issuer`, every message requires one of its tokens.
pub(crate) fn memory_connector<H: ServerHandler>(
    make: impl Fn() -> H + Send + Sync + 'static,
    issuer: Option<TokenFactory>,
) -> Connector {
    Arc::new(move |sender, token| {
        let guard = issuer.clone().map(|issuer| TokenGuard::new(issuer, token));
        let transport: Arc<dyn Transport> = Arc::new(MemoryTransport::serve(make(), sender, guard));
        Box::pin(std::future::ready(Ok(transport)))
    })
}

impl McpBuilder {
    fn new(target: Target) -> Self {
        let transport = match &target {
            Target::Http(_) => "Streamable HTTP",
            Target::Sse(_) => "SSE",
            Target::Custom(name, _) => name,
        };
        Self {
            target,
            headers: Vec::new(),
            token: None,
            recording: None,
            settings: Settings {
                version: "2025-11-25".into(),
                capabilities: json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}}),
                client_info: json!({"name": "gatewright-testing", "version": env!("CARGO_PKG_VERSION")}),
                timeout: Duration::from_secs(30),
                strict: Strict::default(),
                observe: false,
                transport,
                startup: None,
            },
        }
    }

    pub(crate) fn startup(mut self, startup: Startup) -> Self {
        self.settings.startup = Some(startup);
        self
    }

    pub(crate) fn with_connector(transport: &'static str, connector: Connector) -> Self {
        Self::new(Target::Custom(transport, connector))
    }

    /// Sets the protocol revision to request. Default `2025-11-25`; from `2026-07-28` on there is no session and no `initialize`.
    pub fn protocol_version(mut self, version: impl Into<String>) -> Self {
        self.settings.version = version.into();
        self
    }

    /// Sets the initial bearer token.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Removes everything that identifies the caller: token, headers, and the user in the address.
    #[cfg(feature = "suites")]
    pub(crate) fn without_credentials(mut self) -> Self {
        (self.token, self.headers) = (None, Vec::new());
        if let Target::Http(url) | Target::Sse(url) = &mut self.target
            && let Ok(mut parsed) = url::Url::parse(url)
            && parsed.set_username("").and_then(|()| parsed.set_password(None)).is_ok()
        {
            *url = parsed.into();
        }
        self
    }

    /// Adds a header to every HTTP request.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Replays the cassette `file` if it exists. Otherwise records the responses of the server and writes them to `file` when the
    /// client disconnects or is dropped, unless the test panics; secrets are written as `[redacted]`. Each response is replayed once,
    /// to a request with the same method and `params`.
    pub fn record(self, file: impl Into<std::path::PathBuf>) -> Self {
        self.record_with(file, RecordOptions::default())
    }

    /// As [`McpBuilder::record`], with another mode or further places of secrets.
    pub fn record_with(mut self, file: impl Into<std::path::PathBuf>, options: RecordOptions) -> Self {
        self.recording = Some(Recording::File(file.into(), options));
        self
    }

    /// Records on a cassette that the caller finishes.
    #[cfg(feature = "suites")]
    pub(crate) fn tape(mut self, tape: super::transport::Tape) -> Self {
        self.recording = Some(Recording::Tape(tape));
        self
    }

    /// Sets the timeout of responses. Default 30 s. For the first response of a server that is started for the connection,
    /// [`ServerBuilder::startup_timeout`](crate::ServerBuilder::startup_timeout) applies if set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Sets the rules that every message of the server is checked against: `false`, or
    /// [`Strict::except`] some. An answer that breaks one fails with [`ClientError::Shape`]. Default: all.
    pub fn strict(mut self, strict: impl Into<Strict>) -> Self {
        self.settings.strict = strict.into();
        self
    }

    /// Keeps violations of all rules for `Mcp::take_violations`; no call fails with them.
    #[cfg(feature = "suites")]
    pub(crate) fn observe(mut self) -> Self {
        (self.settings.strict, self.settings.observe) = (Strict::default(), true);
        self
    }

    /// Sets the client capabilities. Default: elicitation by form, sampling, roots.
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.settings.capabilities = capabilities;
        self
    }

    /// Sets name and version of the client.
    pub fn client_info(mut self, name: &str, version: &str) -> Self {
        self.settings.client_info = json!({"name": name, "version": version});
        self
    }

    fn engine(self) -> Arc<Engine> {
        let headers: SharedHeaders = Arc::new(std::sync::Mutex::new(self.headers));
        let shared = headers.clone();
        let connector: Connector = match self.target {
            Target::Custom(_, connector) => connector,
            Target::Http(url) => Arc::new(move |sender, token| {
                let transport = HttpTransport::new(url.clone(), token, headers.clone(), sender);
                let transport = transport.map(|transport| Arc::new(transport) as Arc<dyn Transport>);
                Box::pin(std::future::ready(transport))
            }),
            Target::Sse(url) => Arc::new(move |sender, token| {
                let (url, headers) = (url.clone(), headers.clone());
                Box::pin(async move {
                    let transport = SseTransport::open(&url, token, headers, sender).await?;
                    Ok(Arc::new(transport) as Arc<dyn Transport>)
                })
            }),
        };
        let connector = match self.recording {
            Some(recording) => recorded(recording, shared.clone(), connector),
            None => connector,
        };
        Engine::new(self.settings, connector, self.token, shared)
    }

    /// Connects and performs the handshake.
    ///
    /// # Errors
    /// The server cannot be reached, rejects the client, or does not speak MCP.
    pub async fn connect(self) -> Result<Mcp, ClientError> {
        let engine = self.engine();
        engine.connect().await?;
        Ok(Mcp { engine })
    }

    /// As [`McpBuilder::connect`], but if the server rejects the caller (401, 403), returns a client that is not connected:
    /// [`Mcp::authenticate`] connects it, and requests before that fail with the rejection.
    ///
    /// # Errors
    /// Any other failure of [`McpBuilder::connect`].
    pub async fn connect_or_refused(self) -> Result<Mcp, ClientError> {
        let engine = self.engine();
        match engine.connect().await {
            Ok(()) | Err(ClientError::Refused { .. }) => Ok(Mcp { engine }),
            Err(error) => Err(error),
        }
    }

    /// Creates a client without connecting it.
    #[cfg(feature = "suites")]
    pub(crate) fn unconnected(self) -> Mcp {
        Mcp { engine: self.engine() }
    }
}

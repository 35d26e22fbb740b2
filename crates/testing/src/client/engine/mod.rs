//! Requests of a client over its current connection.
//!
//! `handshake` starts a connection, `exchange` sends a request through interceptors and mocks, `stateless` adds what requests
//! carry from 2026-07-28 on.

mod exchange;
mod handshake;
mod stateless;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    connection::Connection,
    interceptors::Interceptors,
    logs::LogLevel,
    mocks::Mocks,
    recorder::Recorder,
    settings::Settings,
    trace::Trace,
    transport::{Connector, Outgoing, SharedHeaders, is_stateless},
};
use crate::{
    base::lock,
    protocol::{ClientError, RpcRequest},
    shapes::Checker,
};

/// The server, as its handshake describes it.
#[derive(Debug, Default)]
pub(super) struct ServerDescription {
    pub(super) info: Value,
    /// The negotiated protocol revision.
    pub(super) version: String,
    pub(super) capabilities: Value,
    pub(super) instructions: Option<String>,
}

enum ConnectionState {
    Connected(Arc<Connection>),
    Disconnected(ClientError),
}

pub(super) struct Engine {
    pub(super) settings: Settings,
    connector: Connector,
    token: Mutex<Option<String>>,
    /// Headers of every HTTP request.
    pub(super) headers: SharedHeaders,
    state: Mutex<ConnectionState>,
    pub(super) server: Mutex<ServerDescription>,
    pub(super) timeout: Mutex<Duration>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) trace: Trace,
    pub(super) mocks: Mocks,
    pub(super) interceptors: Interceptors,
    /// Input schemas of listed tools, for `Mcp-Param-*`.
    schemas: Mutex<HashMap<String, Value>>,
    next_id: AtomicU64,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("connected", &self.is_connected())
            .field("protocol_version", &lock(&self.server).version)
            .finish_non_exhaustive()
    }
}

impl Engine {
    pub(super) fn new(
        settings: Settings,
        connector: Connector,
        token: Option<String>,
        headers: SharedHeaders,
    ) -> Arc<Self> {
        let not_yet = ClientError::Closed("not connected yet".into());
        let shapes = Checker::new(settings.strict.clone(), settings.capabilities.clone(), settings.observe);
        Arc::new(Self {
            timeout: Mutex::new(settings.timeout),
            settings,
            connector,
            token: Mutex::new(token),
            headers,
            state: Mutex::new(ConnectionState::Disconnected(not_yet)),
            server: Mutex::default(),
            recorder: Arc::new(Recorder { shapes, ..Recorder::default() }),
            trace: Trace::default(),
            mocks: Mocks::default(),
            interceptors: Interceptors::default(),
            schemas: Mutex::default(),
            next_id: AtomicU64::new(1),
        })
    }

    /// True for protocol revisions without sessions and `initialize`.
    pub(super) fn is_stateless(&self) -> bool {
        is_stateless(&self.settings.version)
    }

    fn connection(&self) -> Result<Arc<Connection>, ClientError> {
        let connection = match &*lock(&self.state) {
            ConnectionState::Connected(connection) => connection.clone(),
            ConnectionState::Disconnected(error) => return Err(error.clone()),
        };
        connection.pending.closed().map_or(Ok(connection), |reason| Err(ClientError::Closed(reason)))
    }

    pub(super) fn is_connected(&self) -> bool {
        self.connection().is_ok()
    }

    pub(super) fn session_id(&self) -> Option<String> {
        self.connection().ok()?.transport.session_id()
    }

    /// Connects and performs the handshake.
    pub(super) async fn connect(&self) -> Result<(), ClientError> {
        let connected = self.open().await;
        if let Err(error) = &connected {
            *lock(&self.state) = ConnectionState::Disconnected(error.clone());
        }
        connected
    }

    async fn open(&self) -> Result<(), ClientError> {
        let (sender, incoming) = mpsc::unbounded_channel();
        let token = lock(&self.token).clone();
        let transport = (self.connector)(sender, token).await?;
        let connection = Connection::new(transport, incoming, self.recorder.clone());
        self.handshake(&connection).await?;
        *lock(&self.state) = ConnectionState::Connected(connection);
        Ok(())
    }

    pub(super) async fn authenticate(&self, token: Option<String>) -> Result<(), ClientError> {
        lock(&self.token).clone_from(&token);
        let Ok(connection) = self.connection() else { return self.connect().await };
        if !connection.transport.set_token(token) {
            return Err(ClientError::NoTokens(self.settings.transport));
        }
        let probe = if self.is_stateless() { "server/discover" } else { "ping" };
        let request = self.numbered(probe, json!({}));
        match self.send(&connection, &request, true).await {
            // Sessions are bound to the caller, so another caller needs a new one.
            Err(ClientError::SessionGone { .. }) => self.connect().await,
            Err(error) => Err(error),
            Ok(response) => self.recorder.shapes.answer(&request, &response),
        }
    }

    pub(super) async fn disconnect(&self) {
        const REASON: &str = "disconnected by the test";
        let disconnected = ConnectionState::Disconnected(ClientError::Closed(REASON.into()));
        let state = std::mem::replace(&mut *lock(&self.state), disconnected);
        if let ConnectionState::Connected(connection) = state {
            connection.transport.close().await;
            connection.pending.close(REASON);
        }
    }

    /// A request with the next id.
    pub(super) fn numbered(&self, method: &str, params: Value) -> RpcRequest {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        RpcRequest { id: id.into(), method: method.to_owned(), params }
    }

    pub(super) async fn notify(&self, method: &str, params: Value) -> Result<(), ClientError> {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if !params.is_null() {
            message["params"] = params;
        }
        self.connection()?.transport.send(Outgoing::message(&message)).await
    }

    fn log(&self, level: LogLevel, message: &str) {
        self.recorder.logs.add_own(level, message.to_owned());
    }
}

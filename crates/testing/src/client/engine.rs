//! What a client holds: its connection, what it knows of the server, and what it saw.
//!
//! How a connection begins is in `handshake`, the way of a request in `exchange`, what requests carry from 2026-07-28 in
//! `stateless`.

mod exchange;
mod handshake;
mod stateless;

pub(super) use exchange::result_of;

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
    Connector, Logs, Notifications, Trace,
    connect::Settings,
    handlers::Handlers,
    link::{Link, pump},
    waiting::Waiting,
};
use crate::{
    ClientError,
    intercept::Interceptors,
    lock,
    mock::{Mocks, RpcRequest},
    wire::{Outgoing, http::STATELESS},
};

/// What is known of the server.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) server_info: Value,
    pub(super) version: String,
    pub(super) capabilities: Value,
    pub(super) instructions: Option<String>,
}

enum State {
    Open(Arc<Link>),
    Shut(ClientError),
}

pub(super) struct Core {
    pub(super) settings: Settings,
    connector: Connector,
    token: Mutex<Option<String>>,
    state: Mutex<State>,
    pub(super) facts: Mutex<Facts>,
    pub(super) handlers: Mutex<Handlers>,
    pub(super) timeout: Mutex<Duration>,
    pub(super) logs: Logs,
    pub(super) trace: Trace,
    pub(super) notifications: Notifications,
    pub(super) mocks: Mocks,
    pub(super) interceptors: Interceptors,
    /// Input schemas seen, for `Mcp-Param-*`.
    schemas: Mutex<HashMap<String, Value>>,
    next_id: AtomicU64,
    /// What the server asked.
    pub(super) questions: Mutex<Vec<RpcRequest>>,
    /// What came and was no JSON.
    pub(super) garbage: Mutex<Vec<String>>,
}

impl Core {
    pub(super) fn new(settings: Settings, connector: Connector, token: Option<String>) -> Arc<Self> {
        let not_yet = ClientError::Closed("not connected yet".into());
        Arc::new(Self {
            timeout: Mutex::new(settings.timeout),
            settings,
            connector,
            token: Mutex::new(token),
            state: Mutex::new(State::Shut(not_yet)),
            facts: Mutex::default(),
            handlers: Mutex::default(),
            logs: Logs::default(),
            trace: Trace::default(),
            notifications: Notifications::default(),
            mocks: Mocks::default(),
            interceptors: Interceptors::default(),
            schemas: Mutex::default(),
            next_id: AtomicU64::new(1),
            questions: Mutex::default(),
            garbage: Mutex::default(),
        })
    }

    pub(super) fn stateless(&self) -> bool {
        self.settings.version.as_str() >= STATELESS
    }

    fn link(&self) -> Result<Arc<Link>, ClientError> {
        let link = match &*lock(&self.state) {
            State::Open(link) => link.clone(),
            State::Shut(why) => return Err(why.clone()),
        };
        link.waiting.closed().map_or(Ok(link), |why| Err(ClientError::Closed(why)))
    }

    pub(super) fn is_connected(&self) -> bool {
        self.link().is_ok()
    }

    pub(super) fn session_id(&self) -> Option<String> {
        self.link().ok()?.wire.session_id()
    }

    /// Connects and shakes hands.
    pub(super) async fn connect(self: &Arc<Self>) -> Result<(), ClientError> {
        let connected = self.open().await;
        if let Err(error) = &connected {
            *lock(&self.state) = State::Shut(error.clone());
        }
        connected
    }

    async fn open(self: &Arc<Self>) -> Result<(), ClientError> {
        let (inbox, incoming) = mpsc::unbounded_channel();
        let token = lock(&self.token).clone();
        let wire = (self.connector)(inbox, token).await?;
        let waiting = Arc::new(Waiting::default());
        let pump = tokio::spawn(pump(Arc::downgrade(self), incoming, wire.clone(), waiting.clone()));
        let link = Arc::new(Link { wire, waiting, pump });
        self.greet(&link).await?;
        *lock(&self.state) = State::Open(link);
        Ok(())
    }

    pub(super) async fn authenticate(self: &Arc<Self>, token: Option<String>) -> Result<(), ClientError> {
        lock(&self.token).clone_from(&token);
        let Ok(link) = self.link() else { return self.connect().await };
        if !link.wire.set_token(token) {
            return Err(ClientError::NoTokens(self.settings.transport));
        }
        let probe = if self.stateless() { "server/discover" } else { "ping" };
        match self.over(&link, &self.numbered(probe, json!({})), true).await {
            // Sessions belong to whom they were given to: a new caller gets a new one.
            Err(ClientError::SessionGone { .. }) => self.connect().await,
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    }

    pub(super) async fn disconnect(&self) {
        let shut = State::Shut(ClientError::Closed("disconnected by the test".into()));
        let state = std::mem::replace(&mut *lock(&self.state), shut);
        if let State::Open(link) = state {
            link.wire.close().await;
            link.waiting.close("disconnected by the test");
        }
    }

    pub(super) fn numbered(&self, method: &str, params: Value) -> RpcRequest {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        RpcRequest { id: id.into(), method: method.to_owned(), params }
    }

    pub(super) async fn notify(&self, method: &str, params: Value) -> Result<(), ClientError> {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if !params.is_null() {
            message["params"] = params;
        }
        self.link()?.wire.send(Outgoing::message(&message)).await
    }
}

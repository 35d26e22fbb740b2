//! One connection that several clients share, for servers over standard input and output: one process, one handshake.
//!
//! Ids and progress tokens are replaced by ones that are unique on the connection, and put back in what the server sends. Which
//! message belongs to which client is decided in `routes`.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{Mutex as AsyncMutex, mpsc};

use super::{
    message::{Connector, Incoming, Outgoing, Transport},
    routes::Routes,
};
use crate::{base::lock, protocol::ClientError};

/// A connection that is opened for the first client, and stays open until [`SharedConnection::close`]. After it has ended, the
/// next client opens another one.
pub(crate) struct SharedConnection {
    inner: Connector,
    current: AsyncMutex<Option<Arc<Hub>>>,
    /// From the process that had the connection before.
    before: Handshake,
}

/// What a process has to know of a connection that another one used before.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Handshake {
    /// The result of `initialize`, if there was one.
    result: Option<Value>,
    /// True if the server was told that the client is initialized.
    is_told: bool,
    /// Number of ids given out: each is used once on the connection.
    given: u64,
}

impl Handshake {
    /// True if the server has got a message.
    pub(crate) fn is_begun(&self) -> bool {
        self.given > 0
    }
}

/// An open connection.
struct Hub {
    transport: Arc<dyn Transport>,
    routes: Arc<Mutex<Routes>>,
    /// The result of `initialize`, which a server answers once.
    initialized: AsyncMutex<Option<Value>>,
}

impl SharedConnection {
    #[cfg(feature = "suites")]
    pub(crate) fn new(inner: Connector) -> Arc<Self> {
        Self::continued(inner, Handshake::default())
    }

    /// A connection that another process has used before.
    pub(crate) fn continued(inner: Connector, before: Handshake) -> Arc<Self> {
        Arc::new(Self { inner, current: AsyncMutex::default(), before })
    }

    /// Ends the connection for the clients of this process. Returns what the next one needs, or `None` if the connection has ended
    /// by itself, or its handshake goes on.
    pub(crate) fn end(&self) -> Option<Handshake> {
        let mut current = self.current.try_lock().ok()?;
        let Some(hub) = current.take() else { return Some(self.before.clone()) };
        let result = hub.initialized.try_lock().ok()?.clone();
        let mut routes = lock(&hub.routes);
        let is_open = routes.closed().is_none();
        routes.close("the shared server was given back");
        let (given, is_told) = routes.so_far();
        is_open.then_some(Handshake { result, is_told, given })
    }

    /// Connects clients over the shared connection.
    pub(crate) fn connector(self: &Arc<Self>) -> Connector {
        let shared = self.clone();
        Arc::new(move |sender, _| {
            let shared = shared.clone();
            Box::pin(async move {
                let hub = shared.hub().await?;
                let number = lock(&hub.routes).join(sender);
                Ok(Arc::new(Member { hub, number, is_initialized: AtomicBool::new(false) })
                    as Arc<dyn Transport>)
            })
        })
    }

    /// Returns true while the connection is open.
    #[cfg(feature = "suites")]
    pub(crate) async fn is_open(&self) -> bool {
        self.current.lock().await.as_ref().is_some_and(|hub| lock(&hub.routes).closed().is_none())
    }

    /// Closes the connection for all clients.
    #[cfg(feature = "suites")]
    pub(crate) async fn close(&self) {
        let hub = self.current.lock().await.take();
        if let Some(hub) = hub {
            hub.transport.close().await;
            lock(&hub.routes).close("the shared connection was closed");
        }
    }

    async fn hub(&self) -> Result<Arc<Hub>, ClientError> {
        let mut current = self.current.lock().await;
        if let Some(hub) = current.as_ref().filter(|hub| lock(&hub.routes).closed().is_none()) {
            return Ok(hub.clone());
        }
        let (sender, incoming) = mpsc::unbounded_channel();
        let transport = (self.inner)(sender, None).await?;
        let Handshake { result, is_told, given } = self.before.clone();
        let routes = Arc::new(Mutex::new(Routes::continued(given, is_told)));
        tokio::spawn(pass_on(incoming, routes.clone()));
        let hub = Arc::new(Hub { transport, routes, initialized: AsyncMutex::new(result) });
        *current = Some(hub.clone());
        Ok(hub)
    }
}

async fn pass_on(mut incoming: mpsc::UnboundedReceiver<Incoming>, routes: Arc<Mutex<Routes>>) {
    while let Some(one) = incoming.recv().await {
        lock(&routes).receive(one);
    }
    lock(&routes).close("the connection ended");
}

/// One client of a shared connection.
struct Member {
    hub: Arc<Hub>,
    number: u64,
    is_initialized: AtomicBool,
}

impl Member {
    /// Answers `initialize` from the first answer of the server, or passes the first one on and waits for its answer.
    async fn initialize(&self, message: Value) -> Result<(), ClientError> {
        let mut initialized = self.hub.initialized.lock().await;
        if let Some(result) = &*initialized {
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            lock(&self.hub.routes).deliver(self.number, Incoming::Message(answer));
            return Ok(());
        }
        let (message, answer) = lock(&self.hub.routes).send_watched(self.number, message);
        self.hub.transport.send(Outgoing::message(&message)).await?;
        if let Ok(answer) = answer.await
            && let Some(result) = answer.get("result")
        {
            *initialized = Some(result.clone());
        }
        Ok(())
    }

    async fn cancel_all(hub: &Hub, ids: Vec<Value>) {
        for id in ids {
            let params = json!({"requestId": id, "reason": "the test has ended"});
            let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            let _ = hub.transport.send(Outgoing::message(&cancel)).await;
        }
    }
}

#[async_trait]
impl Transport for Member {
    async fn send(&self, message: Outgoing) -> Result<(), ClientError> {
        if let Some(reason) = lock(&self.hub.routes).closed() {
            return Err(ClientError::Closed(reason));
        }
        let parsed = serde_json::from_str::<Value>(&message.text).unwrap_or_default();
        let Some(method) = &message.method else {
            // A response, or text that is sent as the test wrote it.
            lock(&self.hub.routes).send_as_it_is(self.number, &parsed);
            return self.hub.transport.send(message).await;
        };
        match method.as_str() {
            "initialize" if !self.is_initialized.swap(true, Ordering::Relaxed) => {
                self.initialize(parsed).await
            }
            "notifications/initialized" if !lock(&self.hub.routes).is_first_notice() => Ok(()),
            _ => {
                let message = lock(&self.hub.routes).send(self.number, parsed);
                self.hub.transport.send(Outgoing::message(&message)).await
            }
        }
    }

    fn set_token(&self, token: Option<String>) -> bool {
        self.hub.transport.set_token(token)
    }

    async fn close(&self) {
        let open = lock(&self.hub.routes).leave(self.number);
        Self::cancel_all(&self.hub, open).await;
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let open = lock(&self.hub.routes).leave(self.number);
        if let (false, Ok(runtime)) = (open.is_empty(), tokio::runtime::Handle::try_current()) {
            let hub = self.hub.clone();
            runtime.spawn(async move { Self::cancel_all(&hub, open).await });
        }
    }
}

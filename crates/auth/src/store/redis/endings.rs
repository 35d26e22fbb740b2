//! Endings told from instance to instance: one channel of Redis, `{prefix}endings`, that every instance listens to.
//!
//! A message says no more than that something ended; who remembers anything looks it up again. Plain publish and subscribe serve all
//! layouts: a cluster passes messages on to all its nodes, and a replica to those who listen there. What is told while nobody listens is lost,
//! so each new subscription counts as a message.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::StreamExt as _;
use redis::{ErrorKind, RedisError, Value};
use tokio::{runtime::Handle, task::AbortHandle, time::timeout};

use super::{
    connection::{ANSWER, CONNECT, Connection, FIND_MASTER, is_refused, subscribe},
    endpoint::RedisEndpoint,
};

/// Silence after which the connection is asked whether it still lives.
const SILENCE: Duration = Duration::from_secs(10);
/// Until a lost connection is made again, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// Until a user who may not listen tries again: the permission may have been given since.
const REFUSED: Duration = Duration::from_secs(60);

/// Hears of endings from its first question on, and tells them.
pub(super) struct Endings {
    shared: Arc<Shared>,
    listener: OnceLock<Listener>,
    runtime: Handle,
}

struct Shared {
    endpoint: RedisEndpoint,
    channel: String,
    /// Endings heard of or told, and subscriptions made.
    count: AtomicU64,
    has_warned: AtomicBool,
}

/// The listening task; it ends with the store.
struct Listener(AbortHandle);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Endings {
    /// For the store at `endpoint`. Call it where the runtime is that is to do the listening.
    pub(super) fn new(endpoint: &RedisEndpoint) -> Self {
        let shared = Shared {
            endpoint: endpoint.clone(),
            channel: format!("{}endings", endpoint.key_prefix),
            count: AtomicU64::new(0),
            has_warned: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared), listener: OnceLock::new(), runtime: Handle::current() }
    }

    pub(super) fn count(&self) -> u64 {
        self.listener.get_or_init(|| {
            let task = self.runtime.spawn(listen(self.shared.clone()));
            Listener(task.abort_handle())
        });
        self.shared.count.load(Ordering::Acquire)
    }

    pub(super) async fn announce(&self, mut connection: Connection) {
        self.shared.add();
        let mut command = redis::cmd("PUBLISH");
        command.arg(&self.shared.channel).arg("");
        let mut outcome = command.query_async::<()>(&mut connection).await;
        if outcome.as_ref().is_err_and(|error| !is_refused(error)) {
            outcome = command.query_async::<()>(&mut connection).await;
        }
        match outcome {
            Err(error) if is_refused(&error) => self.shared.warn("publish on"),
            Err(error) => {
                tracing::warn!(%error, "other instances could not be told of an ending; they look again within 5 seconds");
            }
            Ok(()) => {}
        }
    }
}

impl Shared {
    fn add(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Says once what to grant.
    fn warn(&self, what: &str) {
        if self.has_warned.swap(true, Ordering::AcqRel) {
            return;
        }
        let user = self.endpoint.username.as_deref().unwrap_or("default");
        let channel = &self.channel;
        tracing::warn!(
            "the Redis user `{user}` may not {what} the channel `{channel}`: what is revoked at one instance passes at others for up to 5 \
             seconds more; to end it at once: ACL SETUSER {user} &{channel} +subscribe +publish"
        );
    }

    /// Listens until the connection ends.
    async fn hear(&self) -> Result<(), RedisError> {
        let mut connection = timeout(CONNECT + FIND_MASTER, subscribe(&self.endpoint, &self.channel))
            .await
            .map_err(|_| RedisError::from((ErrorKind::Io, "no subscription in time")))??;
        // What was told until now may have been missed.
        self.add();
        loop {
            let next = timeout(SILENCE, async { connection.on_message().next().await }).await;
            match next {
                Ok(Some(_)) => self.add(),
                Ok(None) => return Ok(()),
                Err(_) => match timeout(ANSWER, connection.ping::<Value>()).await {
                    Ok(Ok(_)) => {}
                    // It answered.
                    Ok(Err(error)) if is_refused(&error) => {}
                    _ => return Ok(()),
                },
            }
        }
    }
}

async fn listen(shared: Arc<Shared>) {
    let mut pause = PAUSE.0;
    loop {
        match shared.hear().await {
            Ok(()) => pause = PAUSE.0,
            Err(error) if is_refused(&error) => {
                shared.warn("subscribe to");
                pause = REFUSED;
            }
            Err(error) => {
                tracing::debug!(%error, "not listening for endings at other instances");
                pause = (pause * 2).min(PAUSE.1);
            }
        }
        tokio::time::sleep(pause).await;
    }
}

//! Announcement of revocations between instances: one Redis channel, `{prefix}endings`, to which every instance subscribes.
//!
//! A message has no content: an instance that receives one checks its cached tokens again. Publish and subscribe work in all layouts: a
//! cluster passes messages on to all nodes, and a replica to its subscribers. Messages sent while an instance is not subscribed are lost, so
//! each new subscription counts as a message.

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

/// Silence after which the connection is probed.
const SILENCE: Duration = Duration::from_secs(10);
/// Pause before a lost connection is opened again, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// Pause before a user without permission to subscribe tries again: the permission may have been granted since.
const REFUSED: Duration = Duration::from_secs(60);

/// Announces revocations, and receives those of other instances from the first call of `count` on.
pub(super) struct RevocationFeed {
    subscription: Arc<Subscription>,
    listener: OnceLock<Listener>,
    runtime: Handle,
}

struct Subscription {
    endpoint: RedisEndpoint,
    channel: String,
    /// Revocations that were received or announced, and subscriptions that were made.
    count: AtomicU64,
    has_warned: AtomicBool,
}

/// The subscribed task. It ends with the store.
struct Listener(AbortHandle);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl RevocationFeed {
    /// The feed of the store at `endpoint`. Call it on the runtime that is to run the subscription.
    pub(super) fn new(endpoint: &RedisEndpoint) -> Self {
        let subscription = Subscription {
            endpoint: endpoint.clone(),
            channel: format!("{}endings", endpoint.key_prefix),
            count: AtomicU64::new(0),
            has_warned: AtomicBool::new(false),
        };
        Self { subscription: Arc::new(subscription), listener: OnceLock::new(), runtime: Handle::current() }
    }

    pub(super) fn count(&self) -> u64 {
        self.listener.get_or_init(|| {
            let task = self.runtime.spawn(listen(self.subscription.clone()));
            Listener(task.abort_handle())
        });
        self.subscription.count.load(Ordering::Acquire)
    }

    pub(super) async fn announce(&self, mut connection: Connection) {
        self.subscription.add();
        let mut command = redis::cmd("PUBLISH");
        command.arg(&self.subscription.channel).arg("");
        let mut outcome = command.query_async::<()>(&mut connection).await;
        if outcome.as_ref().is_err_and(|error| !is_refused(error)) {
            outcome = command.query_async::<()>(&mut connection).await;
        }
        match outcome {
            Err(error) if is_refused(&error) => self.subscription.warn("publish on"),
            Err(error) => {
                tracing::warn!(%error, "other instances could not be told of an ending; they look again within 5 seconds");
            }
            Ok(()) => {}
        }
    }
}

impl Subscription {
    fn add(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Logs once which permission to grant.
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

    /// Receives messages until the connection ends.
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

async fn listen(subscription: Arc<Subscription>) {
    let mut pause = PAUSE.0;
    loop {
        match subscription.hear().await {
            Ok(()) => pause = PAUSE.0,
            Err(error) if is_refused(&error) => {
                subscription.warn("subscribe to");
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

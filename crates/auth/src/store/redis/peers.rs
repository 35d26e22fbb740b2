//! Messages between instances over publish and subscribe: each instance subscribes to its own channel, `{prefix}instance:{id}`.
//!
//! Messages are not stored: one that no instance receives is lost, and none is delivered twice. On a single server the number of subscribers
//! that `PUBLISH` returns shows whether the instance is alive. With replicas that number excludes subscribers elsewhere, so instances there
//! also keep a key with the name of the channel for as long as they run.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::{Stream, StreamExt as _};
use redis::{ErrorKind, RedisError, Value};
use tokio::{
    runtime::Handle,
    sync::mpsc,
    task::AbortHandle,
    time::{Instant, timeout},
};

use super::{
    connection::{ANSWER, CONNECT, Connection, FIND_MASTER, is_refused, subscribe},
    endpoint::{RedisEndpoint, RedisLayout},
};
use crate::store::StoreError;

/// Silence after which the connection is probed.
const SILENCE: Duration = Duration::from_secs(5);
/// Pause before a lost connection is opened again, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));
/// Pause before a user without permission to subscribe tries again.
const REFUSED: Duration = Duration::from_secs(10);
/// Time for which an instance without a subscription is tried: it may be about to subscribe again.
const PATIENCE: Duration = Duration::from_secs(1);
/// Lifetime of the key of a running instance, and the interval of its renewal.
const PRESENT: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(1));
/// Time for which an instance counts as alive after its key was seen.
const SEEN: Duration = Duration::from_secs(1);
/// Received messages that wait to be read.
const ROOM: usize = 256;

/// Carries messages between instances.
pub struct RedisPeers {
    connection: Connection,
    endpoint: RedisEndpoint,
    /// Instances whose key was seen, with the time.
    seen: Mutex<HashMap<String, Instant>>,
}

/// A message that was not sent.
#[derive(Debug, thiserror::Error)]
#[error("redis did not take a message to another instance")]
pub struct SendError {
    /// It may have been sent all the same.
    pub perhaps: bool,
    #[source]
    source: RedisError,
}

/// An event of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerEvent {
    /// The subscription is active. Earlier messages may be lost.
    Listening,
    /// A message.
    Message(Vec<u8>),
    /// The connection is lost.
    Lost,
}

impl std::fmt::Debug for RedisPeers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisPeers").field("prefix", &self.endpoint.key_prefix).finish_non_exhaustive()
    }
}

impl From<RedisError> for SendError {
    fn from(source: RedisError) -> Self {
        let refused = source.is_connection_refusal() || matches!(source.kind(), ErrorKind::Server(_));
        Self { perhaps: !refused, source }
    }
}

impl RedisPeers {
    /// Connects, separately from the token store. A connection that is lost later is opened again in the background.
    ///
    /// # Errors
    /// No server can be reached, or it refuses the credentials.
    pub async fn connect(endpoint: &RedisEndpoint) -> Result<Self, StoreError> {
        let connection = Connection::open(endpoint).await;
        let connection = connection.map_err(|error| StoreError::Unavailable(error.into()))?;
        Ok(Self { connection, endpoint: endpoint.clone(), seen: Mutex::default() })
    }

    fn channel(&self, instance: &str) -> String {
        format!("{}instance:{instance}", self.endpoint.key_prefix)
    }

    fn is_single(&self) -> bool {
        matches!(self.endpoint.layout, RedisLayout::Single)
    }

    /// Sends a message. Returns `false` when the instance is not running; no instance received it then.
    ///
    /// # Errors
    /// Redis cannot be reached, does not answer in time, or refuses.
    pub async fn send(&self, instance: &str, message: &[u8]) -> Result<bool, SendError> {
        let channel = self.channel(instance);
        let began = Instant::now();
        let mut pause = PAUSE.0;
        loop {
            if self.is_single() {
                if self.publish(&channel, message).await? > 0 {
                    return Ok(true);
                }
            } else if self.is_present(&channel).await? {
                self.publish(&channel, message).await?;
                return Ok(true);
            }
            if began.elapsed() > PATIENCE {
                return Ok(false);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    async fn publish(&self, channel: &str, message: &[u8]) -> Result<u64, RedisError> {
        let mut connection = self.connection.clone();
        redis::cmd("PUBLISH").arg(channel).arg(message).query_async(&mut connection).await
    }

    async fn is_present(&self, channel: &str) -> Result<bool, SendError> {
        let seen = || self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen().get(channel).is_some_and(|at| at.elapsed() < SEEN) {
            return Ok(true);
        }
        let mut connection = self.connection.clone();
        // A command that the token store uses as well, so that its user may run it.
        let found = redis::cmd("MGET").arg(channel).query_async(&mut connection).await;
        // Nothing was published yet.
        let found: Vec<Option<Vec<u8>>> = found.map_err(|source| SendError { perhaps: false, source })?;
        let is_present = found.iter().any(Option::is_some);
        let mut seen = seen();
        seen.retain(|_, at| at.elapsed() < SEEN);
        if is_present {
            seen.insert(channel.to_owned(), Instant::now());
        }
        Ok(is_present)
    }

    /// Subscribes to messages to the instance `own` until the stream is dropped. Call it on the runtime that is to run the subscription.
    pub fn listen(&self, own: &str) -> impl Stream<Item = PeerEvent> + Send + use<> {
        let (tell, heard) = mpsc::channel(ROOM);
        let ear = Ear {
            endpoint: self.endpoint.clone(),
            channel: self.channel(own),
            presence: (!self.is_single()).then(|| self.connection.clone()),
            tell,
        };
        let leaving = ear.presence.clone().map(|connection| (connection, ear.channel.clone()));
        let listener = Listener { task: tokio::spawn(ear.listen()).abort_handle(), leaving };
        futures::stream::unfold((heard, listener), |(mut heard, listener)| async move {
            Some((heard.recv().await?, (heard, listener)))
        })
    }
}

/// The subscribed task. It ends with the stream.
struct Listener {
    task: AbortHandle,
    leaving: Option<(Connection, String)>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
        if let (Some((mut connection, channel)), Ok(runtime)) = (self.leaving.take(), Handle::try_current()) {
            runtime.spawn(async move {
                let _: Result<(), _> = redis::cmd("DEL").arg(channel).query_async(&mut connection).await;
            });
        }
    }
}

struct Ear {
    endpoint: RedisEndpoint,
    channel: String,
    /// Connection that refreshes the key of this instance; `None` where listeners are counted.
    presence: Option<Connection>,
    tell: mpsc::Sender<PeerEvent>,
}

impl Ear {
    async fn listen(self) {
        let (mut pause, mut has_warned) = (PAUSE.0, false);
        loop {
            match self.hear().await {
                Ok(()) => pause = PAUSE.0,
                Err(error) if is_refused(&error) => {
                    if !std::mem::replace(&mut has_warned, true) {
                        self.warn();
                    }
                    pause = REFUSED;
                }
                Err(error) => {
                    tracing::debug!(%error, "not listening for other instances");
                    pause = (pause * 2).min(PAUSE.1);
                }
            }
            if self.tell.send(PeerEvent::Lost).await.is_err() {
                return;
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Logs once which permission to grant.
    fn warn(&self) {
        let user = self.endpoint.username.as_deref().unwrap_or("default");
        let prefix = &self.endpoint.key_prefix;
        tracing::warn!(
            "the Redis user `{user}` may not subscribe to the channel `{}`: sessions of other instances cannot be served; grant it with: \
             ACL SETUSER {user} &{prefix}instance:* +subscribe +publish",
            self.channel
        );
    }

    /// Receives messages until the connection ends.
    async fn hear(&self) -> Result<(), RedisError> {
        let mut connection = timeout(CONNECT + FIND_MASTER, subscribe(&self.endpoint, &self.channel))
            .await
            .map_err(|_| RedisError::from((ErrorKind::Io, "no subscription in time")))??;
        self.say_present().await;
        if self.tell.send(PeerEvent::Listening).await.is_err() {
            return Ok(());
        }
        let messages = async {
            loop {
                let next = timeout(SILENCE, async { connection.on_message().next().await }).await;
                match next {
                    Ok(Some(message)) => {
                        let message = PeerEvent::Message(message.get_payload_bytes().to_vec());
                        if self.tell.send(message).await.is_err() {
                            return;
                        }
                    }
                    Ok(None) => return,
                    Err(_) => match timeout(ANSWER, connection.ping::<Value>()).await {
                        Ok(Ok(_)) => {}
                        // It answered.
                        Ok(Err(error)) if is_refused(&error) => {}
                        _ => return,
                    },
                }
            }
        };
        tokio::select! {
            () = messages => Ok(()),
            () = self.stay_present() => Ok(()),
        }
    }

    async fn stay_present(&self) {
        if self.presence.is_none() {
            std::future::pending::<()>().await;
        }
        loop {
            tokio::time::sleep(PRESENT.1).await;
            self.say_present().await;
        }
    }

    async fn say_present(&self) {
        let Some(mut connection) = self.presence.clone() else { return };
        let mut command = redis::cmd("SET");
        command.arg(&self.channel).arg("").arg("PX").arg(super::millis(PRESENT.0));
        if let Err(error) = command.query_async::<()>(&mut connection).await {
            tracing::debug!(%error, "other instances could not be told that this one lives");
        }
    }
}

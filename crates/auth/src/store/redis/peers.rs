//! Messages between instances over publish and subscribe: each instance listens on a channel of its own, `{prefix}instance:{id}`.
//!
//! Nothing is stored: a message that nobody hears is gone, and none is delivered twice. On a single server the number of listeners that
//! `PUBLISH` returns tells whether the instance lives. With replicas it does not count those who listen elsewhere, so instances there also
//! keep a key of the channel's name for as long as they live.

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

/// Silence after which the connection is asked whether it still lives.
const SILENCE: Duration = Duration::from_secs(5);
/// Until a lost connection is made again, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));
/// Until a user who may not listen tries again.
const REFUSED: Duration = Duration::from_secs(10);
/// How long an instance that nobody hears is tried: it may be about to listen again.
const PATIENCE: Duration = Duration::from_secs(1);
/// Life of the key that says that an instance lives, and the time between two refreshments.
const PRESENT: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(1));
/// How long an instance counts as living once its key was seen.
const SEEN: Duration = Duration::from_secs(1);
/// Messages that were heard and not taken yet.
const ROOM: usize = 256;

/// Carries messages between instances.
pub struct RedisPeers {
    connection: Connection,
    endpoint: RedisEndpoint,
    /// Instances whose key was seen, and when.
    seen: Mutex<HashMap<String, Instant>>,
}

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
#[error("redis did not take a message to another instance")]
pub struct NotSent {
    /// Whether it may have been sent all the same.
    pub perhaps: bool,
    #[source]
    source: RedisError,
}

/// What a listening instance hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// From now on messages are heard; earlier ones may be lost.
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

impl From<RedisError> for NotSent {
    fn from(source: RedisError) -> Self {
        let refused = source.is_connection_refusal() || matches!(source.kind(), ErrorKind::Server(_));
        Self { perhaps: !refused, source }
    }
}

impl RedisPeers {
    /// Connects, apart from the token store's connection. A connection that is lost later is made again in the background.
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

    /// Sends a message; false when the instance does not live, and then nobody got it.
    ///
    /// # Errors
    /// Redis cannot be reached, does not answer in time, or refuses.
    pub async fn send(&self, instance: &str, message: &[u8]) -> Result<bool, NotSent> {
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

    async fn is_present(&self, channel: &str) -> Result<bool, NotSent> {
        let seen = || self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen().get(channel).is_some_and(|at| at.elapsed() < SEEN) {
            return Ok(true);
        }
        let mut connection = self.connection.clone();
        // A command that the token store uses as well, so that its user may run it.
        let found = redis::cmd("MGET").arg(channel).query_async(&mut connection).await;
        // Nothing was published yet.
        let found: Vec<Option<Vec<u8>>> = found.map_err(|source| NotSent { perhaps: false, source })?;
        let is_present = found.iter().any(Option::is_some);
        let mut seen = seen();
        seen.retain(|_, at| at.elapsed() < SEEN);
        if is_present {
            seen.insert(channel.to_owned(), Instant::now());
        }
        Ok(is_present)
    }

    /// Listens for messages to the instance `own` until the stream is dropped. Call it where the runtime is that is to do the listening.
    pub fn listen(&self, own: &str) -> impl Stream<Item = Heard> + Send + use<> {
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

/// The listening task; it ends with the stream.
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
    /// Where the key is kept that says that this instance lives; none where listeners are counted.
    presence: Option<Connection>,
    tell: mpsc::Sender<Heard>,
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
            if self.tell.send(Heard::Lost).await.is_err() {
                return;
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Says once what to grant.
    fn warn(&self) {
        let user = self.endpoint.username.as_deref().unwrap_or("default");
        let prefix = &self.endpoint.key_prefix;
        tracing::warn!(
            "the Redis user `{user}` may not subscribe to the channel `{}`: sessions of other instances cannot be served; grant it with: \
             ACL SETUSER {user} &{prefix}instance:* +subscribe +publish",
            self.channel
        );
    }

    /// Listens until the connection ends.
    async fn hear(&self) -> Result<(), RedisError> {
        let mut connection = timeout(CONNECT + FIND_MASTER, subscribe(&self.endpoint, &self.channel))
            .await
            .map_err(|_| RedisError::from((ErrorKind::Io, "no subscription in time")))??;
        self.say_present().await;
        if self.tell.send(Heard::Listening).await.is_err() {
            return Ok(());
        }
        let messages = async {
            loop {
                let next = timeout(SILENCE, async { connection.on_message().next().await }).await;
                match next {
                    Ok(Some(message)) => {
                        let message = Heard::Message(message.get_payload_bytes().to_vec());
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

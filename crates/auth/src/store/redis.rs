//! The store shared by all instances: Redis or a server that speaks its protocol.
//!
//! Every step is one Lua script or one command. All keys of a script begin with the prefix; on a cluster the prefix must contain a
//! hash tag (`{gw}:`) so that they share a slot. Servers are found in `connection`. If the answer to a step is lost, the step may have run: the
//! caller then gets "unavailable" or a use, never a second success.

mod connection;
mod endpoint;
mod peers;
mod revocations;

use std::time::Duration;

use async_trait::async_trait;
use redis::{RedisError, Script};

pub(crate) use self::endpoint::has_hash_tag;
pub use self::endpoint::{RedisEndpoint, RedisLayout};
pub use self::peers::{PeerEvent, RedisPeers, SendError};
use self::{connection::Connection, revocations::RevocationFeed as Channel};
use super::{
    CODE_TOMBSTONE, CodeStore, Counters, Digest, Exchange, Exchanged, FamilyId, Hit, Key, Listing, Records,
    Redeemed, RefreshTokenStore, RevocationFeed, Rotated, Rotation, StoreError,
    atomic::{NO_TOKEN, ms},
};

/// A store in Redis.
#[derive(Clone)]
pub struct RedisStore {
    connection: Connection,
    prefix: std::sync::Arc<str>,
    scripts: std::sync::Arc<Scripts>,
    endings: std::sync::Arc<Channel>,
}

struct Scripts {
    exchange: Script,
    rotate: Script,
    hit: Script,
    replace: Script,
    list: Script,
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl RedisStore {
    /// Connects. A connection that is lost later is opened again in the background.
    ///
    /// # Errors
    /// No server can be reached, it refuses the credentials, or it does not use TLS although it must.
    pub async fn connect(endpoint: &RedisEndpoint) -> Result<Self, StoreError> {
        let connection = Connection::open(endpoint).await.map_err(unavailable)?;
        let scripts = Scripts {
            exchange: Script::new(include_str!("lua/exchange.lua")),
            rotate: Script::new(include_str!("lua/rotate.lua")),
            hit: Script::new(include_str!("lua/hit.lua")),
            replace: Script::new(include_str!("lua/replace.lua")),
            list: Script::new(include_str!("lua/list.lua")),
        };
        let endings = Channel::new(endpoint).into();
        Ok(Self { connection, prefix: endpoint.key_prefix.as_str().into(), scripts: scripts.into(), endings })
    }

    fn name(&self, key: &Key) -> String {
        format!("{}{}", self.prefix, key.as_str())
    }
}

fn unavailable(error: RedisError) -> StoreError {
    StoreError::Unavailable(error.into())
}

fn millis(ttl: Duration) -> u64 {
    ms(ttl).max(1)
}

#[async_trait]
impl Records for RedisStore {
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let mut connection = self.connection.clone();
        let mut command = redis::cmd("MGET");
        for key in keys {
            command.arg(self.name(key));
        }
        command.query_async(&mut connection).await.map_err(unavailable)
    }

    async fn put(&self, key: &Key, value: &[u8], ttl: Duration) -> Result<(), StoreError> {
        let mut connection = self.connection.clone();
        let mut command = redis::cmd("SET");
        command.arg(self.name(key)).arg(value).arg("PX").arg(millis(ttl));
        command.query_async(&mut connection).await.map_err(unavailable)
    }

    async fn put_many(&self, records: &[(Key, &[u8], Duration)]) -> Result<(), StoreError> {
        // One connection sends them together.
        let all = records.iter().map(|(key, value, ttl)| self.put(key, value, *ttl));
        futures::future::try_join_all(all).await.map(drop)
    }

    async fn put_new(&self, key: &Key, value: &[u8], ttl: Duration) -> Result<bool, StoreError> {
        let mut connection = self.connection.clone();
        let mut command = redis::cmd("SET");
        command.arg(self.name(key)).arg(value).arg("PX").arg(millis(ttl)).arg("NX");
        let answer: Option<String> = command.query_async(&mut connection).await.map_err(unavailable)?;
        Ok(answer.is_some())
    }

    async fn replace(
        &self,
        key: &Key,
        expected: &[u8],
        value: &[u8],
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        let mut connection = self.connection.clone();
        let mut call = self.scripts.replace.key(self.name(key));
        call.arg(expected).arg(value).arg(millis(ttl));
        call.invoke_async(&mut connection).await.map_err(unavailable)
    }

    async fn take(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        let mut connection = self.connection.clone();
        redis::cmd("GETDEL").arg(self.name(key)).query_async(&mut connection).await.map_err(unavailable)
    }

    async fn time_ms(&self) -> Result<Option<u64>, StoreError> {
        let mut connection = self.connection.clone();
        let answer = redis::cmd("TIME").query_async(&mut connection).await;
        let (seconds, micros): (u64, u64) = answer.map_err(unavailable)?;
        Ok(Some(seconds * 1000 + micros / 1000))
    }

    async fn remove_many(&self, keys: &[Key]) -> Result<(), StoreError> {
        let mut connection = self.connection.clone();
        let mut command = redis::cmd("DEL");
        for key in keys {
            command.arg(self.name(key));
        }
        command.query_async(&mut connection).await.map_err(unavailable)
    }
}

#[async_trait]
impl Listing for RedisStore {
    async fn list(&self, kind: &'static str, most: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut connection = self.connection.clone();
        let pattern = format!("{}{kind}:*", escape_pattern(&self.prefix));
        let (mut cursor, mut values) = (b"0".to_vec(), Vec::new());
        loop {
            let mut call = self.scripts.list.key(format!("{}{kind}:", self.prefix));
            call.arg(&cursor).arg(&pattern);
            let page: Vec<Vec<u8>> = call.invoke_async(&mut connection).await.map_err(unavailable)?;
            let mut page = page.into_iter();
            cursor = page.next().ok_or(StoreError::Corrupt)?;
            values.extend(page);
            if cursor == b"0" || values.len() >= most {
                values.truncate(most);
                return Ok(values);
            }
        }
    }
}

/// Escapes `text` as a pattern that matches only itself.
fn escape_pattern(text: &str) -> String {
    let special = |c: char| "*?[]\\^".contains(c);
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

#[async_trait]
impl Counters for RedisStore {
    async fn hit(&self, key: &Key, window: Duration) -> Result<Hit, StoreError> {
        let mut connection = self.connection.clone();
        let mut call = self.scripts.hit.key(self.name(key));
        call.arg(millis(window));
        let (count, left): (u64, u64) = call.invoke_async(&mut connection).await.map_err(unavailable)?;
        Ok(Hit { count, resets_in: Duration::from_millis(left) })
    }
}

#[async_trait]
impl CodeStore for RedisStore {
    async fn redeem(
        &self,
        code: &Digest,
        family: &FamilyId,
        refresh: &Digest,
    ) -> Result<Redeemed, StoreError> {
        let exchange = Exchange { counts: &[], window: Duration::ZERO, code, family, refresh };
        match self.exchange(exchange).await? {
            Exchanged::Redeemed { code, .. } => Ok(code),
            Exchanged::Limited(_) => Err(StoreError::Corrupt),
        }
    }

    async fn exchange(&self, exchange: Exchange<'_>) -> Result<Exchanged, StoreError> {
        let Exchange { counts, window, code, family, refresh } = exchange;
        let mut connection = self.connection.clone();
        let mut call = self.scripts.exchange.key(self.name(&Key::code(code)));
        call.key(self.name(&Key::family(family))).key(self.name(&Key::refresh(refresh)));
        call.arg(ms(CODE_TOMBSTONE)).arg(family.as_str()).arg(refresh.as_str()).arg(NO_TOKEN);
        call.arg(&*self.prefix).arg(millis(window));
        for (key, most) in counts {
            call.key(self.name(key)).arg(*most);
        }
        let answer: Vec<Vec<u8>> = call.invoke_async(&mut connection).await.map_err(unavailable)?;
        let mut answer = answer.into_iter();
        let (word, second) = (answer.next().unwrap_or_default(), answer.next());
        let code = match (word.as_slice(), second) {
            (b"limited", Some(left)) => {
                let left = std::str::from_utf8(&left).ok().and_then(|left| left.parse().ok());
                return Ok(Exchanged::Limited(Duration::from_millis(left.ok_or(StoreError::Corrupt)?)));
            }
            (b"fresh", Some(grant)) => Redeemed::Fresh(grant),
            (b"replayed", _) => Redeemed::Replayed,
            (b"unknown", _) => Redeemed::Unknown,
            _ => return Err(StoreError::Corrupt),
        };
        Ok(Exchanged::Redeemed { code, revocations: Some(answer.collect()) })
    }
}

#[async_trait]
impl RefreshTokenStore for RedisStore {
    async fn rotate(&self, rotation: Rotation<'_>) -> Result<Rotated, StoreError> {
        let mut connection = self.connection.clone();
        let mut call = self.scripts.rotate.key(self.name(&Key::refresh(rotation.old)));
        call.key(self.name(&Key::family(rotation.family))).key(self.name(&Key::refresh(rotation.new)));
        call.arg(rotation.old.as_str()).arg(rotation.new.as_str()).arg(rotation.sealed);
        call.arg(millis(rotation.ttl)).arg(rotation.now_ms).arg(ms(rotation.grace));
        let mut answer: Vec<Vec<u8>> = call.invoke_async(&mut connection).await.map_err(unavailable)?;
        let body = (answer.len() > 1).then(|| answer.pop()).flatten();
        match (answer.first().map(Vec::as_slice), body) {
            (Some(b"fresh"), _) => Ok(Rotated::Fresh),
            (Some(b"retried"), Some(sealed)) => Ok(Rotated::Retried(sealed)),
            (Some(b"replayed"), _) => Ok(Rotated::Replayed),
            (Some(b"unknown"), _) => Ok(Rotated::Unknown),
            _ => Err(StoreError::Corrupt),
        }
    }
}

#[async_trait]
impl RevocationFeed for RedisStore {
    async fn announce(&self) {
        self.endings.announce(self.connection.clone()).await;
    }

    fn revision(&self) -> u64 {
        self.endings.count()
    }
}

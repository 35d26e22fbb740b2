//! Stores of authorizations, codes, tokens, sessions and vaults.
//!
//! [`MemoryStore`], [`SqliteStore`] and [`RedisStore`] behave alike. Keys are made in [`Key`]; secrets reach a store
//! only as SHA-256 digests, so a dump of it leaks no token.

mod atomic;
mod key;
mod memory;
mod passkeys;
mod redis;
mod shared;
mod sqlite;

use std::time::Duration;

use async_trait::async_trait;

pub(crate) use self::redis::has_hash_tag;
pub use self::{
    key::{Digest, FamilyId, Key},
    memory::MemoryStore,
    passkeys::{AddPasskey, Passkey, PasskeySet, PasskeyStore, PasskeyUse},
    redis::{PeerEvent, RedisEndpoint, RedisLayout, RedisPeers, RedisStore, SendError},
    shared::StoreRecords,
    sqlite::SqliteStore,
};

/// Time for which a redeemed code is remembered, so that a replay ends its family.
pub const CODE_TOMBSTONE: Duration = Duration::from_secs(600);

/// A failure of a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be reached, or answered with an error.
    #[error("the token store is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The in-memory store has its greatest number of records.
    #[error("the token store is full")]
    Full,
    /// A record is not in the form this version writes.
    #[error("a stored record cannot be read")]
    Corrupt,
}

/// Named records with a lifetime.
#[async_trait]
pub trait Records: Send + Sync {
    /// Returns the values of `keys`, in their order, in one round trip.
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, StoreError>;

    /// The value of `key`.
    async fn get(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.get_many(std::slice::from_ref(key)).await?.pop().flatten())
    }

    /// Writes each value, which expires after its time. If it fails, some may have been written.
    async fn put_many(&self, records: &[(Key, &[u8], Duration)]) -> Result<(), StoreError> {
        for (key, value, ttl) in records {
            self.put(key, value, *ttl).await?;
        }
        Ok(())
    }

    /// Writes `value`, which expires after `ttl`.
    async fn put(&self, key: &Key, value: &[u8], ttl: Duration) -> Result<(), StoreError>;

    /// Atomic: writes `value` when `key` does not exist. Of two concurrent calls exactly one returns `true`.
    async fn put_new(&self, key: &Key, value: &[u8], ttl: Duration) -> Result<bool, StoreError>;

    /// Atomic: writes `value` when `key` has the value `expected`.
    async fn replace(
        &self,
        key: &Key,
        expected: &[u8],
        value: &[u8],
        ttl: Duration,
    ) -> Result<bool, StoreError>;

    /// Atomic: removes `key` and returns its value. Of two concurrent calls at most one gets the value.
    async fn take(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError>;

    /// Time of the store's server, in milliseconds since 1970-01-01 UTC; `None` if it is that of this machine.
    async fn time_ms(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// Removes `keys`, in one round trip.
    async fn remove_many(&self, keys: &[Key]) -> Result<(), StoreError>;

    /// Removes `key`.
    async fn remove(&self, key: &Key) -> Result<(), StoreError> {
        self.remove_many(std::slice::from_ref(key)).await
    }
}

/// Lists of records, for operators.
#[async_trait]
pub trait Listing: Send + Sync {
    /// Returns the values of at most `most` records whose names begin with `kind` and a colon, in no order. Reads all records.
    async fn list(&self, kind: &'static str, most: usize) -> Result<Vec<Vec<u8>>, StoreError>;
}

/// State of a counter after a use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// Uses in the current window, this one included.
    pub count: u64,
    /// Time until the window ends.
    pub resets_in: Duration,
}

/// Counters shared by all instances.
#[async_trait]
pub trait Counters: Send + Sync {
    /// Atomic: counts one use of `key`. The window begins with its first use and lasts `window`.
    async fn hit(&self, key: &Key, window: Duration) -> Result<Hit, StoreError>;
}

/// Outcome of the redemption of a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redeemed {
    /// First use: the record given to [`CodeStore::put_code`]. Its token family now lives.
    Fresh(Vec<u8>),
    /// Used before: its token family has been ended.
    Replayed,
    /// Never issued, or expired.
    Unknown,
}

/// Lifetimes of a code and its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLife {
    /// The code itself.
    pub code: Duration,
    /// The token family that it starts.
    pub family: Duration,
    /// Its first refresh token; `None` when the grant has no refresh token.
    pub refresh: Option<Duration>,
}

/// A code to redeem, with the rate limits to check first.
#[derive(Debug, Clone)]
pub struct Exchange<'a> {
    /// Counters to count first, each with its limit within `window`.
    pub counts: &'a [(Key, u64)],
    /// See [`Counters::hit`].
    pub window: Duration,
    /// The code presented.
    pub code: &'a Digest,
    /// The family that it starts.
    pub family: &'a FamilyId,
    /// The family's first refresh token.
    pub refresh: &'a Digest,
}

/// Outcome of an [`Exchange`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exchanged {
    /// A counter is above its limit; the code was not touched. Holds the time until the counter's window ends.
    Limited(Duration),
    /// The code was redeemed or refused.
    Redeemed {
        /// Outcome of the redemption.
        code: Redeemed,
        /// Values of the existing records among those named with [`CodeStore::put_code`], when the store read them in the same step.
        revocations: Option<Vec<Vec<u8>>>,
    },
}

/// Authorization codes: each is redeemed once.
#[async_trait]
pub trait CodeStore: Records + Counters {
    /// Stores a code with its grant. `revocations` are the records that can end the grant before its time.
    async fn put_code(
        &self,
        code: &Digest,
        grant: &[u8],
        life: CodeLife,
        revocations: &[Key],
    ) -> Result<(), StoreError> {
        self.put(&Key::code(code), &atomic::code_record(grant, life, revocations), life.code).await
    }

    /// Atomic: uses `code` up, starts `family` and stores its first refresh token (when the grant has one).
    ///
    /// Of any number of concurrent calls exactly one is [`Redeemed::Fresh`]; every other one ends the family.
    async fn redeem(
        &self,
        code: &Digest,
        family: &FamilyId,
        refresh: &Digest,
    ) -> Result<Redeemed, StoreError>;

    /// Counts, then redeems as [`CodeStore::redeem`] does. A store across a network does both in one round trip.
    async fn exchange(&self, exchange: Exchange<'_>) -> Result<Exchanged, StoreError> {
        for (key, most) in exchange.counts {
            let hit = self.hit(key, exchange.window).await?;
            if hit.count > *most {
                return Ok(Exchanged::Limited(hit.resets_in));
            }
        }
        let code = self.redeem(exchange.code, exchange.family, exchange.refresh).await?;
        Ok(Exchanged::Redeemed { code, revocations: None })
    }
}

/// Outcome of a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rotated {
    /// The successor is now the family's token.
    Fresh,
    /// The token was rotated moments ago and its successor is unused: the sealed successor, as it was stored.
    Retried(Vec<u8>),
    /// The token was used before: its family has been ended.
    Replayed,
    /// Never issued, expired, or its family has ended.
    Unknown,
}

/// A rotation to perform.
#[derive(Debug, Clone)]
pub struct Rotation<'a> {
    /// The token presented.
    pub old: &'a Digest,
    /// Its family.
    pub family: &'a FamilyId,
    /// Its successor.
    pub new: &'a Digest,
    /// The successor, encrypted so that only the holder of the old token can read it.
    pub sealed: &'a [u8],
    /// Lifetime of the successor; never beyond that of the family.
    pub ttl: Duration,
    /// Milliseconds since the epoch.
    pub now_ms: u64,
    /// Time in which a retry gets the same successor.
    pub grace: Duration,
}

/// Refresh tokens and the families they belong to.
#[async_trait]
pub trait RefreshTokenStore: Records {
    /// Atomic: replaces a token by its successor. See [`Rotated`].
    async fn rotate(&self, rotation: Rotation<'_>) -> Result<Rotated, StoreError>;

    /// Starts a family without a code.
    async fn put_family(&self, family: &FamilyId, grant: &[u8], ttl: Duration) -> Result<(), StoreError> {
        self.put(&Key::family(family), &atomic::family_record(atomic::NO_TOKEN, grant), ttl).await
    }

    /// Returns the grant of `token` and whether it is the family's current token. `None` when the token was
    /// never issued, is expired, or its family has ended.
    async fn find(&self, token: &Digest, family: &FamilyId) -> Result<Option<Found>, StoreError> {
        let mut found = self.get_many(&[Key::refresh(token), Key::family(family)]).await?;
        let (Some(record), Some(_)) = (found.pop().flatten(), found.pop().flatten()) else { return Ok(None) };
        let (current, grant) = atomic::read_family(record)?;
        Ok(Some(Found { grant, current: current == token.as_str() }))
    }

    /// Atomic: puts another grant in the place of `before` while `current` is the family's token; otherwise changes nothing and returns `false`.
    async fn replace_grant(
        &self,
        family: &FamilyId,
        current: &Digest,
        (before, after): (&[u8], &[u8]),
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        let record = |grant: &[u8]| atomic::family_record(current.as_str(), grant);
        self.replace(&Key::family(family), &record(before), &record(after), ttl).await
    }

    /// Ends `family`: its refresh tokens and its access tokens are dead from now on.
    async fn end_family(&self, family: &FamilyId) -> Result<(), StoreError> {
        self.remove(&Key::family(family)).await
    }

    /// The grant of `family`, when it lives.
    async fn family(&self, family: &FamilyId) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.get(&Key::family(family)).await?;
        found.map(|value| Ok(atomic::read_family(value)?.1)).transpose()
    }
}

/// A refresh token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The grant of its family.
    pub grant: Vec<u8>,
    /// It has no successor yet.
    pub current: bool,
}

/// Revocations, announced to all instances: a cache that keeps valid grants asks here whether one may have been revoked since.
#[async_trait]
pub trait RevocationFeed: Send + Sync {
    /// Announces a revocation to all instances, once the store has it. An instance that does not receive it finds out when it checks again.
    async fn announce(&self);

    /// Returns a number that grows with every announced revocation that this instance received. Results of a check at another revision must
    /// be checked again. Takes no round trip.
    fn revision(&self) -> u64;
}

/// A token store.
pub trait Store: Records + Listing + Counters + CodeStore + RefreshTokenStore + RevocationFeed {}

impl<T: Records + Listing + Counters + CodeStore + RefreshTokenStore + RevocationFeed> Store for T {}

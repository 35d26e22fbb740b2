//! Where authorizations, codes, tokens, sessions and vaults live: the questions every store answers.
//!
//! [`MemoryStore`], [`SqliteStore`] and [`RedisStore`] answer them alike. Keys are made in [`Key`]; secrets reach a store
//! only as SHA-256 digests, so a dump of it leaks no token.

mod key;
mod memory;
mod passkeys;
mod redis;
mod sqlite;
mod steps;

use std::time::Duration;

use async_trait::async_trait;

pub(crate) use self::redis::has_hash_tag;
pub use self::{
    key::{Digest, FamilyId, Key},
    memory::MemoryStore,
    passkeys::{Added, Passkey, PasskeySet, PasskeyStore, Use},
    redis::{Heard, NotSent, RedisEndpoint, RedisLayout, RedisPeers, RedisStore},
    sqlite::SqliteStore,
};

/// How long a redeemed code is remembered, so that a replay ends its family.
pub const CODE_TOMBSTONE: Duration = Duration::from_secs(600);

/// Why a store did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be reached, or answered with an error.
    #[error("the token store is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The in-memory store holds as many records as it may.
    #[error("the token store is full")]
    Full,
    /// A record is not in the form this version writes.
    #[error("a stored record cannot be read")]
    Corrupt,
}

/// Named records with a lifetime.
#[async_trait]
pub trait Records: Send + Sync {
    /// The values of `keys`, in their order; one round trip.
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, StoreError>;

    /// The value of `key`.
    async fn get(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.get_many(std::slice::from_ref(key)).await?.pop().flatten())
    }

    /// Writes `value`, to be forgotten after `ttl`.
    async fn put(&self, key: &Key, value: &[u8], ttl: Duration) -> Result<(), StoreError>;

    /// Atomic: writes `value` when `key` holds nothing. Of two concurrent calls exactly one returns `true`.
    async fn put_new(&self, key: &Key, value: &[u8], ttl: Duration) -> Result<bool, StoreError>;

    /// Atomic: writes `value` when `key` holds `expected`.
    async fn replace(
        &self,
        key: &Key,
        expected: &[u8],
        value: &[u8],
        ttl: Duration,
    ) -> Result<bool, StoreError>;

    /// Atomic: removes `key` and returns what it held. Of two concurrent calls at most one gets the value.
    async fn take(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError>;

    /// Removes `key`.
    async fn remove(&self, key: &Key) -> Result<(), StoreError>;
}

/// Records of one kind, for operators.
#[async_trait]
pub trait Listing: Send + Sync {
    /// The values of at most `most` records whose names begin with `kind` and a colon, in no order. Looks at every record there is.
    async fn list(&self, kind: &'static str, most: usize) -> Result<Vec<Vec<u8>>, StoreError>;
}

/// What one more use of a counted thing came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// Uses in the current window, this one included.
    pub count: u64,
    /// Until the window ends.
    pub resets_in: Duration,
}

/// Counters shared by all instances.
#[async_trait]
pub trait Counters: Send + Sync {
    /// Atomic: counts one use of `key`. The window begins with its first use and lasts `window`.
    async fn hit(&self, key: &Key, window: Duration) -> Result<Hit, StoreError>;
}

/// What became of a code that was presented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redeemed {
    /// First use: the record given to [`CodeStore::put_code`]. Its token family now lives.
    Fresh(Vec<u8>),
    /// Used before: its token family has been ended.
    Replayed,
    /// Never issued, or expired.
    Unknown,
}

/// How long what comes of a code lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLife {
    /// The code itself.
    pub code: Duration,
    /// The token family it founds.
    pub family: Duration,
    /// Its first refresh token; `None` when the grant has no refresh token.
    pub refresh: Option<Duration>,
}

/// A code to be redeemed, once nobody uses the endpoint too often.
#[derive(Debug, Clone)]
pub struct Exchange<'a> {
    /// Counters to count first, each with the most it may come to within `window`.
    pub counts: &'a [(Key, u64)],
    /// See [`Counters::hit`].
    pub window: Duration,
    /// The code presented.
    pub code: &'a Digest,
    /// The family it founds.
    pub family: &'a FamilyId,
    /// The family's first refresh token.
    pub refresh: &'a Digest,
}

/// What became of an [`Exchange`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exchanged {
    /// A counter is above what it may come to; the code was not touched. The time is that until the counter's window ends.
    Limited(Duration),
    /// The code was looked at.
    Looked {
        /// What became of it.
        code: Redeemed,
        /// What the records named with [`CodeStore::put_code`] hold, those that are there, when the store read them in the same step.
        ended_by: Option<Vec<Vec<u8>>>,
    },
}

/// Authorization codes: each is redeemed once.
#[async_trait]
pub trait CodeStore: Records + Counters {
    /// Stores a code with the grant it stands for. `ended_by` names the records that can end the grant before its time.
    async fn put_code(
        &self,
        code: &Digest,
        grant: &[u8],
        life: CodeLife,
        ended_by: &[Key],
    ) -> Result<(), StoreError> {
        self.put(&Key::code(code), &steps::code_record(grant, life, ended_by), life.code).await
    }

    /// Atomic: uses `code` up, founds `family` and stores its first refresh token (when the grant has one).
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
        Ok(Exchanged::Looked { code, ended_by: None })
    }
}

/// What became of a refresh token that was to be rotated.
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
    /// The token to put in its place.
    pub new: &'a Digest,
    /// The successor, encrypted so that only the holder of the old token can read it.
    pub sealed: &'a [u8],
    /// Lifetime of the successor; never beyond that of the family.
    pub ttl: Duration,
    /// Milliseconds since the epoch.
    pub now_ms: u64,
    /// How long a retry gets the same successor.
    pub grace: Duration,
}

/// Refresh tokens and the families they belong to.
#[async_trait]
pub trait RefreshTokenStore: Records {
    /// Atomic: puts a successor in the place of a token, or says why not. See [`Rotated`].
    async fn rotate(&self, rotation: Rotation<'_>) -> Result<Rotated, StoreError>;

    /// Founds a family that has no code behind it.
    async fn put_family(&self, family: &FamilyId, grant: &[u8], ttl: Duration) -> Result<(), StoreError> {
        self.put(&Key::family(family), &steps::family_record(steps::NO_TOKEN, grant), ttl).await
    }

    /// What is known of `token`: its family's grant, and whether it is the family's current token. `None` when the token was
    /// never issued, is expired, or its family has ended.
    async fn find(&self, token: &Digest, family: &FamilyId) -> Result<Option<Found>, StoreError> {
        let mut found = self.get_many(&[Key::refresh(token), Key::family(family)]).await?;
        let (Some(record), Some(_)) = (found.pop().flatten(), found.pop().flatten()) else { return Ok(None) };
        let (current, grant) = steps::read_family(record)?;
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
        let record = |grant: &[u8]| steps::family_record(current.as_str(), grant);
        self.replace(&Key::family(family), &record(before), &record(after), ttl).await
    }

    /// Ends `family`: its refresh tokens and its access tokens are dead from now on.
    async fn end_family(&self, family: &FamilyId) -> Result<(), StoreError> {
        self.remove(&Key::family(family)).await
    }

    /// The grant of `family`, when it lives.
    async fn family(&self, family: &FamilyId) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.get(&Key::family(family)).await?;
        found.map(|value| Ok(steps::read_family(value)?.1)).transpose()
    }
}

/// A refresh token that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The grant of its family.
    pub grant: Vec<u8>,
    /// Whether it has no successor yet.
    pub current: bool,
}

/// What ended before its time, told from instance to instance: who remembers that something stood asks here whether it may have ended since.
#[async_trait]
pub trait Endings: Send + Sync {
    /// Tells all instances that something ended; call it when the store says so already. What cannot be told is found out by
    /// looking again after a while.
    async fn announce(&self);

    /// Grows with every ending that was announced, as far as it is known here. Whatever was looked up while it was another number has to
    /// be looked up again. Asks nobody across a network.
    fn endings(&self) -> u64;
}

/// Everything a token store does.
pub trait Store: Records + Listing + Counters + CodeStore + RefreshTokenStore + Endings {}

impl<T: Records + Listing + Counters + CodeStore + RefreshTokenStore + Endings> Store for T {}

//! The keys tokens are signed and verified with, the same on every instance, and their rotation.
//!
//! The ring is one record of the store, changed by compare-and-swap: of several instances that find a rotation due, one makes the new
//! key and the others read it. A new key is published before it signs; a retired key verifies until the last token it signed is
//! expired. A key from the configuration is *pinned*: it signs as long as it is configured, and its public part stays in the ring
//! after it was exchanged, so that tokens signed with it live on.

use std::{collections::HashMap, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};

use super::{
    jwk::{Algorithm, Jwk, JwkSet, KeyError, SigningKey, VerifyingKey},
    jwt::{Claims, Expected, SKEW_S, Token, TokenError},
};
use crate::{
    clock::{Clock, Entropy},
    crypto::Sealer,
    store::{Key, Store, StoreError},
    tuning::FOREVER,
};

/// Time for which a new key is published before it signs: longer than the 300 s for which others may cache our key set.
const LEAD: Duration = Duration::from_secs(900);
/// Greatest age of an instance's view of the ring.
const RELOAD: Duration = Duration::from_secs(30);
/// Shortest time between two reloads for unknown keys.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
const DAY_MS: u64 = 86_400_000;

/// Options of a ring.
#[derive(Debug, Clone)]
pub struct RingOptions {
    /// Keys from the configuration; the first private one signs. Empty: keys are made and rotated.
    pub pinned: Vec<Jwk>,
    /// Days a key signs; 60 by default. Made keys are then exchanged, configured ones are overdue.
    pub rotation_days: u64,
    /// Retired keys kept at most; 3 by default. Configured ones are not counted.
    pub max_keys: usize,
    /// Lifetime of the longest-lived token.
    pub token_life: Duration,
    /// Algorithm of made keys.
    pub algorithm: Algorithm,
    /// Replaces a stored ring that cannot be decrypted, because the secret that encrypted it is lost. Default false.
    pub give_up_unreadable: bool,
}

impl Default for RingOptions {
    fn default() -> Self {
        Self {
            pinned: Vec::new(),
            rotation_days: 60,
            max_keys: 3,
            token_life: Duration::from_secs(3600),
            algorithm: Algorithm::ES256,
            give_up_unreadable: false,
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    jwk: Jwk,
    active_from_ms: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Document {
    /// Oldest first; the last whose time has come signs.
    keys: Vec<Entry>,
}

/// One key of the ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyInfo {
    /// Its name.
    pub kid: String,
    /// Its algorithm.
    pub alg: String,
    /// Milliseconds since the epoch from which it signs.
    pub active_from_ms: u64,
    /// It signs now.
    pub signing: bool,
}

/// The ring as an instance last saw it.
#[derive(Debug)]
pub struct RingSnapshot {
    signing: Arc<SigningKey>,
    verifying: HashMap<String, VerifyingKey>,
    jwks: Arc<str>,
    info: Vec<KeyInfo>,
    loaded_ms: u64,
    /// Time at which another key starts to sign.
    next_change_ms: u64,
}

impl RingSnapshot {
    /// The key that signs.
    pub fn signing(&self) -> &Arc<SigningKey> {
        &self.signing
    }

    /// The key called `kid`.
    pub fn verifying(&self, kid: &str) -> Option<&VerifyingKey> {
        self.verifying.get(kid)
    }

    /// The public key set as JSON.
    pub fn jwks(&self) -> &Arc<str> {
        &self.jwks
    }

    /// The keys, oldest first.
    pub fn keys(&self) -> &[KeyInfo] {
        &self.info
    }

    /// Returns the algorithms of the published keys, also of those that do not sign yet.
    pub fn algorithms(&self) -> Vec<String> {
        let mut algorithms: Vec<String> = self.info.iter().map(|key| key.alg.clone()).collect();
        algorithms.sort();
        algorithms.dedup();
        algorithms
    }

    /// Returns the claims of a token, when a key of the ring signed it and the claims are as `expected`.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn verify(&self, token: &Token<'_>, expected: &Expected<'_>) -> Result<Claims, TokenError> {
        let kid = token.header.kid.as_deref().ok_or(TokenError::UnknownKey)?;
        let claims = token.verify(self.verifying(kid).ok_or(TokenError::UnknownKey)?)?;
        expected.check(&token.header, &claims)?;
        Ok(claims)
    }
}

/// The keys of this issuer.
pub struct KeyRing {
    store: Arc<dyn Store>,
    sealer: Arc<Sealer>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    options: RingOptions,
    pinned: Option<Arc<SigningKey>>,
    seen: ArcSwap<RingSnapshot>,
}

impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyRing").field("keys", &self.seen.load().info).finish_non_exhaustive()
    }
}

/// An error of a ring.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// A key cannot be used.
    #[error("the signing key {0}")]
    Key(#[from] KeyError),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored ring was sealed with another secret.
    #[error(
        "the stored keys were encrypted with another secret: configure the `auth.encryptionKey` (or the `auth.local.signKey`) they \
         were written with, or, to begin anew with other keys, remove the record `keys` (after `keyPrefix`) from the store: access \
         tokens issued until now are then refused, refresh tokens go on working"
    )]
    Sealed,
    /// The key is given by the configuration.
    #[error("the signing key is given by the configuration; exchange it there")]
    Pinned,
    /// No key of the ring has the name.
    #[error("there is no such key")]
    Unknown,
}

impl KeyRing {
    /// Reads the ring from `store`, or makes it.
    ///
    /// # Errors
    /// A configured key is unusable, the store does not answer, or the stored ring cannot be decrypted.
    pub async fn open(
        store: Arc<dyn Store>,
        sealer: Arc<Sealer>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        options: RingOptions,
    ) -> Result<Self, RingError> {
        let pinned = match options.pinned.as_slice() {
            [] => None,
            keys => {
                let private = keys.iter().find(|key| key.d.is_some()).ok_or(KeyError::PublicOnly)?;
                for key in keys {
                    VerifyingKey::from_jwk(key)?;
                }
                Some(Arc::new(SigningKey::from_jwk(private)?))
            }
        };
        let empty = RingSnapshot {
            signing: match &pinned {
                Some(key) => key.clone(),
                None => Arc::new(SigningKey::from_jwk(&Jwk::generate(options.algorithm)?)?),
            },
            verifying: HashMap::new(),
            jwks: "{\"keys\":[]}".into(),
            info: Vec::new(),
            loaded_ms: 0,
            next_change_ms: 0,
        };
        let ring =
            Self { store, sealer, clock, entropy, options, pinned, seen: ArcSwap::from_pointee(empty) };
        let give_up = ring.pinned.is_some() || ring.options.give_up_unreadable;
        let snapshot = ring.change(give_up, |_, _| Ok(())).await?;
        if let Some(days) = ring.overdue_days(&snapshot) {
            tracing::warn!(
                days,
                "the configured signing key has signed for {days} days, longer than `auth.local.keyRotationDays`: make one with `gatewright key \
                 generate`, configure {{\"keys\": [new, old]}} and restart"
            );
        }
        Ok(ring)
    }

    /// Days for which a configured key has signed, when that is longer than keys are to sign.
    pub fn overdue_days(&self, snapshot: &RingSnapshot) -> Option<u64> {
        self.pinned.as_ref()?;
        let since_ms = snapshot.info.iter().find(|key| key.signing)?.active_from_ms;
        let days = self.clock.now_ms().saturating_sub(since_ms) / DAY_MS;
        (days > self.options.rotation_days).then_some(days)
    }

    /// Returns the current ring: the cached view, or from the store when that is old. When the store does not answer, the old view is used.
    pub async fn snapshot(&self) -> Arc<RingSnapshot> {
        let seen = self.seen.load_full();
        let now = self.clock.now_ms();
        if now < seen.loaded_ms + millis(RELOAD) && now < seen.next_change_ms {
            return seen;
        }
        match self.reload().await {
            Ok(fresh) => fresh,
            Err(error) => {
                tracing::warn!(%error, "the key ring could not be read again; the last view of it stands");
                seen
            }
        }
    }

    /// Returns the ring to verify with the key `kid`. Reloads it, at most every two seconds, when that is not known.
    pub async fn snapshot_knowing(&self, kid: &str) -> Arc<RingSnapshot> {
        let seen = self.snapshot().await;
        if seen.verifying.contains_key(kid) || self.clock.now_ms() < seen.loaded_ms + millis(LOOK_AGAIN) {
            return seen;
        }
        self.reload().await.unwrap_or(seen)
    }

    /// Starts to sign with a new key at once (`key rotate`, after a key was lost). Configured keys are not replaced this way.
    ///
    /// # Errors
    /// The configuration gives the key, or the store does not answer.
    pub async fn rotate_now(&self) -> Result<Arc<RingSnapshot>, RingError> {
        if self.pinned.is_some() {
            return Err(RingError::Pinned);
        }
        self.change(false, |ring, now| {
            let next = Entry { jwk: Jwk::generate(self.options.algorithm)?, active_from_ms: now };
            ring.keys.retain(|entry| entry.active_from_ms <= now);
            ring.keys.push(next);
            Ok(())
        })
        .await
    }

    /// Removes a key of the ring at once, as [`KeyRing::remove`] does, when there is one and the configuration does not give it.
    ///
    /// # Errors
    /// There is no such key, the configuration gives it, or the store does not answer.
    pub async fn retire(&self, kid: &str) -> Result<Arc<RingSnapshot>, RingError> {
        if self.options.pinned.iter().any(|key| key.public().kid.as_deref() == Some(kid)) {
            return Err(RingError::Pinned);
        }
        if self.reload().await?.verifying(kid).is_none() {
            return Err(RingError::Unknown);
        }
        self.remove(kid).await
    }

    /// Removes a key at once: tokens it signed are refused as soon as every instance has looked at the ring again (30 s).
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn remove(&self, kid: &str) -> Result<Arc<RingSnapshot>, RingError> {
        self.change(false, |ring, _| {
            ring.keys.retain(|entry| entry.jwk.kid.as_deref() != Some(kid));
            Ok(())
        })
        .await
    }

    /// Reads the ring, and writes it when something in it is due.
    async fn reload(&self) -> Result<Arc<RingSnapshot>, RingError> {
        self.change(false, |_, _| Ok(())).await
    }

    /// Edits the ring and performs what is due. `give_up` allows to replace a ring that cannot be decrypted. Only a start sets it, so that
    /// instances with different secrets do not replace each other's keys in turn.
    async fn change(
        &self,
        give_up: bool,
        edit: impl Fn(&mut Document, u64) -> Result<(), RingError>,
    ) -> Result<Arc<RingSnapshot>, RingError> {
        let key = Key::single("keys");
        loop {
            let now = self.clock.now_ms();
            let stored = self.store.get(&key).await?;
            let before = match &stored {
                Some(sealed) => match self.sealer.open("keys", sealed) {
                    Some(plain) => serde_json::from_slice(&plain).map_err(|_| StoreError::Corrupt)?,
                    None if give_up => {
                        tracing::warn!(
                            "the stored keys and vaults were encrypted with a secret that is not configured any more and are given up: access \
                             tokens that only those keys verify are refused (clients refresh them), and tokens of other services kept in \
                             vaults must be obtained again; sessions, refresh tokens, consents and registrations stay"
                        );
                        Document::default()
                    }
                    None => return Err(RingError::Sealed),
                },
                None => Document::default(),
            };
            let mut ring = before.clone();
            edit(&mut ring, now)?;
            self.maintain(&mut ring, now)?;
            let names = |ring: &Document| -> Vec<(Option<String>, u64)> {
                ring.keys.iter().map(|e| (e.jwk.kid.clone(), e.active_from_ms)).collect()
            };
            if stored.is_none() || names(&before) != names(&ring) {
                let plain = serde_json::to_vec(&ring).map_err(|_| StoreError::Corrupt)?;
                let sealed = self.sealer.seal(&*self.entropy, "keys", &plain);
                let won = match &stored {
                    Some(old) => self.store.replace(&key, old, &sealed, FOREVER).await?,
                    None => self.store.put_new(&key, &sealed, FOREVER).await?,
                };
                if !won {
                    continue;
                }
            }
            let snapshot = Arc::new(self.view(&ring, now)?);
            self.seen.store(snapshot.clone());
            return Ok(snapshot);
        }
    }

    /// Performs what is due: makes the first key and the next key ahead of its time, and removes keys that nobody needs any more.
    fn maintain(&self, ring: &mut Document, now: u64) -> Result<(), RingError> {
        if self.pinned.is_some() {
            for key in self.options.pinned.iter().rev() {
                let public = key.public();
                if !ring.keys.iter().any(|entry| entry.jwk.kid == public.kid) {
                    ring.keys.push(Entry { jwk: public, active_from_ms: now });
                }
            }
        } else {
            let period = self.options.rotation_days.max(1) * DAY_MS;
            let made = ring.keys.iter().rev().find(|entry| entry.jwk.d.is_some());
            let next_from = match made {
                None => Some(now),
                Some(newest) if newest.active_from_ms + period <= now + millis(LEAD) => {
                    Some((newest.active_from_ms + period).max(now + millis(LEAD)))
                }
                Some(_) => None,
            };
            if let Some(active_from_ms) = next_from {
                ring.keys.push(Entry { jwk: Jwk::generate(self.options.algorithm)?, active_from_ms });
            }
        }
        let keep = millis(self.options.token_life) + 2 * SKEW_S * 1000;
        let pinned: Vec<_> = self.options.pinned.iter().map(|key| key.public().kid).collect();
        let begins: Vec<u64> = ring.keys.iter().map(|entry| entry.active_from_ms).collect();
        let signing = begins.iter().rposition(|from| *from <= now).unwrap_or(0);
        let mut at = 0;
        ring.keys.retain(|entry| {
            let retired_ms = begins.get(at + 1).copied();
            let old = at < signing && !pinned.contains(&entry.jwk.kid);
            let served = old && retired_ms.is_some_and(|retired| retired + keep <= now);
            let too_many = old && signing - at > self.options.max_keys;
            at += 1;
            !served && !too_many
        });
        Ok(())
    }

    fn view(&self, ring: &Document, now: u64) -> Result<RingSnapshot, RingError> {
        let signing = match &self.pinned {
            Some(key) => key.clone(),
            None => {
                let entry = ring
                    .keys
                    .iter()
                    .rev()
                    .find(|entry| entry.jwk.d.is_some() && entry.active_from_ms <= now)
                    .ok_or(StoreError::Corrupt)?;
                let seen = self.seen.load();
                if entry.jwk.kid.as_deref() == Some(seen.signing.kid()) {
                    seen.signing.clone()
                } else {
                    Arc::new(SigningKey::from_jwk(&entry.jwk)?)
                }
            }
        };
        let mut verifying = HashMap::new();
        let mut public = JwkSet::default();
        let mut info = Vec::new();
        for entry in &ring.keys {
            let jwk = entry.jwk.public();
            let kid = jwk.kid.clone().unwrap_or_default();
            verifying.insert(kid.clone(), VerifyingKey::from_jwk(&jwk)?);
            info.push(KeyInfo {
                signing: kid == signing.kid(),
                kid,
                alg: jwk.alg.clone().unwrap_or_default(),
                active_from_ms: entry.active_from_ms,
            });
            public.keys.push(jwk);
        }
        let jwks = serde_json::to_string(&public).map_err(|_| StoreError::Corrupt)?.into();
        let next_change_ms = ring
            .keys
            .iter()
            .map(|entry| entry.active_from_ms)
            .filter(|from| *from > now)
            .min()
            .unwrap_or(u64::MAX);
        Ok(RingSnapshot { signing, verifying, jwks, info, loaded_ms: now, next_change_ms })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

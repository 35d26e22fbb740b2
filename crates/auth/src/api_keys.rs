//! Static API keys: bearer secrets of machines that cannot do OAuth.
//!
//! A key is `gwk_` and 32 random bytes. Only its SHA-256 is kept: nobody can try out 2²⁵⁶ keys, so that a slow or salted hash would protect
//! nothing more, and would let strangers make each check expensive. Keys are of the configuration, or of the store, where
//! `server/api_keys.rs` adds and removes them.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arc_swap::ArcSwap;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use gatewright_core::{Groups, MAIN_ENDPOINT, Principal, Scopes};
use serde::{Deserialize, Serialize};

use crate::{
    ceiling::{Ceiling, Grantor},
    clock::Clock,
    config::{ApiKeyConfig, AuthConfig, Deployment, Mode},
    context::Context,
    crypto::{hex, sha256},
    keys::TokenError,
    net::ClientAddress,
    scopes::RecordedScopes,
    store::{Counters as _, Key, MemoryStore, Records as _, Store, StoreError},
    token_cache::{CachedToken, TokenCache},
    tuning::{MAX_COUNTED_NETWORKS, RATE_WINDOW, RECHECK},
};

/// Beginning of every key.
const PREFIX: &str = "gwk_";
/// Beginning of the subject and client of a key's caller. No user, client or token of a provider may have it.
pub(crate) const SUBJECT_PREFIX: &str = "key:";
const LONGEST_NAME: usize = 64;

/// Returns whether a bearer token is meant to be an API key.
pub(crate) fn is_api_key(token: &str) -> bool {
    token.starts_with(PREFIX)
}

/// A new key, from its random part.
pub(crate) fn key_of(secret: &str) -> String {
    format!("{PREFIX}{secret}")
}

/// The subject and client of the caller with the key `name`.
pub(crate) fn subject_of(name: &str) -> String {
    format!("{SUBJECT_PREFIX}{name}")
}

/// Checks the name of a key.
pub(crate) fn check_name(name: &str) -> Result<(), &'static str> {
    let is_good = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
    match (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_good) {
        true => Ok(()),
        false => Err("must be 1 to 64 letters, digits, `.`, `_` and `-`"),
    }
}

/// A key in the store, by the digest of its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredKey {
    pub(crate) name: String,
    pub(crate) scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) endpoints: Vec<String>,
    pub(crate) created_s: u64,
    /// Seconds since the epoch from which it is refused.
    pub(crate) expires_s: Option<u64>,
}

impl StoredKey {
    /// Kind of these records.
    pub(crate) const KIND: &'static str = "api-key";

    /// The record of the key with this digest.
    pub(crate) fn record(digest: &str) -> Key {
        Key::of_digest(Self::KIND, digest)
    }

    /// The record that holds the digest of the key `name`, so that no two keys have the same name.
    pub(crate) fn name_record(name: &str) -> Key {
        Key::named("api-key-name", &[name])
    }
}

/// The bounds of what keys may grant at this moment.
pub(crate) fn ceiling(config: &AuthConfig) -> Ceiling<'_> {
    Ceiling { config, grantor: Grantor::Client, client: None }
}

/// A key that is not accepted.
pub(crate) enum KeyRefusal {
    Token(TokenError),
    /// Too many unknown keys came from the caller's network.
    Flood,
    Store(StoreError),
}

/// The stored key of this name.
async fn stored(store: &dyn Store, name: &str) -> Result<Option<StoredKey>, StoreError> {
    let digest = store.get(&StoredKey::name_record(name)).await?;
    let Some(digest) = digest.and_then(|digest| String::from_utf8(digest).ok()) else { return Ok(None) };
    let record = store.get(&StoredKey::record(&digest)).await?;
    record.map(|record| serde_json::from_slice(&record).map_err(|_| StoreError::Corrupt)).transpose()
}

/// The keys that a resource server accepts.
pub(crate) struct ApiKeys {
    config: AuthConfig,
    configured: ArcSwap<Vec<ApiKeyConfig>>,
    /// Store of further keys; none where an external provider issues tokens.
    store: Option<Arc<dyn Store>>,
    clock: Arc<dyn Clock>,
    cache: Mutex<TokenCache>,
    /// Unknown keys that networks sent, counted by this instance.
    failures: MemoryStore,
}

impl ApiKeys {
    pub(crate) fn new(config: &AuthConfig, clock: Arc<dyn Clock>, store: Option<Arc<dyn Store>>) -> Self {
        Self {
            configured: ArcSwap::from_pointee(config.api_keys.clone()),
            config: config.clone(),
            store,
            failures: MemoryStore::with_room_for(clock.clone(), MAX_COUNTED_NETWORKS),
            clock,
            cache: Mutex::default(),
        }
    }

    /// Accepts these keys in place of the configured ones from now on.
    pub(crate) fn replace(&self, keys: &[ApiKeyConfig]) {
        self.configured.store(Arc::new(keys.to_vec()));
    }

    /// Returns the caller with a key. Streams check without a `caller`: an end of theirs is no attempt.
    pub(crate) async fn verify(&self, key: &str, caller: Option<IpAddr>) -> Result<CachedToken, KeyRefusal> {
        let digest = sha256(key);
        if let Some(verified) = self.configured(&digest) {
            return verified.map_err(KeyRefusal::Token);
        }
        let store = self.store.as_ref();
        let (now_ms, revision) = (self.clock.now_ms(), store.map_or(0, |store| store.revision()));
        let cached = self.cache().get(&digest);
        match &cached {
            Some(entry) if entry.expires_s <= now_ms / 1000 => {
                return Err(KeyRefusal::Token(TokenError::Expired));
            }
            Some(entry)
                if entry.revision == revision && now_ms < entry.checked_ms + RECHECK.as_millis() as u64 =>
            {
                return Ok(entry.clone());
            }
            Some(_) => {}
            None if self.is_flooded(caller).await => return Err(KeyRefusal::Flood),
            None => {}
        }
        let stored = match store {
            Some(store) => store.get(&StoredKey::record(&hex(&digest))).await.map_err(KeyRefusal::Store)?,
            None => None,
        };
        let Some(record) = stored else {
            self.cache().remove(&digest);
            self.count_failure(caller).await;
            return Err(KeyRefusal::Token(TokenError::UnknownApiKey));
        };
        let found: StoredKey =
            serde_json::from_slice(&record).map_err(|_| KeyRefusal::Store(StoreError::Corrupt))?;
        let verified = self.caller_with(&found.name, &found.scopes, &found.endpoints, found.expires_s);
        let verified = verified.map_err(KeyRefusal::Token)?;
        let verified = CachedToken { checked_ms: now_ms, revision, ..verified };
        self.cache().insert(digest, verified.clone(), now_ms);
        Ok(verified)
    }

    /// Returns the scopes that the key of `principal` grants now at its endpoint, if the key was there at `since_s`, in seconds since the epoch; `None` if
    /// there is none any more, it has expired, or another key has its name by now.
    pub(crate) async fn scopes_of(
        &self,
        principal: &Principal,
        since_s: u64,
        deployment: &Deployment,
    ) -> Result<Option<Scopes>, StoreError> {
        let Some(name) = principal.subject.strip_prefix(SUBJECT_PREFIX) else { return Ok(None) };
        let keys = self.configured.load_full();
        let caller = match (keys.iter().find(|key| key.name == name), &self.store) {
            (Some(key), _) => {
                let expires_s = key.expires.map(|expires| expires.0);
                self.caller_with(name, &key.scopes, &key.endpoints, expires_s)
            }
            (None, Some(store)) => match stored(&**store, name).await? {
                Some(key) if key.created_s <= since_s => {
                    self.caller_with(name, &key.scopes, &key.endpoints, key.expires_s)
                }
                _ => return Ok(None),
            },
            (None, None) => return Ok(None),
        };
        let endpoint = principal.endpoint.as_deref();
        let opens = |name: &String| deployment.is_opened_by_key(endpoint, name);
        let here = |caller: &CachedToken| caller.audiences.iter().any(opens);
        Ok(caller.ok().filter(here).map(|caller| caller.principal.scopes))
    }

    /// Returns the digest of the key that `principal` has; `None` for those with tokens.
    pub(crate) async fn digest_of(&self, principal: &Principal) -> Result<Option<String>, StoreError> {
        let Some(name) = principal.subject.strip_prefix(SUBJECT_PREFIX) else { return Ok(None) };
        if let Some(key) = self.configured.load().iter().find(|key| key.name == name) {
            return Ok(Some(hex(&key.hash.0)));
        }
        let stored = match &self.store {
            Some(store) => store.get(&StoredKey::name_record(name)).await?,
            None => None,
        };
        // A key that was revoked meanwhile is that of nobody.
        Ok(Some(stored.and_then(|digest| String::from_utf8(digest).ok()).unwrap_or_default()))
    }

    /// Compares with every configured key, and each in constant time.
    fn configured(&self, digest: &[u8; 32]) -> Option<Result<CachedToken, TokenError>> {
        let keys = self.configured.load();
        let mut found = None;
        for key in keys.iter() {
            if verify_slices_are_equal(&key.hash.0, digest).is_ok() {
                found = Some(key);
            }
        }
        found.map(|key| {
            self.caller_with(&key.name, &key.scopes, &key.endpoints, key.expires.map(|expires| expires.0))
        })
    }

    /// Returns the caller with the key `name`, whose scopes are within the ceilings of this moment.
    fn caller_with(
        &self,
        name: &str,
        scopes: &[String],
        endpoints: &[String],
        expires_s: Option<u64>,
    ) -> Result<CachedToken, TokenError> {
        if expires_s.is_some_and(|end| end <= self.clock.now_s()) {
            return Err(TokenError::Expired);
        }
        let has_own_scopes = self.config.mode != Mode::Transparent || !self.config.scopes.is_empty();
        let scopes = match has_own_scopes {
            true => ceiling(&self.config).narrow(&RecordedScopes::new(scopes.to_vec())).into(),
            false => Scopes::Granted(scopes.iter().cloned().collect()),
        };
        let subject: Arc<str> = subject_of(name).into();
        Ok(CachedToken {
            principal: Principal {
                subject: subject.clone(),
                client_id: Some(subject),
                scopes,
                groups: Groups::default(),
                endpoint: None,
            },
            expires_s: expires_s.unwrap_or(u64::MAX),
            checked_ms: 0,
            revision: 0,
            grant: None,
            audiences: if endpoints.is_empty() {
                vec![MAIN_ENDPOINT.to_owned()].into()
            } else {
                endpoints.into()
            },
            jkt: None,
        })
    }

    fn counters(&self, caller: Option<IpAddr>) -> impl Iterator<Item = (Key, u64)> {
        let limit = self.config.limits.unknown_keys;
        let of = move |ip| Context::caller_counters(StoredKey::KIND, &[], ClientAddress(ip), limit);
        caller.into_iter().flat_map(of)
    }

    /// Returns whether a network of the caller sent so many unknown keys that the store is not asked for another one.
    async fn is_flooded(&self, caller: Option<IpAddr>) -> bool {
        for (counter, limit) in self.counters(caller) {
            let count = self.failures.get(&counter).await.ok().flatten();
            let count = count.and_then(|text| String::from_utf8(text).ok()?.parse::<u64>().ok());
            if count.is_some_and(|count| count >= limit) {
                return true;
            }
        }
        false
    }

    async fn count_failure(&self, caller: Option<IpAddr>) {
        for (counter, _) in self.counters(caller) {
            // Counting in memory does not fail.
            let _ = self.failures.hit(&counter, RATE_WINDOW).await;
        }
    }

    fn cache(&self) -> MutexGuard<'_, TokenCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Operators' functions: the API keys in the store.

use std::time::Duration;

use secrecy::SecretString;
use serde::Serialize;

use super::authorization_server::AuthorizationServer;
use crate::{
    api_keys::{StoredKey, ceiling, check_name, key_of, subject_of},
    clock::Entropy,
    config::ApiKeyHash,
    crypto::{hex, mint, sha256},
    scopes::RecordedScopes,
    store::StoreError,
    tuning::FOREVER,
};

/// An API key, as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyInfo {
    /// Its name.
    pub name: String,
    /// `configured`, or `stored`.
    pub origin: &'static str,
    /// Scopes that it was given.
    pub scopes: Vec<String>,
    /// Endpoints that it opens, by name; none for the main one alone.
    pub endpoints: Vec<String>,
    /// Seconds since the epoch at which it was made; `None` for configured ones.
    pub created_s: Option<u64>,
    /// Seconds since the epoch from which it is refused; `None` for never.
    pub expires_s: Option<u64>,
    /// It is refused already.
    pub expired: bool,
}

/// An API key that was just made. The key itself is kept nowhere.
#[derive(Debug)]
pub struct NewApiKey {
    /// The key, for the machine that sends it.
    pub key: SecretString,
    /// Its SHA-256, for `auth.apiKeys`.
    pub hash: ApiKeyHash,
    /// Seconds since the epoch from which it is refused; `None` for never.
    pub expires_s: Option<u64>,
}

impl NewApiKey {
    /// Makes a key called `name` that nothing knows yet, accepted until `expires_s`.
    ///
    /// # Errors
    /// The name cannot be one.
    pub fn generate(name: &str, expires_s: Option<u64>, entropy: &dyn Entropy) -> Result<Self, ApiKeyError> {
        check_name(name).map_err(ApiKeyError::Name)?;
        let key = key_of(&mint::<32>(entropy));
        Ok(Self { hash: ApiKeyHash(sha256(&key)), key: key.into(), expires_s })
    }
}

/// An API key that was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiKeyError {
    /// The name cannot be one.
    #[error("the name of a key {0}")]
    Name(&'static str),
    /// There is a key of this name.
    #[error("there is a key `{0}` already; choose another name, or revoke that key first")]
    Taken(String),
    /// The scope cannot be granted to a key.
    #[error("`{scope}` is not one of `auth.scopes` that a key can have")]
    Scope {
        /// The scope.
        scope: String,
        /// Scopes that can be granted.
        known: Vec<String>,
    },
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Outcome of the revocation of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevokedApiKey {
    /// It is refused from now on, at every instance.
    Revoked,
    /// It is configured, and was not revoked.
    Configured,
    /// There is no such key.
    Unknown,
}

impl AuthorizationServer {
    /// Makes an API key called `name`, with `scopes`, for `life`, or without an end. It opens `endpoints`; without any, the main one.
    ///
    /// # Errors
    /// See [`ApiKeyError`].
    pub async fn create_api_key(
        &self,
        name: &str,
        scopes: &[String],
        endpoints: &[String],
        life: Option<Duration>,
    ) -> Result<NewApiKey, ApiKeyError> {
        let ctx = &self.services().ctx;
        let created_s = ctx.clock.now_s();
        let expires_s = life.map(|life| created_s.saturating_add(life.as_secs()));
        let made = NewApiKey::generate(name, expires_s, &*ctx.entropy)?;
        let taken = || ApiKeyError::Taken(name.to_owned());
        if ctx.config.api_keys.iter().any(|key| key.name == name) {
            return Err(taken());
        }
        let granted = ceiling(&ctx.config).narrow(&RecordedScopes::new(scopes.to_vec()));
        if let Some(refused) = scopes.iter().find(|scope| !granted.contains(scope)) {
            let known = ctx.config.scopes.keys().cloned().collect();
            return Err(ApiKeyError::Scope { scope: refused.clone(), known });
        }
        let digest = hex(&made.hash.0);
        let record = StoredKey {
            name: name.to_owned(),
            scopes: granted.names().to_vec(),
            endpoints: endpoints.to_vec(),
            created_s,
            expires_s,
        };
        let record = serde_json::to_vec(&record).unwrap_or_default();
        let (life, by_name) = (life.unwrap_or(FOREVER), StoredKey::name_record(name));
        if !ctx.store.put_new(&by_name, digest.as_bytes(), life).await? {
            return Err(taken());
        }
        if let Err(error) = ctx.store.put(&StoredKey::record(&digest), &record, life).await {
            let _ = ctx.store.remove(&by_name).await;
            return Err(error.into());
        }
        let subject = subject_of(name);
        ctx.record_event("api_key.created", Some(&subject), Some(&subject), None, None);
        Ok(made)
    }

    /// Returns the configured API keys, and at most `most` stored ones, each in the order of their names.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn api_keys(&self, most: usize) -> Result<Vec<ApiKeyInfo>, StoreError> {
        let ctx = &self.services().ctx;
        let now_s = ctx.clock.now_s();
        let is_over = |end: Option<u64>| end.is_some_and(|end| end <= now_s);
        let mut all: Vec<ApiKeyInfo> = Vec::new();
        for key in &ctx.config.api_keys {
            let expires_s = key.expires.map(|expires| expires.0);
            all.push(ApiKeyInfo {
                name: key.name.clone(),
                origin: "configured",
                scopes: key.scopes.clone(),
                endpoints: key.endpoints.clone(),
                created_s: None,
                expires_s,
                expired: is_over(expires_s),
            });
        }
        for record in ctx.store.list(StoredKey::KIND, most).await? {
            let Ok(key) = serde_json::from_slice::<StoredKey>(&record) else { continue };
            all.push(ApiKeyInfo {
                name: key.name,
                origin: "stored",
                scopes: key.scopes,
                endpoints: key.endpoints,
                created_s: Some(key.created_s),
                expires_s: key.expires_s,
                expired: is_over(key.expires_s),
            });
        }
        all.sort_by(|a, b| a.origin.cmp(b.origin).then_with(|| a.name.cmp(&b.name)));
        Ok(all)
    }

    /// Revokes the stored API key `name`, at every instance.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn revoke_api_key(&self, name: &str) -> Result<RevokedApiKey, StoreError> {
        let ctx = &self.services().ctx;
        let by_name = StoredKey::name_record(name);
        let digest = ctx.store.get(&by_name).await?.and_then(|digest| String::from_utf8(digest).ok());
        let Some(digest) = digest else {
            let is_configured = ctx.config.api_keys.iter().any(|key| key.name == name);
            return Ok(if is_configured { RevokedApiKey::Configured } else { RevokedApiKey::Unknown });
        };
        // The key first: without its name it could not be revoked any more.
        ctx.store.remove(&StoredKey::record(&digest)).await?;
        ctx.store.announce().await;
        ctx.store.remove(&by_name).await?;
        let subject = subject_of(name);
        ctx.record_event("api_key.revoked", Some(&subject), Some(&subject), None, None);
        Ok(RevokedApiKey::Revoked)
    }
}

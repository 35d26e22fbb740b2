//! The clients that are known, and the registration of new ones (RFC 7591).

use std::{collections::HashMap, sync::Arc, time::Duration};

use crate::{
    context::Context,
    error::OAuthError,
    fetch::Fetcher,
    net::ClientAddress,
    scopes::ANONYMOUS,
    store::{Key, StoreError},
    tuning::REGISTRATION_MARGIN,
};

use super::{
    client::{OAuthClient, Origin},
    documents::{self, Documents},
};

/// Place where a client is found, as far as its identifier tells.
pub(crate) enum ClientSource<'a> {
    /// Callers without a login: no client.
    Anonymous,
    Configured(&'a OAuthClient),
    Document,
    /// The registration with this record, if there is one.
    Registered(Key),
}

/// The clients.
pub(crate) struct Clients {
    pub(super) ctx: Arc<Context>,
    configured: HashMap<String, OAuthClient>,
    documents: Documents,
}

impl Clients {
    /// The clients of the configuration, of registrations, and of documents that `fetcher` gets.
    pub(crate) fn new(ctx: Arc<Context>, fetcher: Fetcher) -> Self {
        let configured = ctx.config.clients.iter().filter_map(|client| OAuthClient::from_config(client).ok());
        let configured = configured.map(|client| (client.id.clone(), client)).collect();
        Self { ctx, configured, documents: Documents::new(fetcher) }
    }

    pub(crate) fn configured(&self) -> impl Iterator<Item = &OAuthClient> {
        self.configured.values()
    }

    pub(crate) fn get_configured(&self, id: &str) -> Option<&OAuthClient> {
        self.configured.get(id)
    }

    /// Returns the client `id`. A fetch of its document is counted for `caller`.
    ///
    /// # Errors
    /// `invalid_client` when it is not known.
    pub(crate) async fn find(&self, id: &str, caller: ClientAddress) -> Result<OAuthClient, OAuthError> {
        match self.source(id) {
            ClientSource::Document => self.documents.client(&self.ctx, id, caller).await,
            _ => self.find_known(id).await?.ok_or_else(OAuthError::invalid_client),
        }
    }

    /// Returns the client `id` if it is configured or registered, or if its document is in the cache. Fetches nothing.
    pub(crate) async fn find_known(&self, id: &str) -> Result<Option<OAuthClient>, StoreError> {
        match self.source(id) {
            ClientSource::Anonymous => Ok(None),
            ClientSource::Configured(client) => Ok(Some(client.clone())),
            ClientSource::Document => Ok(self.documents.cached(id, self.ctx.clock.now_s()).await),
            ClientSource::Registered(key) => {
                let record = self.ctx.store.get(&key).await?;
                record
                    .map(|record| serde_json::from_slice(&record).map_err(|_| StoreError::Corrupt))
                    .transpose()
            }
        }
    }

    /// Returns the place where the client `id` is found.
    pub(crate) fn source(&self, id: &str) -> ClientSource<'_> {
        if id == ANONYMOUS {
            return ClientSource::Anonymous;
        }
        if let Some(client) = self.configured.get(id) {
            return ClientSource::Configured(client);
        }
        let settings = &self.ctx.config.cimd;
        if settings.enabled && documents::looks_like_document(id, settings) {
            return ClientSource::Document;
        }
        ClientSource::Registered(Self::key(id))
    }

    /// Returns the scopes that the cached metadata document of the client `id` limits it to, if any. Fetches nothing.
    pub(crate) fn cached_scopes(&self, id: &str) -> Option<Arc<[String]>> {
        self.documents.cached_scopes(id)
    }

    fn key(id: &str) -> Key {
        Key::named("client", &[id])
    }

    /// Returns the registered client `id`.
    pub(crate) async fn registered(&self, id: &str) -> Result<Option<OAuthClient>, StoreError> {
        match self.source(id) {
            ClientSource::Registered(_) => self.find_known(id).await,
            _ => Ok(None),
        }
    }

    /// Stores a new registration, to be forgotten when it is not used.
    pub(crate) async fn register(&self, client: &OAuthClient) -> Result<(), StoreError> {
        self.put(client, Duration::from_secs(self.ctx.config.dcr.unused_ttl)).await
    }

    /// Stores a registration in place of the one with the same identifier.
    pub(crate) async fn update(&self, client: &OAuthClient) -> Result<(), StoreError> {
        self.put(client, self.registration_lifetime()).await
    }

    async fn put(&self, client: &OAuthClient, lifetime: Duration) -> Result<(), StoreError> {
        let value = serde_json::to_vec(client).unwrap_or_default();
        self.ctx.store.put(&Self::key(&client.id), &value, lifetime).await
    }

    /// Removes a registration. Returns `false` when there was none.
    pub(crate) async fn remove(&self, id: &str) -> Result<bool, StoreError> {
        Ok(self.ctx.store.take(&Self::key(id)).await?.is_some())
    }

    /// Records that a registered client got tokens: it is kept at least as long as they live. Written at most once a day.
    pub(crate) async fn mark_used(&self, client: &OAuthClient) {
        let now_s = self.ctx.clock.now_s();
        let interval = (self.ctx.config.dcr.unused_ttl / 8).min(REGISTRATION_MARGIN.as_secs());
        if client.origin != Origin::Registered || now_s < client.used_s.saturating_add(interval) {
            return;
        }
        if let Err(error) = self.renew(client, now_s).await {
            tracing::warn!(client.id, %error, "the use of a registered client could not be recorded");
        }
    }

    async fn renew(&self, client: &OAuthClient, now_s: u64) -> Result<(), StoreError> {
        let key = Self::key(&client.id);
        let Some(record) = self.ctx.store.get(&key).await? else { return Ok(()) };
        let mut current: OAuthClient = serde_json::from_slice(&record).map_err(|_| StoreError::Corrupt)?;
        current.used_s = now_s;
        let value = serde_json::to_vec(&current).unwrap_or_default();
        // A registration that is changed or deleted meanwhile is left as it is.
        self.ctx.store.replace(&key, &record, &value, self.registration_lifetime()).await.map(drop)
    }

    /// Returns the lifetime of a registration in use: that of an unused one or of the tokens it may just have got, and the time between
    /// two records of its use.
    fn registration_lifetime(&self) -> Duration {
        let config = &self.ctx.config;
        let tokens = self.ctx.family_lifetime(config.refresh.enabled);
        Duration::from_secs(config.dcr.unused_ttl).max(tokens) + REGISTRATION_MARGIN
    }
}

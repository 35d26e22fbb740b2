//! The vault and the servers that it serves.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use async_trait::async_trait;
use gatewright_core::{AppFuture, Authorize, BearerToken, Principal, UserCredentials};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use url::Url;

use super::discovery::Discovery;
use crate::{
    connections::{Connection, Connections},
    context::Context,
    crypto::{b64, derive, mint, sha256_hex},
    fetch::Fetcher,
    server::{AuthorizationServer, Services},
    store::{Key, StoreError},
    tuning::CONNECT_LIFETIME,
    users::{PROVIDER_PREFIX, USER_PREFIX},
};

/// Endpoints of an authorization server that has no metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OauthEndpoints {
    /// The authorization endpoint.
    pub authorization: String,
    /// The token endpoint.
    pub token: String,
    /// The endpoint for refresh tokens, where it is another one.
    pub refresh: Option<String>,
    /// Identifier and secret go into the form (`client_secret_post`), and not into the header.
    pub secret_in_form: bool,
}

/// A server that users connect to, and the gateway's client identity there.
#[derive(Debug, Clone)]
pub struct UpstreamProvider {
    /// Id of the app.
    pub app: String,
    /// Address of the server. Tokens are for this address only: with another one, users connect again.
    pub resource: String,
    /// It is an MCP server: its metadata names the authorization server (RFC 9728), and tokens are asked for with `resource` (RFC 8707),
    /// which authorization servers of other APIs may refuse.
    pub is_mcp: bool,
    /// Our client identifier; a metadata document or a registration when absent.
    pub client_id: Option<String>,
    /// Our secret.
    pub client_secret: Option<SecretString>,
    /// Scopes to ask for; those the server's metadata names when empty.
    pub scopes: Vec<String>,
    /// The authorization server; the one the server's metadata names when absent. With `endpoints`, only the name that it gives itself.
    pub issuer: Option<String>,
    /// Endpoints of the authorization server, in place of its metadata, which without `client_id` has to name the same ones.
    pub endpoints: Option<OauthEndpoints>,
    /// Further parameters of the authorization request.
    pub parameters: Vec<(String, String)>,
    /// Allows private and loopback addresses, and plain HTTP.
    pub allow_private: bool,
}

pub(super) struct Provider {
    pub(super) settings: UpstreamProvider,
    pub(super) fetcher: Fetcher,
    pub(super) discovery: Discovery,
}

/// A connection that a user asked for, by the address that they open.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ConnectRequest {
    pub(super) app: String,
    pub(super) sub: String,
    pub(super) expires_ms: u64,
    /// Part of the address, so that an address that was used up does not come back.
    pub(super) nonce: String,
    /// Scopes to ask for beside those of the app.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
}

impl ConnectRequest {
    /// Returns the key of the record that the first part of an address names.
    pub(super) fn key(handle: &str) -> Key {
        Key::secret("connect", handle)
    }

    /// Returns the address at which the user `sub` connects `app` with `scopes`. While one lives, it is the same for each call, so that a caller has one
    /// record however often it calls.
    async fn address(
        ctx: &Context,
        sub: &str,
        app: &str,
        scopes: Vec<String>,
    ) -> Result<Authorize, StoreError> {
        let names: Vec<&str> = [sub, app].into_iter().chain(scopes.iter().map(String::as_str)).collect();
        let names = Key::named("connect", &names);
        let handle = b64(derive(&ctx.sealer.root_for("connect"), names.as_str().as_bytes()));
        let key = Self::key(&handle);
        loop {
            let before = ctx.store.get(&key).await?;
            let now_ms = ctx.clock.now_ms();
            let living = before.as_deref().and_then(|record| serde_json::from_slice::<Self>(record).ok());
            let living = living.filter(|request| now_ms < request.expires_ms);
            let request = Self {
                app: app.to_owned(),
                sub: sub.to_owned(),
                expires_ms: now_ms + CONNECT_LIFETIME.as_millis() as u64,
                nonce: living.map_or_else(|| mint::<16>(&*ctx.entropy), |request| request.nonce),
                scopes: scopes.clone(),
            };
            let value = serde_json::to_vec(&request).unwrap_or_default();
            let is_saved = match &before {
                Some(before) => ctx.store.replace(&key, before, &value, CONNECT_LIFETIME).await?,
                None => ctx.store.put_new(&key, &value, CONNECT_LIFETIME).await?,
            };
            // Otherwise another call came between, or the address was used up.
            if is_saved {
                let id = format!("{handle}.{}", request.nonce);
                let url = format!("{}?id={id}", ctx.url("/oauth/connect"));
                return Ok(Authorize { url, id: sha256_hex(&id)[..32].to_owned() });
            }
        }
    }
}

pub(super) struct Vault {
    pub(super) services: Arc<Services>,
    providers: RwLock<HashMap<String, Arc<Provider>>>,
}

/// Users' tokens for the servers behind the gateway.
#[derive(Clone)]
pub struct UpstreamVault(pub(super) Arc<Vault>);

impl std::fmt::Debug for UpstreamVault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamVault").finish_non_exhaustive()
    }
}

impl UpstreamVault {
    /// A vault in the store of `server`, encrypted with its key.
    pub fn new(server: &AuthorizationServer) -> Self {
        let services = server.services().clone();
        let vault = Arc::new(Vault { services: services.clone(), providers: RwLock::default() });
        let connections: Arc<dyn Connections> = vault.clone();
        services.set_connections(Arc::downgrade(&connections));
        Self(vault)
    }

    /// Adds an app, or replaces its settings.
    ///
    /// # Errors
    /// No client for outgoing requests can be made.
    pub fn serve(&self, settings: UpstreamProvider) -> Result<(), String> {
        let fetcher = Fetcher::new(settings.allow_private)?;
        let provider = Arc::new(Provider { fetcher, discovery: Discovery::default(), settings });
        let mut providers = self.0.providers.write().unwrap_or_else(PoisonError::into_inner);
        providers.insert(provider.settings.app.clone(), provider);
        Ok(())
    }

    pub(super) fn provider(&self, app: &str) -> Result<Arc<Provider>, String> {
        let providers = self.0.providers.read().unwrap_or_else(PoisonError::into_inner);
        providers.get(app).cloned().ok_or_else(|| format!("`{app}` is not connected with OAuth"))
    }
}

impl Vault {
    /// Returns all providers, by app.
    fn all(&self) -> Vec<Arc<Provider>> {
        let providers = self.providers.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = providers.values().cloned().collect();
        all.sort_by(|a, b| a.settings.app.cmp(&b.settings.app));
        all
    }
}

#[async_trait]
impl Connections for Vault {
    async fn of(&self, sub: &str) -> Result<Option<Vec<Connection>>, StoreError> {
        let all = self.all();
        let keys: Vec<Key> = all.iter().map(|provider| provider.key(sub)).collect();
        if keys.is_empty() {
            return Ok(None);
        }
        let records = self.services.ctx.store.get_many(&keys).await?;
        let connected = all.iter().zip(records).filter(|(_, record)| record.is_some());
        let connection = |provider: &Provider| {
            // An API may have several servers.
            let first = provider.settings.resource.split(' ').next().unwrap_or_default();
            let url = Url::parse(first).ok();
            let host = url.as_ref().and_then(Url::host_str).unwrap_or_default().to_owned();
            Connection { app: provider.settings.app.clone(), host }
        };
        Ok(Some(connected.map(|(provider, _)| connection(provider)).collect()))
    }

    async fn disconnect(&self, sub: &str, app: &str) -> Result<bool, StoreError> {
        let Some(provider) = self.all().into_iter().find(|provider| provider.settings.app == app) else {
            return Ok(false);
        };
        Ok(self.services.ctx.store.take(&provider.key(sub)).await?.is_some())
    }
}

/// Returns the subject of a caller who is a user: clients and anonymous callers are none.
fn user_of(principal: &Principal) -> Result<&str, String> {
    let subject = &*principal.subject;
    if subject.starts_with(USER_PREFIX) || subject.starts_with(PROVIDER_PREFIX) {
        Ok(subject)
    } else {
        Err("it is used on behalf of a user who signed in, and this caller is none".to_owned())
    }
}

impl UserCredentials for UpstreamVault {
    fn bearer<'a>(
        &'a self,
        app: &'a str,
        principal: &'a Principal,
        scopes: &'a [String],
    ) -> AppFuture<'a, Result<Option<BearerToken>, String>> {
        Box::pin(async move {
            let (provider, sub) = (self.provider(app)?, user_of(principal)?);
            provider.bearer(&self.0.services.ctx, sub, scopes).await
        })
    }

    fn authorize<'a>(
        &'a self,
        app: &'a str,
        principal: &'a Principal,
        scopes: &'a [String],
    ) -> AppFuture<'a, Result<Authorize, String>> {
        Box::pin(async move {
            let (ctx, sub) = (&self.0.services.ctx, user_of(principal)?);
            let provider = self.provider(app)?;
            // Nobody opens an address that leads nowhere. (MCP servers are asked about their metadata when a user opens it.)
            if provider.settings.client_id.is_none() && !provider.settings.is_mcp {
                let server = provider.server(ctx).await?;
                provider.identity(ctx, &server).await.map_err(|error| error.to_string())?;
            }
            let scopes = provider.asked(ctx, sub, scopes).await?;
            ConnectRequest::address(ctx, sub, app, scopes).await.map_err(|error| error.to_string())
        })
    }

    fn refused<'a>(
        &'a self,
        app: &'a str,
        principal: &'a Principal,
        token: &'a BearerToken,
    ) -> AppFuture<'a, Result<Option<BearerToken>, String>> {
        Box::pin(async move {
            let (provider, sub) = (self.provider(app)?, user_of(principal)?);
            provider.refused(&self.0.services.ctx, sub, token).await
        })
    }
}

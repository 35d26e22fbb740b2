//! The vault for servers behind the gateway: tokens that users let the gateway obtain for them there.
//!
//! The gateway is an ordinary OAuth client of the other server's authorization server ([`discovery`], [`client`]): code flow with PKCE, state
//! and issuer checks, tokens bound to the server by `resource`, kept encrypted and refreshed by one instance at a time ([`tokens`]). The
//! address a user opens leads to our own pages ([`browser`]) first: only a browser in which that very user is signed in goes on, so that
//! nobody can have somebody else's account connected to their own. The caller's own token is never sent to the other server.

mod browser;
mod client;
mod discovery;
mod tokens;

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use axum::{Router, routing::get};
use gatewright_core::{AppFuture, Authorize, BearerToken, Principal, UserCredentials};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use self::discovery::Discovery;
use crate::{
    crypto::mint,
    fetch::Fetcher,
    server::{AuthorizationServer, Core},
    store::Key,
};

/// How long the address of an authorization can be opened, and how long the user may take at the other server.
const LINK_LIFE: Duration = Duration::from_secs(900);

/// A server that users connect to, and how the gateway is a client there.
#[derive(Debug, Clone)]
pub struct UpstreamProvider {
    /// Id of the app.
    pub app: String,
    /// Address of the server: the resource tokens are asked for (RFC 8707).
    pub resource: String,
    /// Our client identifier; a metadata document or a registration when absent.
    pub client_id: Option<String>,
    /// Our secret.
    pub client_secret: Option<SecretString>,
    /// Scopes to ask for; those the server's metadata names when empty.
    pub scopes: Vec<String>,
    /// The authorization server; the one the server's metadata names when absent.
    pub issuer: Option<String>,
    /// Whether private and loopback addresses and plain HTTP are allowed.
    pub allow_private: bool,
}

struct Provider {
    settings: UpstreamProvider,
    fetcher: Fetcher,
    discovery: Discovery,
}

/// Who asked to connect to what: what the address that a user opens stands for.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Link {
    app: String,
    sub: String,
    expires_ms: u64,
}

struct Inner {
    core: Arc<Core>,
    providers: RwLock<HashMap<String, Arc<Provider>>>,
}

/// Keeps users' tokens for the servers behind the gateway.
#[derive(Clone)]
pub struct UpstreamVault(Arc<Inner>);

impl std::fmt::Debug for UpstreamVault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamVault").finish_non_exhaustive()
    }
}

impl UpstreamVault {
    /// A vault in the store of `server`, encrypted with its key.
    pub fn new(server: &AuthorizationServer) -> Self {
        Self(Arc::new(Inner { core: server.core().clone(), providers: RwLock::default() }))
    }

    /// Serves an app from now on, in place of what was known of it.
    ///
    /// # Errors
    /// When no client for outgoing requests can be made.
    pub fn serve(&self, settings: UpstreamProvider) -> Result<(), String> {
        let fetcher = Fetcher::new(settings.allow_private)?;
        let provider = Arc::new(Provider { fetcher, discovery: Discovery::default(), settings });
        let mut providers = self.0.providers.write().unwrap_or_else(PoisonError::into_inner);
        providers.insert(provider.settings.app.clone(), provider);
        Ok(())
    }

    /// The page users open, `/oauth/connect`, and for each issuer `/oauth/connect/{issuer}/callback` and `/oauth/connect/{issuer}/client.json`.
    pub fn router(&self) -> Router {
        let routes = Router::new()
            .route("/oauth/connect", get(browser::start))
            .route("/oauth/connect/{issuer}/callback", get(browser::callback))
            .route("/oauth/connect/{issuer}/client.json", get(client::document));
        let path = url::Url::parse(&self.0.core.deployment.public_url)
            .map(|url| url.path().trim_end_matches('/').to_owned());
        let below = match path {
            Ok(path) if !path.is_empty() => routes.clone().nest(&path, routes),
            _ => routes,
        };
        below.with_state(self.clone())
    }

    fn provider(&self, app: &str) -> Result<Arc<Provider>, String> {
        let providers = self.0.providers.read().unwrap_or_else(PoisonError::into_inner);
        providers.get(app).cloned().ok_or_else(|| format!("`{app}` is not connected with OAuth"))
    }
}

/// Users have names that only a login gives; clients and anonymous callers have none.
fn user_of(principal: &Principal) -> Result<&str, String> {
    let subject = &*principal.subject;
    if subject.starts_with("user:") || subject.starts_with("idp:") {
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
    ) -> AppFuture<'a, Result<Option<BearerToken>, String>> {
        Box::pin(async move {
            let (provider, sub) = (self.provider(app)?, user_of(principal)?);
            provider.bearer(&self.0.core, sub).await
        })
    }

    fn authorize<'a>(
        &'a self,
        app: &'a str,
        principal: &'a Principal,
    ) -> AppFuture<'a, Result<Authorize, String>> {
        Box::pin(async move {
            let (core, sub) = (&self.0.core, user_of(principal)?);
            self.provider(app)?;
            let link = Link {
                app: app.to_owned(),
                sub: sub.to_owned(),
                expires_ms: core.clock.now_ms() + LINK_LIFE.as_millis() as u64,
            };
            let id = mint::<32>(&*core.entropy);
            let value = serde_json::to_vec(&link).unwrap_or_default();
            core.store
                .put(&Key::secret("connect", &id), &value, LINK_LIFE)
                .await
                .map_err(|error| error.to_string())?;
            let url = format!("{}?id={id}", core.url("/oauth/connect"));
            Ok(Authorize { url, id: crate::crypto::sha256_hex(&id)[..32].to_owned() })
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
            provider.refused(&self.0.core, sub, token).await
        })
    }
}

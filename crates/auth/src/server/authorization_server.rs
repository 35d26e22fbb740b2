//! The public face of the authorization server.

use std::{sync::Arc, time::Duration};

use axum::Router;
use futures::future::BoxFuture;

use super::{router::router, services::Services};
use crate::{
    audit::{AuditSink, LogAudit},
    clock::{Clock, Entropy, SystemClock, SystemEntropy},
    config::{AuthConfig, Deployment, Problem, StorageKind},
    consent_tools::ConsentTools,
    context::Context,
    dpop,
    fetch::Fetcher,
    first_user::FirstUser,
    grants::Revocation,
    keys::{KeyRing, RingError, RingOptions},
    metrics::Metrics,
    net::Network,
    provider::Provider,
    sealing,
    store::{MemoryStore, RedisPeers, RedisStore, SqliteStore, Store, StoreError},
    store_clock,
};

/// The parts that a server is made of, besides its configuration.
#[derive(Clone)]
pub struct ServerParts {
    /// Store of all records.
    pub store: Arc<dyn Store>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// Sink of audit events.
    pub audit: Arc<dyn AuditSink>,
}

/// An error that keeps a server from starting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The configuration cannot be used.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Config(Vec<Problem>),
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] RingError),
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The client for outgoing requests cannot be made.
    #[error("no client for outgoing requests: {0}")]
    Fetch(String),
}

/// The built-in authorization server.
#[derive(Clone)]
pub struct AuthorizationServer {
    services: Arc<Services>,
}

impl std::fmt::Debug for AuthorizationServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthorizationServer")
            .field("issuer", &self.services.ctx.deployment.public_url)
            .finish_non_exhaustive()
    }
}

/// Opens the store of a configuration.
///
/// # Errors
/// It cannot be reached or opened.
pub async fn open_store(config: &AuthConfig, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>, StoreError> {
    let settings = &config.token_storage.config;
    let prefix = settings.key_prefix.as_deref().unwrap_or("gw:");
    Ok(match config.token_storage.kind {
        StorageKind::Memory => {
            tracing::warn!(
                "tokens are kept in memory: a restart signs everyone out, and instances do not share them"
            );
            Arc::new(MemoryStore::new(clock))
        }
        StorageKind::Sqlite => {
            let path = settings.path.clone().unwrap_or_else(|| "gatewright-auth.db".into());
            Arc::new(SqliteStore::open(&path, prefix, clock)?)
        }
        StorageKind::Redis => {
            let endpoint = settings.redis_endpoint();
            let endpoint = endpoint.map_err(|problem| StoreError::Unavailable(problem.to_string().into()))?;
            Arc::new(RedisStore::connect(&endpoint).await?)
        }
    })
}

/// Connects instances through the Redis of `tokenStorage`.
///
/// # Errors
/// `tokenStorage` names no Redis, or that cannot be reached.
pub async fn open_peers(config: &AuthConfig) -> Result<RedisPeers, StoreError> {
    let endpoint = config.token_storage.config.redis_endpoint();
    let endpoint = endpoint.map_err(|problem| StoreError::Unavailable(problem.to_string().into()))?;
    RedisPeers::connect(&endpoint).await
}

/// Refuses a configuration that cannot be used.
fn check(config: &AuthConfig, deployment: &Deployment) -> Result<(), OpenError> {
    let problems = config.validate(deployment);
    if problems.is_empty() { Ok(()) } else { Err(OpenError::Config(problems)) }
}

impl AuthorizationServer {
    /// A server with the store of the configuration, the machine's clock, and audit events in the log.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(config: AuthConfig, deployment: Deployment) -> Result<Self, OpenError> {
        Self::open_with(config, deployment, None).await
    }

    /// A server like that of [`AuthorizationServer::open`], with audit events in `audit` if there is one.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open_with(
        config: AuthConfig,
        deployment: Deployment,
        audit: Option<Arc<dyn AuditSink>>,
    ) -> Result<Self, OpenError> {
        check(&config, &deployment)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = open_store(&config, clock.clone()).await?;
        let audit = audit.unwrap_or_else(|| Arc::new(LogAudit));
        let parts = ServerParts { store, clock, entropy: Arc::new(SystemEntropy), audit };
        Self::with_parts(config, deployment, parts).await
    }

    /// A server made of given parts.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn with_parts(
        config: AuthConfig,
        deployment: Deployment,
        parts: ServerParts,
    ) -> BoxFuture<'static, Result<Self, OpenError>> {
        Box::pin(async move {
            check(&config, &deployment)?;
            let config = config.with_default_scope();
            let ServerParts { store, clock, entropy, audit } = parts;
            let clock = store_clock::of_store(&store, clock).await;
            let opened = sealing::open(&config, &*store, &*entropy).await?;
            let ctx = Arc::new(Context {
                trusted_proxies: config
                    .trusted_proxies
                    .iter()
                    .filter_map(|text| Network::parse(text))
                    .collect(),
                sealer: Arc::new(opened.sealer),
                metrics: Arc::new(Metrics::default()),
                proofs: dpop::quota(),
                config,
                deployment,
                store,
                clock,
                entropy,
                audit,
            });
            let keys = open_keys(&ctx, opened.may_give_up).await?;
            sealing::record_secret(&ctx.config, &*ctx.store).await?;
            let private = ctx.config.cimd.allow_private && ctx.deployment.is_local();
            let fetcher = Fetcher::new(private).map_err(OpenError::Fetch)?;
            let provider = Provider::from_config(ctx.clone()).map_err(OpenError::Fetch)?;
            Ok(Self { services: Arc::new(Services::new(ctx, keys, fetcher, provider).await) })
        })
    }

    /// The endpoints: `/oauth/*` and `/.well-known/*`.
    pub fn router(&self) -> Router {
        router(self.services.clone())
    }

    /// Sets the source of the apps and tools on the consent page. The first one stays.
    pub fn set_consent_tools(&self, tools: impl ConsentTools + 'static) {
        self.services.set_consent_tools(Arc::new(tools));
    }

    /// Counters for an operator.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.services.ctx.metrics
    }

    /// The signing keys.
    pub fn keys(&self) -> &KeyRing {
        &self.services.tokens.keys
    }

    /// The user that was made because the configuration has none.
    pub fn first_user(&self) -> Option<&FirstUser> {
        self.services.users.first_user()
    }

    /// Starts to sign with a new key at once.
    ///
    /// # Errors
    /// The configuration gives the key, or the store does not answer.
    pub async fn rotate_keys(&self) -> Result<(), RingError> {
        self.keys().rotate_now().await?;
        self.services.ctx.record_event("keys.rotated", None, None, None, None);
        Ok(())
    }

    /// Ends everything that `subject` granted, and all their sessions.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn revoke_user(&self, subject: &str) -> Result<(), StoreError> {
        self.services.grants.revoke(Revocation::User(subject)).await?;
        self.services.ctx.record_event("admin.user_revoked", Some(subject), None, None, None);
        Ok(())
    }

    /// Ends everything that was granted to a client.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn revoke_client(&self, client_id: &str) -> Result<(), StoreError> {
        self.services.grants.revoke(Revocation::Client(client_id)).await?;
        self.services.ctx.record_event("admin.client_revoked", None, Some(client_id), None, None);
        Ok(())
    }

    /// Ends everything that `subject` granted to a client and forgets the consent: the user is asked again.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn withdraw_consent(&self, subject: &str, client_id: &str) -> Result<(), StoreError> {
        self.services.grants.revoke(Revocation::Consent { user: subject, client: client_id }).await?;
        self.services.ctx.record_event("consent.withdrawn", Some(subject), Some(client_id), None, None);
        Ok(())
    }

    pub(crate) fn services(&self) -> &Arc<Services> {
        &self.services
    }
}

/// Opens the key ring of a configuration. `may_give_up` allows to replace keys that cannot be decrypted.
async fn open_keys(ctx: &Context, may_give_up: bool) -> Result<KeyRing, RingError> {
    let local = &ctx.config.local;
    let pinned = local.sign_key.as_ref().map_or(Ok(Vec::new()), |key| key.keys()).map_err(RingError::Key)?;
    let options = RingOptions {
        pinned,
        rotation_days: local.key_rotation_days,
        max_keys: local.max_keys,
        token_life: Duration::from_secs(ctx.config.refresh.access_token_ttl),
        algorithm: local.algorithm,
        give_up_unreadable: may_give_up,
    };
    let (store, sealer) = (ctx.store.clone(), ctx.sealer.clone());
    KeyRing::open(store, sealer, ctx.clock.clone(), ctx.entropy.clone(), options).await
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::password::PasswordHash;

    #[tokio::test]
    async fn b15_a_name_nobody_has_and_a_user_without_a_password_cost_what_a_users_password_costs() {
        let hash = |cost: &str| {
            format!(
                "$argon2id$v=19${cost}$Z2F0ZXdyaWdodC1kZWNveQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
            )
        };
        let costs = ["m=65536,t=3,p=4", "m=32768,t=2,p=1"].map(hash);
        let config = serde_json::json!({"mode": "orchestrated", "local": {
            "passkeys": {"enabled": true},
            "users": [{"username": "ann", "passwordHash": costs[0]}, {"username": "bob", "passwordHash": costs[1]},
                      {"username": "carol"}],
        }});
        let clock = Arc::new(SystemClock);
        let parts = ServerParts {
            store: Arc::new(MemoryStore::new(clock.clone())),
            clock,
            entropy: Arc::new(SystemEntropy),
            audit: Arc::new(LogAudit),
        };
        let deployment = Deployment::new("https://mcp.example", "/mcp", "x");
        let config = serde_json::from_value(config).unwrap();
        let server = AuthorizationServer::with_parts(config, deployment, parts).await.unwrap();
        let users: BTreeSet<_> = costs.iter().map(|text| PasswordHash::parse(text).unwrap().cost()).collect();
        let names = (0..100).map(|n| format!("nobody{n}")).chain(["carol".to_owned()]);
        let decoys: BTreeSet<_> = names
            .map(|name| {
                let (hash, is_users) = server.services().users.hash_for(&name);
                assert!(!is_users, "{name}");
                hash.unwrap().cost()
            })
            .collect();
        assert_eq!(decoys, users);
        assert_eq!(server.services().users.hash_for("ann").0.unwrap().cost().0, 65_536);
    }
}

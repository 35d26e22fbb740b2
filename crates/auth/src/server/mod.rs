//! The authorization server: its parts, and its endpoints as a router.

mod authorize;
mod clearance;
mod client_auth;
mod errors;
mod first_user;
mod form;
mod id_token;
mod login;
mod logout;
mod manage;
mod metadata;
mod openapi;
mod passkeys;
mod register;
mod sealing;
pub(crate) mod steps;
mod token;

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::{ConnectInfo, State},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderValue, Method, Request, StatusCode, header, request::Parts};

pub(crate) use self::form::OAuthError;
pub use self::{
    errors::{ERRORS, ErrorCode},
    first_user::FirstUser,
};
pub use self::{
    openapi::OPENAPI,
    passkeys::{EnrolError, Enrolment},
};
use crate::{
    audit::{AuditEvent, AuditSink, LogAudit},
    clients::OAuthClient,
    clock::{Clock, Entropy, SystemClock, SystemEntropy},
    config::{AuthConfig, Deployment, Problem, StorageKind, UserConfig},
    covered::{CoveredApp, CoveredTools, covered_by},
    crypto::{Sealer, sha256_hex},
    fetch::Fetcher,
    hashing::HashQueue,
    keys::{KeyRing, RingError, RingOptions},
    metrics::Metrics,
    net::{Caller, Network},
    password::{Decoys, Phc},
    records::Grant,
    store::{FamilyId, Key, MemoryStore, RedisPeers, RedisStore, SqliteStore, Store, StoreError},
    under_way::UnderWay,
};

/// What a server is made of besides its configuration.
#[derive(Clone)]
pub struct ServerParts {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// Where audit events go.
    pub audit: Arc<dyn AuditSink>,
}

/// Why there is no server.
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

pub(crate) struct User {
    pub(crate) config: UserConfig,
    /// None when the user signs in with passkeys only.
    phc: Option<Phc>,
    /// Changes when the password does.
    pub(crate) credential: String,
}

pub(crate) struct Core {
    pub(crate) config: AuthConfig,
    pub(crate) deployment: Deployment,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    audit: Arc<dyn AuditSink>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) sealer: Arc<Sealer>,
    pub(crate) ring: KeyRing,
    pub(crate) statics: HashMap<String, OAuthClient>,
    pub(crate) users: HashMap<String, User>,
    first_user: Option<FirstUser>,
    trusted: Vec<Network>,
    /// Whose turn it is to have a password checked.
    hashing: HashQueue,
    /// Room for authorizations that are under way.
    under_way: UnderWay,
    /// Verified when the user is unknown, so that the answer takes as long.
    decoys: Decoys,
    /// Chooses among them.
    decoy_key: [u8; 32],
    /// Makes the values that prove a form to be ours.
    csrf_key: [u8; 32],
    pub(crate) fetcher: Fetcher,
    pub(crate) documents: crate::cimd::Documents,
    pub(crate) provider: Option<crate::remote::Provider>,
    /// Present when passkeys are on.
    relying_party: Option<passkeys::RelyingParty>,
    /// Who knows the tools there are.
    covered: OnceLock<Arc<dyn CoveredTools>>,
}

/// The built-in authorization server.
#[derive(Clone)]
pub struct AuthorizationServer {
    core: Arc<Core>,
}

impl std::fmt::Debug for AuthorizationServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthorizationServer")
            .field("issuer", &self.core.deployment.public_url)
            .finish_non_exhaustive()
    }
}

/// Opens the store that `config` names.
///
/// # Errors
/// When it cannot be reached or opened.
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

/// What the limits are counted within.
const WINDOW: Duration = Duration::from_secs(60);

impl AuthorizationServer {
    /// A server with the store the configuration names, the machine's clock, and events in the log (and the audit file).
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(config: AuthConfig, deployment: Deployment) -> Result<Self, OpenError> {
        Self::open_with(config, deployment, None).await
    }

    /// Opens a server whose audit events go to `audit`; without one they are logged.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open_with(
        config: AuthConfig,
        deployment: Deployment,
        audit: Option<Arc<dyn AuditSink>>,
    ) -> Result<Self, OpenError> {
        let problems = config.validate(&deployment);
        if !problems.is_empty() {
            return Err(OpenError::Config(problems));
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = open_store(&config, clock.clone()).await?;
        let audit = audit.unwrap_or_else(|| Arc::new(LogAudit));
        Self::with_parts(
            config,
            deployment,
            ServerParts { store, clock, entropy: Arc::new(SystemEntropy), audit },
        )
        .await
    }

    /// A server made of given parts.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn with_parts(
        config: AuthConfig,
        deployment: Deployment,
        parts: ServerParts,
    ) -> Result<Self, OpenError> {
        let problems = config.validate(&deployment);
        if !problems.is_empty() {
            return Err(OpenError::Config(problems));
        }
        let config = config.with_default_scope();
        let ServerParts { store, clock, entropy, audit } = parts;
        let opened = sealing::open(&config, &*store, &*entropy).await?;
        let sealer = Arc::new(opened.sealer);
        let options = RingOptions {
            pinned: config
                .local
                .sign_key
                .as_ref()
                .map_or(Ok(Vec::new()), |key| key.keys())
                .map_err(RingError::Key)?,
            rotation_days: config.local.key_rotation_days,
            max_keys: config.local.max_keys,
            token_life: Duration::from_secs(config.refresh.access_token_ttl),
            algorithm: config.local.algorithm,
            give_up_unreadable: opened.may_give_up,
        };
        let ring =
            KeyRing::open(store.clone(), sealer.clone(), clock.clone(), entropy.clone(), options).await?;
        sealing::mark(&config, &*store).await?;
        let statics = config
            .clients
            .iter()
            .filter_map(|c| OAuthClient::from_config(c).ok())
            .map(|c| (c.id.clone(), c))
            .collect();
        let user = |user: &UserConfig| {
            let hash = user.password_hash.as_deref();
            let phc = hash.map(Phc::parse).transpose().ok()?;
            let credential = sha256_hex(hash.unwrap_or_default())[..16].to_owned();
            Some((user.username.clone(), User { config: user.clone(), phc, credential }))
        };
        let mut users: HashMap<String, User> = config.local.users.iter().filter_map(user).collect();
        let first_user = first_user::make(&config, &sealer, &entropy).await.map(|(first, user)| {
            users.insert(user.config.username.clone(), user);
            first
        });
        let decoys = Decoys::like(users.values().filter_map(|user| user.phc.as_ref()));
        let (decoy_key, csrf_key) = (sealer.root_for("decoy"), sealer.root_for("csrf"));
        let private = config.cimd.allow_private && deployment.is_local();
        let fetcher = Fetcher::new(private).map_err(OpenError::Fetch)?;
        let metrics = Arc::new(Metrics::default());
        let provider =
            crate::remote::Provider::from_config(&config, metrics.clone()).map_err(OpenError::Fetch)?;
        let party = config.local.passkeys.enabled.then(|| passkeys::RelyingParty::of(&deployment)).flatten();
        let core = Core {
            relying_party: party,
            trusted: config.trusted_proxies.iter().filter_map(|text| Network::parse(text)).collect(),
            hashing: HashQueue::default(),
            under_way: UnderWay::default(),
            documents: crate::cimd::Documents::default(),
            metrics,
            provider,
            config,
            deployment,
            store,
            clock,
            entropy,
            audit,
            sealer,
            ring,
            statics,
            users,
            first_user,
            decoys,
            decoy_key,
            csrf_key,
            fetcher,
            covered: OnceLock::new(),
        };
        Ok(Self { core: Arc::new(core) })
    }

    /// The endpoints: `/oauth/*` and `/.well-known/*`.
    pub fn router(&self) -> Router {
        let core = self.core.clone();
        let open = Router::new()
            .route("/oauth/token", post(token::endpoint))
            .route("/oauth/revoke", post(manage::revoke))
            .route("/oauth/register", post(register::register))
            .route(
                "/oauth/register/{id}",
                get(register::read).put(register::replace).delete(register::delete),
            )
            .route("/.well-known/jwks.json", get(metadata::jwks))
            .route("/oauth/openapi.json", get(openapi::endpoint))
            .layer(from_fn(cross_origin));
        let endpoints = Router::new()
            .route("/oauth/authorize", get(authorize::endpoint).post(authorize::endpoint))
            .route("/oauth/login", get(login::show).post(login::submit))
            .route("/oauth/login/passkey", post(passkeys::submit))
            .route("/oauth/account", get(passkeys::show).post(passkeys::change))
            .route("/oauth/enrol", get(passkeys::show_enrol).post(passkeys::enrol))
            .route("/oauth/consent", get(login::show).post(login::decide))
            .route("/oauth/callback", get(crate::remote::callback))
            .route("/oauth/par", post(authorize::push))
            .route("/oauth/introspect", post(manage::introspect))
            .route("/oauth/userinfo", get(manage::userinfo).post(manage::userinfo))
            .route("/oauth/logout", get(logout::ask).post(logout::submit))
            .merge(open);
        // Below the issuer's path too, for a proxy that does not take it away.
        let path = url::Url::parse(&core.deployment.public_url)
            .map(|url| url.path().trim_end_matches('/').to_owned());
        let below = match path {
            Ok(path) if !path.is_empty() => endpoints.clone().nest(&path, endpoints),
            _ => endpoints,
        };
        below
            .merge(metadata::routes(&self.core).layer(from_fn(cross_origin)))
            .layer(from_fn_with_state(core.clone(), count))
            .with_state(core)
    }

    /// Names the apps and tools that a grant reaches on the consent page from now on. The first one told stays.
    pub fn covers(&self, tools: impl CoveredTools + 'static) {
        let _ = self.core.covered.set(Arc::new(tools));
    }

    /// Counts for an operator.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.core.metrics
    }

    /// The keys.
    pub fn keys(&self) -> &KeyRing {
        &self.core.ring
    }

    /// Begins to sign with a new key at once.
    ///
    /// # Errors
    /// When the key is pinned by the configuration, or the store does not answer.
    pub async fn rotate_keys(&self) -> Result<(), RingError> {
        self.core.ring.rotate_now().await?;
        self.core.tell("keys.rotated", None, None, None, None);
        Ok(())
    }

    /// Ends everything `subject` has granted and every session of theirs.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn revoke_user(&self, subject: &str) -> Result<(), StoreError> {
        self.core.cut("user", subject).await?;
        self.core.tell("admin.user_revoked", Some(subject), None, None, None);
        Ok(())
    }

    /// Ends everything granted to a client.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn revoke_client(&self, client_id: &str) -> Result<(), StoreError> {
        self.core.cut("client", client_id).await?;
        self.core.tell("admin.client_revoked", None, Some(client_id), None, None);
        Ok(())
    }

    /// Ends everything `subject` granted to a client and forgets the consent: both will be asked again.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn withdraw_consent(&self, subject: &str, client_id: &str) -> Result<(), StoreError> {
        self.core.cut("consent", &format!("{subject}\n{client_id}")).await?;
        self.core.tell("consent.withdrawn", Some(subject), Some(client_id), None, None);
        Ok(())
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

/// Marks an answer with status 503 that is not the store's fault.
#[derive(Clone, Copy)]
pub(crate) struct Elsewhere;

/// Counts what became of a request.
async fn count(State(core): State<Arc<Core>>, request: Request<axum::body::Body>, next: Next) -> Response {
    let (issues, began) = (request.uri().path().ends_with("/oauth/token"), Instant::now());
    let response = next.run(request).await;
    match response.status() {
        StatusCode::SERVICE_UNAVAILABLE if response.extensions().get::<Elsewhere>().is_none() => {
            core.metrics.store_failed();
        }
        StatusCode::OK if issues => core.metrics.took(began.elapsed()),
        status if issues && status.is_client_error() => core.metrics.auth_failed(),
        _ => {}
    }
    response
}

/// Lets browsers of any origin use endpoints that take no cookie.
async fn cross_origin(request: Request<axum::body::Body>, next: Next) -> Response {
    let asks = request.method() == Method::OPTIONS;
    let mut response = if asks { StatusCode::NO_CONTENT.into_response() } else { next.run(request).await };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("www-authenticate, dpop-nonce, retry-after"),
    );
    if asks {
        headers
            .insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, PUT, DELETE"));
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static("authorization, content-type, dpop, mcp-protocol-version"),
        );
    }
    response
}

impl Core {
    /// The apps and tools that `scopes` reach; `None` when nobody knows the tools.
    fn covered(&self, scopes: &[String]) -> Option<Vec<CoveredApp>> {
        Some(covered_by(scopes, self.covered.get()?.tools()))
    }

    /// The caller's address.
    pub(crate) fn caller(&self, parts: &Parts) -> Caller {
        let peer = parts.extensions.get::<ConnectInfo<std::net::SocketAddr>>().map(|info| info.0.ip());
        let peer = peer.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED)).to_canonical();
        // What the server knows already: a request may come by way of another instance.
        let known = parts.extensions.get::<gatewright_core::CallerAddress>().map_or(peer, |caller| caller.0);
        Caller(gatewright_core::caller_address(known, &parts.headers, &self.trusted))
    }

    fn counter(what: &'static str, who: &[&str]) -> Key {
        Key::named("rate", &[&[what], who].concat())
    }

    /// Counts a use of `what` by each of `who`, a minute long; more than `most` are refused.
    pub(crate) async fn limit(&self, what: &'static str, who: &[&str], most: u64) -> Result<(), OAuthError> {
        let hit = self.store.hit(&Self::counter(what, who), WINDOW).await?;
        if hit.count > most { Err(OAuthError::too_many(hit.resets_in)) } else { Ok(()) }
    }

    /// Makes room for `bytes` of an authorization that a caller of `network` begins and that is forgotten after `life`.
    fn make_room(&self, network: &str, bytes: usize, life: Duration) -> Result<(), OAuthError> {
        let is_taken = self.under_way.take(network, bytes, self.clock.now_ms(), life);
        if is_taken { Ok(()) } else { Err(OAuthError::too_many(WINDOW)) }
    }

    pub(crate) fn tell(
        &self,
        event: &'static str,
        actor: Option<&str>,
        client: Option<&str>,
        ip: Option<Caller>,
        jti: Option<&str>,
    ) {
        self.metrics.told(event);
        self.audit.record(&AuditEvent {
            at_ms: self.clock.now_ms(),
            event,
            actor: actor.map(str::to_owned),
            client: client.map(str::to_owned),
            ip: ip.map(|ip| ip.0.to_string()),
            jti: jti.map(str::to_owned),
        });
    }

    /// Ends everything that came of a grant.
    pub(crate) async fn end(&self, family: &FamilyId) -> Result<(), StoreError> {
        self.store.end_family(family).await?;
        self.store.announce().await;
        Ok(())
    }

    /// Everything of `kind` called `id` that was granted until now is dead.
    pub(crate) async fn cut(&self, kind: &'static str, id: &str) -> Result<(), StoreError> {
        let now = self.clock.now_ms().to_string();
        let life = Duration::from_secs(self.config.refresh.absolute_ttl + self.config.session.absolute_ttl);
        self.store.put(&Key::named("cutoff", &[kind, id]), now.as_bytes(), life).await?;
        self.store.announce().await;
        Ok(())
    }

    pub(crate) fn cutoffs(grant: &Grant) -> Vec<Key> {
        let both = format!("{}\n{}", grant.sub, grant.client);
        let mut keys = vec![
            Key::named("cutoff", &["user", &grant.sub]),
            Key::named("cutoff", &["client", &grant.client]),
            Key::named("cutoff", &["consent", &both]),
        ];
        if let Some(session) = &grant.session {
            keys.push(Key::named("cutoff", &["session", session]));
        }
        keys
    }

    /// Whether nothing that was said since `grant` was given ends it.
    pub(crate) async fn stands(&self, grant: &Grant) -> Result<bool, StoreError> {
        let cutoffs = self.store.get_many(&Self::cutoffs(grant)).await?;
        Ok(self.stands_with(grant, cutoffs.into_iter().flatten()))
    }

    /// The same with the records of [`Core::cutoffs`] at hand, those that are there.
    fn stands_with(&self, grant: &Grant, cutoffs: impl IntoIterator<Item = Vec<u8>>) -> bool {
        let at = |value: Vec<u8>| std::str::from_utf8(&value).ok().and_then(|text| text.parse::<u64>().ok());
        let cut = cutoffs.into_iter().any(|value| at(value).is_none_or(|at| grant.issued_ms <= at));
        !cut && self.user_stands(grant)
    }

    /// Whether the grant's user, where the configuration knows users, is still there with the same password.
    fn user_stands(&self, grant: &Grant) -> bool {
        let Some(credential) = &grant.credential else { return true };
        let name = grant.sub.strip_prefix("user:").unwrap_or_default();
        self.users.get(name).is_some_and(|user| !user.config.disabled && user.credential == *credential)
    }
}

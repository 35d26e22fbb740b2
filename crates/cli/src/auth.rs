//! Who may call: from the `auth` section to an authenticator and its endpoints.

use std::{net::SocketAddr, path::Path, sync::Arc};

use anyhow::{Context as _, anyhow};
use futures::future::BoxFuture;
use gatewright::{
    Authenticator, Gateway, Principal,
    rmcp::model::Tool,
    server::{
        HttpResponse,
        axum::{Router, http::request::Parts},
    },
};
use gatewright_auth::{
    AuditSink, AuthConfig, AuthorizationServer, CoveredTool, Deployment, FirstUser, Metrics, OpenError,
    ResourceServer, SystemClock, Transparent, UpstreamVault,
    config::{Mode, StorageKind},
};

use crate::{
    args::{ConfigArgs, StoreArgs},
    audit::Audit,
    config::Config,
    exit::BadConfig,
};

/// What the HTTP server is given.
pub struct Guard {
    /// Tells who sends a request.
    pub authenticator: Arc<dyn Authenticator>,
    /// `/oauth/*` and `/.well-known/*`.
    pub routes: Router,
    /// What was counted at the door.
    pub metrics: Arc<Metrics>,
    /// Keeps users' tokens at upstream servers; only where users sign in.
    pub vault: Option<UpstreamVault>,
    /// The built-in authorization server, where there is one.
    pub server: Option<AuthorizationServer>,
}

/// Lets the consent page name what a grant reaches: the tools of `gateway` at that moment.
pub fn tell_tools(server: &AuthorizationServer, gateway: Arc<Gateway>) {
    server.covers(move || {
        let destructive = |tool: &Tool| {
            let hints = tool.annotations.as_ref();
            hints.is_some_and(|hints| {
                hints.destructive_hint == Some(true) && hints.read_only_hint != Some(true)
            })
        };
        let snapshot = gateway.registry().operator_snapshot();
        let covered = snapshot.tools.iter().map(|entry| CoveredTool {
            app: entry.app_id.to_string(),
            name: entry.name.to_string(),
            scopes: entry.meta.scopes.clone(),
            destructive: destructive(&entry.tool),
        });
        covered.collect()
    });
}

struct Callers(ResourceServer);

impl Authenticator for Callers {
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> BoxFuture<'a, Result<Principal, HttpResponse>> {
        self.0.authenticate(parts)
    }

    fn until_ended(&self, parts: &Parts) -> BoxFuture<'static, ()> {
        self.0.until_ended(parts)
    }

    fn insufficient_scope(&self, missing: &[String]) -> HttpResponse {
        self.0.insufficient_scope(missing)
    }
}

/// The guard that the configuration asks for; none when authentication is off.
///
/// # Errors
/// A configuration that cannot be used, a store that does not answer.
pub async fn open(
    config: &Config,
    address: SocketAddr,
    audit: Option<Arc<Audit>>,
) -> anyhow::Result<Option<Guard>> {
    let deployment = config.deployment(address);
    refuse_open_doors(config, &deployment)?;
    match config.auth.mode {
        Mode::Public => Ok(None),
        Mode::Orchestrated => {
            let server = server(config, address, audit).await?;
            if let Some(first) = server.first_user() {
                show(first);
            }
            let authenticator = Arc::new(Callers(server.resource_server()));
            let vault = UpstreamVault::new(&server);
            let (routes, metrics) = (server.router().merge(vault.router()), server.metrics().clone());
            Ok(Some(Guard { authenticator, routes, metrics, vault: Some(vault), server: Some(server) }))
        }
        Mode::Transparent => {
            let validator = Transparent::new(config.auth.clone(), &deployment, Arc::new(SystemClock))
                .map_err(BadConfig)?;
            let (routes, metrics) = (validator.router(), validator.metrics().clone());
            let authenticator = Arc::new(Callers(ResourceServer::transparent(validator)));
            Ok(Some(Guard { authenticator, routes, metrics, vault: None, server: None }))
        }
    }
}

/// The authorization server of the configuration.
///
/// # Errors
/// A configuration that cannot be used, a store that does not answer.
pub async fn server(
    config: &Config,
    address: SocketAddr,
    audit: Option<Arc<Audit>>,
) -> anyhow::Result<AuthorizationServer> {
    let audit = audit.map(|audit| audit as Arc<dyn AuditSink>);
    AuthorizationServer::open_with(config.auth.clone(), config.deployment(address), audit).await.map_err(told)
}

/// Prints how to sign in where no user is configured: on standard error, past the log, which others may read later.
fn show(first: &FirstUser) {
    eprintln!(
        "No user is configured (`auth.local.users`). Until there is one, sign in with a password that lasts as long as the store's secret.\n\
         Sign in as `{}` with the password {}",
        first.username,
        first.expose_password()
    );
    tracing::warn!("no user is configured: `auth.local.users` lists those that may sign in");
}

/// The authorization server of a configuration without its endpoints, for a command that works on its store. `cannot` says why there is
/// nothing to do for a configuration.
///
/// # Errors
/// A configuration that cannot be used or has nothing to do, a store that does not answer.
pub async fn operated(
    path: &Path,
    cannot: impl Fn(&AuthConfig) -> Option<&'static str>,
) -> anyhow::Result<AuthorizationServer> {
    let config = Config::of(&ConfigArgs { config: Some(path.to_owned()), mcp_config: None })?;
    if let Some(problem) = cannot(&config.auth) {
        return Err(BadConfig(problem.to_owned()).into());
    }
    // The running server writes its audit file; what is done here is in this command's log.
    let address = SocketAddr::new(config.http.host, config.http.port);
    server(&config, address, None).await
}

/// The same for what running servers keep in their store.
pub async fn shared(store: &StoreArgs) -> anyhow::Result<AuthorizationServer> {
    operated(&store.config, |auth| match (auth.mode, auth.token_storage.kind) {
        (Mode::Orchestrated, StorageKind::Memory) => Some(
            "the running server keeps this in its memory (`auth.tokenStorage.type: memory`), which this command cannot reach; use `redis` or \
             `sqlite`",
        ),
        (Mode::Orchestrated, _) => None,
        (Mode::Transparent, _) => Some("tokens, users and clients are the provider's (`auth.mode: transparent`); look there"),
        (Mode::Public, _) => Some("authentication is off (`auth.mode`): there is nothing of the kind"),
    })
    .await
}

/// The subject that an operator names: as it is, or as the name of a configured user.
pub fn subject(name: &str) -> String {
    if name.starts_with("user:") || name.starts_with("idp:") {
        name.to_owned()
    } else {
        format!("user:{name}")
    }
}

fn told(error: OpenError) -> anyhow::Error {
    match error {
        OpenError::Config(_) | OpenError::Keys(_) => BadConfig(error.to_string()).into(),
        OpenError::Store(_) => {
            anyhow!(error).context("`auth.tokenStorage` cannot be used; is the store running and reachable?")
        }
        other => anyhow!(other).context("the authorization server cannot start"),
    }
}

/// Nobody serves the world without meaning to.
fn refuse_open_doors(config: &Config, deployment: &Deployment) -> anyhow::Result<()> {
    if config.auth.mode != Mode::Public || deployment.is_local() {
        return Ok(());
    }
    let problems = config.auth.validate(deployment);
    if let Some(problem) = problems.first() {
        return Err(BadConfig(problem.to_string())).context("refusing to serve without authentication");
    }
    tracing::warn!(
        "no authentication: whoever reaches this server may call every tool; keep it behind a proxy that authenticates"
    );
    Ok(())
}

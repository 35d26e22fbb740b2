//! Authentication: from the `auth` section to an authenticator and its endpoints.

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context as _, anyhow};
use gatewright::{Authenticator, Gateway, rmcp::model::Tool, server::axum::Router};
use gatewright_auth::{
    AuditSink, AuthorizationServer, ConsentTool, Deployment, FirstUser, Metrics, OpenError, ResourceServer,
    SystemClock, Transparent, UpstreamVault, config::Mode,
};

use super::audit::Audit;
use crate::{config::Config, exit::BadConfig, output::errln};

/// Authentication as the HTTP server needs it.
pub struct AuthLayer {
    /// Identifies the caller of a request.
    pub authenticator: Arc<dyn Authenticator>,
    /// `/oauth/*` and `/.well-known/*`.
    pub routes: Router,
    /// Counts of logins, tokens and rejected requests.
    pub metrics: Arc<Metrics>,
    /// Users' tokens at upstream servers; only where users sign in.
    pub vault: Option<UpstreamVault>,
    /// The built-in authorization server, where there is one.
    pub server: Option<AuthorizationServer>,
}

/// Lets the consent page list the tools that a grant reaches: those of `gateway` at that moment.
pub fn show_tools_on_consent_page(server: &AuthorizationServer, gateway: Arc<Gateway>) {
    server.set_consent_tools(move || {
        let destructive = |tool: &Tool| {
            let hints = tool.annotations.as_ref();
            hints.is_some_and(|hints| {
                hints.destructive_hint == Some(true) && hints.read_only_hint != Some(true)
            })
        };
        let snapshot = gateway.registry().operator_snapshot();
        let tools = snapshot.tools.iter().map(|entry| ConsentTool {
            app: entry.app_id.to_string(),
            name: entry.name.to_string(),
            scopes: entry.meta.scopes.clone(),
            destructive: destructive(&entry.tool),
        });
        tools.collect()
    });
}

/// The authentication that the configuration asks for; `None` when it is off.
///
/// # Errors
/// The configuration cannot be used, or the token store does not answer.
pub async fn open(
    config: &Config,
    address: SocketAddr,
    audit: Option<Arc<Audit>>,
) -> anyhow::Result<Option<AuthLayer>> {
    let deployment = config.deployment(address);
    refuse_accidental_public_access(config, &deployment)?;
    match config.auth.mode {
        Mode::Public => Ok(None),
        Mode::Orchestrated => {
            let server = server(config, address, audit).await?;
            if let Some(first) = server.first_user() {
                print_first_user(first);
            }
            let authenticator = Arc::new(server.resource_server());
            let vault = UpstreamVault::new(&server);
            let (routes, metrics) = (server.router().merge(vault.router()), server.metrics().clone());
            Ok(Some(AuthLayer { authenticator, routes, metrics, vault: Some(vault), server: Some(server) }))
        }
        Mode::Transparent => {
            let validator = Transparent::new(config.auth.clone(), &deployment, Arc::new(SystemClock))
                .map_err(BadConfig)?;
            let (routes, metrics) = (validator.router(), validator.metrics().clone());
            let authenticator = Arc::new(ResourceServer::transparent(validator));
            Ok(Some(AuthLayer { authenticator, routes, metrics, vault: None, server: None }))
        }
    }
}

/// The authorization server of the configuration.
///
/// # Errors
/// The configuration cannot be used, or the token store does not answer.
pub async fn server(
    config: &Config,
    address: SocketAddr,
    audit: Option<Arc<Audit>>,
) -> anyhow::Result<AuthorizationServer> {
    let audit = audit.map(|audit| audit as Arc<dyn AuditSink>);
    let opened = AuthorizationServer::open_with(config.auth.clone(), config.deployment(address), audit).await;
    opened.map_err(explain)
}

/// Prints the generated login to standard error. It stays out of the log, which others may read later.
fn print_first_user(first: &FirstUser) {
    errln!(
        "No user is configured (`auth.local.users`). Until there is one, sign in with a generated password, which stays valid as long as the \
         secret of the token store.\n\
         Sign in as `{}` with the password {}",
        first.username,
        first.expose_password()
    );
    tracing::warn!("no user is configured: list those who may sign in under `auth.local.users`");
}

fn explain(error: OpenError) -> anyhow::Error {
    match error {
        OpenError::Config(_) | OpenError::Keys(_) => BadConfig(error.to_string()).into(),
        OpenError::Store(_) => {
            anyhow!(error).context("`auth.tokenStorage` cannot be used; is the store running and reachable?")
        }
        other => anyhow!(other).context("the authorization server cannot start"),
    }
}

/// Refuses to serve other machines without authentication, unless the configuration allows it explicitly.
fn refuse_accidental_public_access(config: &Config, deployment: &Deployment) -> anyhow::Result<()> {
    if config.auth.mode != Mode::Public || deployment.is_local() {
        return Ok(());
    }
    let problems = config.auth.validate(deployment);
    if let Some(problem) = problems.first() {
        return Err(BadConfig(problem.to_string())).context("refusing to serve without authentication");
    }
    tracing::warn!(
        "authentication is off: anyone who reaches this server can call every tool; keep it behind a proxy that authenticates"
    );
    Ok(())
}

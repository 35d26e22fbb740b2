//! Authentication: from the `auth` section to an authenticator and its endpoints.

use std::{net::SocketAddr, sync::Arc};

use gatewright_auth::{
    AuditSink, AuthorizationServer, ConsentTool, Deployment, Metrics, ResourceServer, SystemClock,
    Transparent, UpstreamVault, config::Mode,
};
use gatewright_core::{Endpoints, Gateway, rmcp::model::Tool};
use gatewright_server::axum::Router;

use super::{Audit, GuardConfig, GuardError};

/// Authentication as the HTTP server needs it.
pub(super) struct AuthLayer {
    /// Identifies the caller of a request.
    pub(super) authenticator: ResourceServer,
    /// `/oauth/*` and `/.well-known/*`.
    pub(super) routes: Router,
    /// Counts of logins, tokens and rejected requests.
    pub(super) metrics: Arc<Metrics>,
    /// The built-in authorization server, and users' tokens at upstream servers; only where users sign in.
    pub(super) issuer: Option<(AuthorizationServer, UpstreamVault)>,
}

/// Lets the consent page list the tools that a grant reaches: those of `gateway` at that moment.
pub(super) fn show_tools_on_consent_page(server: &AuthorizationServer, gateway: Arc<Gateway>) {
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
pub(super) async fn open(
    config: &GuardConfig,
    address: SocketAddr,
    endpoints: Arc<Endpoints>,
    audit: Option<Arc<Audit>>,
) -> Result<Option<AuthLayer>, GuardError> {
    let deployment = config.deployment(address).with_endpoints(endpoints.clone());
    refuse_accidental_public_access(config, &deployment)?;
    Ok(Some(match config.auth.mode {
        Mode::Public => return Ok(None),
        Mode::Orchestrated => {
            let audit = audit.map(|audit| audit as Arc<dyn AuditSink>);
            let server = config.authorization_server(address, endpoints, audit).await?;
            let vault = UpstreamVault::new(&server);
            AuthLayer {
                authenticator: server.resource_server(),
                routes: server.router().merge(vault.router()),
                metrics: server.metrics().clone(),
                issuer: Some((server, vault)),
            }
        }
        Mode::Transparent => {
            let validator = Transparent::new(config.auth.clone(), &deployment, Arc::new(SystemClock))
                .map_err(GuardError::Config)?;
            let validator = Arc::new(validator);
            let (routes, metrics) = (validator.router(), validator.metrics().clone());
            let authenticator = ResourceServer::transparent(validator);
            AuthLayer { authenticator, routes, metrics, issuer: None }
        }
    }))
}

/// Refuses to serve other machines without authentication, unless the configuration allows it explicitly.
fn refuse_accidental_public_access(config: &GuardConfig, deployment: &Deployment) -> Result<(), GuardError> {
    if config.auth.mode != Mode::Public || deployment.is_local() {
        return Ok(());
    }
    if let Some(problem) = config.auth.validate(deployment).first() {
        return Err(GuardError::Config(format!("refusing to serve without authentication: {problem}")));
    }
    tracing::warn!(
        "authentication is off: anyone who reaches this server can call every tool; keep it behind a proxy that authenticates"
    );
    Ok(())
}

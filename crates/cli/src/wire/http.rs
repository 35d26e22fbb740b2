//! The listener for clients, with authentication in front of it.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context as _;
use gatewright::{
    Running,
    server::{Bound, ServeError, ServerBuilder},
};
use gatewright_auth::Metrics as AuthMetrics;
use tokio::net::TcpListener;

use super::{
    audit::Audit,
    auth::{self, AuthLayer},
    user_tokens::UserTokens,
};
use crate::{config::Config, exit::BadConfig};

/// Binds `server` to the address of the configuration, behind the authentication that it asks for. Returns the metrics of the
/// latter too, when it is on.
///
/// # Errors
/// The address is taken, or the configuration, the token store or the certificate cannot be used.
pub async fn listen(
    running: &Running,
    server: ServerBuilder,
    config: &Config,
    tokens: &UserTokens,
    audit: Option<Arc<Audit>>,
) -> anyhow::Result<(Bound, Option<Arc<AuthMetrics>>)> {
    let address = SocketAddr::new(config.http.host, config.http.port);
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}; choose another `http.port` or `http.host`"))?;
    let layer = auth::open(config, listener.local_addr()?, audit).await?;
    let (mut server, mut metrics) = (server.listener(listener), None);
    if let Some(AuthLayer { authenticator, routes, metrics: counts, vault, server: issuer }) = layer {
        if let Some(issuer) = &issuer {
            auth::show_tools_on_consent_page(issuer, running.gateway().clone());
        }
        if let Some(vault) = &vault {
            tokens.open(vault).map_err(anyhow::Error::msg)?;
        }
        server = server.authenticator(authenticator).merge(routes);
        metrics = Some(counts);
    }
    Ok((server.bind().await.map_err(explain)?, metrics))
}

/// Reports a bad certificate as an error of the configuration.
fn explain(error: ServeError) -> anyhow::Error {
    match error {
        error @ ServeError::Config(_) => BadConfig(error.to_string()).into(),
        other => other.into(),
    }
}

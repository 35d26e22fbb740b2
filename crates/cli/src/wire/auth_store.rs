//! The authorization server of a configuration without its endpoints, for commands that work on its store.

use std::{net::SocketAddr, path::Path, sync::Arc};

use gatewright_auth::{
    AuthConfig, AuthorizationServer,
    config::{Mode, StorageKind},
};
use gatewright_core::Endpoints;

use super::guard;
use crate::{
    args::{ConfigArgs, StoreArgs},
    config::Config,
    exit::BadConfig,
    output::errln,
};

/// Opens the store of the configuration at `path`. `reject` returns the reason why a command cannot work on a configuration.
///
/// # Errors
/// The configuration cannot be used or is rejected, or the store does not answer.
pub async fn open(
    path: &Path,
    reject: impl Fn(&AuthConfig) -> Option<&'static str>,
) -> anyhow::Result<AuthorizationServer> {
    let config = Config::of(&ConfigArgs { config: Some(path.to_owned()), mcp_config: None })?;
    if let Some(problem) = reject(&config.auth) {
        return Err(BadConfig(problem.to_owned()).into());
    }
    if config.auth.token_storage.kind == StorageKind::Sqlite
        && let Some(store) = config.auth.token_storage.config.path.as_deref().map(Path::new)
        && !store.exists()
    {
        let at = std::path::absolute(store).unwrap_or_else(|_| store.to_owned());
        errln!(
            "note: there was no store at {}, so it is made now; a relative `auth.tokenStorage.config.path` is relative to the current folder",
            at.display()
        );
    }
    // The running server writes its audit file; this command reports to its own log.
    let address = SocketAddr::new(config.http.host, config.http.port);
    let endpoints = Arc::new(Endpoints::new(&config.endpoints));
    config.guard(None).authorization_server(address, endpoints, None).await.map_err(guard::explain)
}

/// Opens a store that running servers share, for commands on their tokens, users and clients.
///
/// # Errors
/// The configuration cannot be used or has no shared store, or the store does not answer.
pub async fn open_shared(store: &StoreArgs) -> anyhow::Result<AuthorizationServer> {
    open(&store.config, |auth| match (auth.mode, auth.token_storage.kind) {
        (Mode::Orchestrated, StorageKind::Memory) => Some(
            "the running server keeps this in its memory (`auth.tokenStorage.type: memory`), which this command cannot reach; use `redis` or \
             `sqlite`",
        ),
        (Mode::Orchestrated, _) => None,
        (Mode::Transparent, _) => Some(
            "tokens, users and clients belong to the identity provider (`auth.mode: transparent`); use its tools. API keys are in \
             `auth.apiKeys`: `gatewright api-key generate` makes one",
        ),
        (Mode::Public, _) => {
            Some("authentication is off (`auth.mode: public`): there are no tokens, users or clients")
        }
    })
    .await
}

/// The subject of a user that an operator names: a subject as it is, or the name of a configured user.
///
/// # Errors
/// No user of that name is configured.
pub fn known_subject(server: &AuthorizationServer, name: &str) -> Result<String, BadConfig> {
    let subject = subject(name);
    if subject != name && !server.knows_user(name) {
        return Err(BadConfig(format!(
            "there is no user `{name}` under `auth.local.users`; for a user who is not configured, write the subject, such as `user:{name}`"
        )));
    }
    Ok(subject)
}

/// The subject that `name` stands for: itself, or that of a configured user.
pub fn subject(name: &str) -> String {
    if name.starts_with("user:") || name.starts_with("idp:") {
        name.to_owned()
    } else {
        format!("user:{name}")
    }
}

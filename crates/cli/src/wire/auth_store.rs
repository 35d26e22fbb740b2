//! The authorization server of a configuration without its endpoints, for commands that work on its store.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use gatewright::AuditConfig;
use gatewright_auth::{
    AuditEvent, AuditSink, AuthConfig, AuthorizationServer, LogAudit,
    config::{Mode, StorageKind},
};
use gatewright_core::Endpoints;
use gatewright_operator::audit::{AuditError, AuditFile};

use super::guard;
use crate::{
    args::{ConfigArgs, StoreArgs},
    config::Config,
    exit::BadConfig,
    output::errln,
};

/// Access of a command to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only reads; leaves no audit event.
    Read,
    /// Changes something, which the audit file records.
    Change,
}

/// Writes audit events to a file beside the audit file of the servers, and to the log of the command.
struct CommandAudit(AuditFile);

/// End of the name of that file. A server holds its own as long as it runs.
const OF_COMMANDS: &str = ".commands";
/// Pause before the file is tried again while another command holds it, and how often it is.
const PAUSE: Duration = Duration::from_millis(100);
const TRIES: usize = 50;

impl CommandAudit {
    /// Opens the audit file; `None` without one.
    ///
    /// # Errors
    /// The file cannot be used.
    async fn open(config: &AuditConfig) -> Result<Option<Arc<dyn AuditSink>>, BadConfig> {
        let Some(path) = &config.file else { return Ok(None) };
        let mut path = path.as_os_str().to_owned();
        path.push(OF_COMMANDS);
        let mut tries = 1;
        loop {
            match AuditFile::open(path.as_ref()) {
                Ok(file) => return Ok(Some(Arc::new(Self(file.sync_each(config.sync))))),
                Err(AuditError::Locked(_)) if tries < TRIES => tokio::time::sleep(PAUSE).await,
                Err(error) => return Err(BadConfig(format!("nothing was changed: `audit.file`: {error}"))),
            }
            tries += 1;
        }
    }
}

impl AuditSink for CommandAudit {
    fn record(&self, event: &AuditEvent) {
        self.0.append(event);
        LogAudit.record(event);
    }
}

/// Opens the store of the configuration at `path`, and before it the audit file if the command changes something. `reject` returns the reason why
/// a command cannot work on a configuration.
///
/// # Errors
/// The configuration or its audit file cannot be used, the configuration is rejected, or the store does not answer.
pub async fn open(
    path: &Path,
    access: Access,
    reject: impl Fn(&AuthConfig) -> Option<&'static str>,
) -> anyhow::Result<AuthorizationServer> {
    let config = Config::of(&ConfigArgs { config: Some(path.to_owned()), mcp_config: None })?;
    if let Some(problem) = reject(&config.auth) {
        return Err(BadConfig(problem.to_owned()).into());
    }
    let audit = match access {
        Access::Read => None,
        Access::Change => CommandAudit::open(&config.audit).await?,
    };
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
    let address = SocketAddr::new(config.http.host, config.http.port);
    let endpoints = Arc::new(Endpoints::new(&config.endpoints));
    config.guard(None).authorization_server(address, endpoints, audit).await.map_err(guard::explain)
}

/// Opens a store that running servers share, for commands on their tokens, users and clients.
///
/// # Errors
/// The configuration or its audit file cannot be used, there is no shared store, or the store does not answer.
pub async fn open_shared(store: &StoreArgs, access: Access) -> anyhow::Result<AuthorizationServer> {
    open(&store.config, access, |auth| match (auth.mode, auth.token_storage.kind) {
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

//! The authorization server of a configuration without its endpoints, for commands that work on its store.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

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

/// Writes audit events to a file beside the audit file of the servers, and to the log of the command. It has the file for as long as it writes: a command that
/// stands still, or whose output nobody reads, keeps no other one waiting.
struct CommandAudit {
    path: PathBuf,
    sync: bool,
}

/// End of the name of that file. A server holds its own as long as it runs.
const OF_COMMANDS: &str = ".commands";
/// Pause before the file is tried again while another command holds it, and how often it is.
const PAUSE: Duration = Duration::from_millis(20);
const TRIES: usize = 250;

impl CommandAudit {
    /// Makes sure that the audit file can be opened; `None` without one.
    ///
    /// # Errors
    /// The file cannot be used.
    fn open(config: &AuditConfig) -> Result<Option<Arc<dyn AuditSink>>, BadConfig> {
        let Some(path) = &config.file else { return Ok(None) };
        let mut path = path.as_os_str().to_owned();
        path.push(OF_COMMANDS);
        let audit = Self { path: path.into(), sync: config.sync };
        match audit.file() {
            Ok(_) => Ok(Some(Arc::new(audit))),
            Err(AuditError::Locked(path)) => Err(BadConfig(format!(
                "nothing was changed: another process holds {} (`audit.file` of commands); try again when it has ended",
                path.display()
            ))),
            Err(error) => Err(BadConfig(format!("nothing was changed: `audit.file`: {error}"))),
        }
    }

    /// The file, once no other command writes it.
    #[expect(clippy::disallowed_methods, reason = "no event tells of a lock that another process gave up")]
    fn file(&self) -> Result<AuditFile, AuditError> {
        for _ in 1..TRIES {
            match AuditFile::open(&self.path) {
                Err(AuditError::Locked(_)) => std::thread::sleep(PAUSE),
                opened => return opened.map(|file| file.sync_each(self.sync)),
            }
        }
        AuditFile::open(&self.path).map(|file| file.sync_each(self.sync))
    }
}

impl AuditSink for CommandAudit {
    fn record(&self, event: &AuditEvent) {
        match self.file() {
            Ok(file) => file.append(event),
            Err(error) => tracing::error!(%error, "an audit event is lost"),
        }
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
        Access::Change => CommandAudit::open(&config.audit)?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_write_the_audit_one_after_the_other_and_hold_it_only_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let config = AuditConfig { file: Some(folder.path().join("audit.jsonl")), ..AuditConfig::default() };
        let [first, second] = [0, 1].map(|_| CommandAudit::open(&config).unwrap().unwrap());
        let event = AuditEvent { at_ms: 1, event: "consent.withdrawn", ..Default::default() };
        std::thread::scope(|scope| {
            for audit in [&first, &second] {
                scope.spawn(|| (0..20).for_each(|_| audit.record(&event)));
            }
        });
        let path = folder.path().join("audit.jsonl.commands");
        assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 40);
    }
}

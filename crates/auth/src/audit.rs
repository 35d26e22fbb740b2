//! Audit events: one for every security-relevant action, never with a secret in it.

use std::path::Path;

use gatewright_audit::{AuditError, AuditFile};
use serde::Serialize;

/// Something that happened. Tokens appear by their `jti` only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AuditEvent {
    /// Milliseconds since the epoch.
    pub at_ms: u64,
    /// What happened: `login.ok`, `login.failed`, `consent.given`, `consent.denied`, `token.issued`, `token.refreshed`,
    /// `token.reuse_detected`, `code.reuse_detected`, `token.revoked`, `client.registered`, `client.deleted`, `logout`, `keys.rotated`, `keys.retired`, `admin.user_revoked`,
    /// `admin.client_revoked`, `passkey.login`, `passkey.added`, `passkey.renamed`, `passkey.removed`, `passkey.ended_everything`,
    /// `passkey.invited`, `passkey.clone_suspected`, `upstream.connected`, `upstream.refreshed`, `upstream.lost`,
    /// `provider.confirmed`, `provider.refused`.
    pub event: &'static str,
    /// Who did it: a subject, when known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The OAuth client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The caller's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// The token's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
}

/// Where audit events go.
pub trait AuditSink: Send + Sync {
    /// Keeps `event`.
    fn record(&self, event: &AuditEvent);
}

/// Writes events to the log, target `gatewright::audit`.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogAudit;

impl AuditSink for LogAudit {
    fn record(&self, event: &AuditEvent) {
        if !tracing::enabled!(target: "gatewright::audit", tracing::Level::INFO) {
            return;
        }
        let line = serde_json::to_string(event).unwrap_or_default();
        tracing::info!(target: "gatewright::audit", event = event.event, "{line}");
    }
}

/// Appends events to an audit file of its own (see `gatewright-audit`), a JSON object a line.
#[derive(Debug)]
pub struct FileAudit(AuditFile);

impl FileAudit {
    /// Opens `path` to append to.
    ///
    /// # Errors
    /// When the file cannot be read or written, or another process writes it.
    pub fn open(path: &Path) -> Result<Self, AuditError> {
        AuditFile::open(path).map(Self)
    }
}

impl AuditSink for FileAudit {
    fn record(&self, event: &AuditEvent) {
        self.0.append(event);
    }
}

#[cfg(test)]
mod tests {
    use gatewright_audit::{Broken, verify};

    use super::*;

    #[test]
    fn l08_a_changed_or_removed_line_shows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        for event in ["login.ok", "consent.given", "token.issued"] {
            // Opened anew each time: the chain goes on.
            let file = FileAudit::open(&path).unwrap();
            file.record(&AuditEvent { event, actor: Some("user:alice".into()), ..AuditEvent::default() });
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(verify(text.as_bytes()).unwrap().lines, 3);
        let changed = text.replace("consent.given", "consent.denied");
        assert!(matches!(verify(changed.as_bytes()), Err(Broken::Chain(2))));
        let removed: String = text.split_inclusive('\n').skip(1).collect();
        assert!(matches!(verify(removed.as_bytes()), Err(Broken::Chain(1))));
    }
}

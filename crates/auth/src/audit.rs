//! Audit events: one for every security-relevant action, never with a secret in it.

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

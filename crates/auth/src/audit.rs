//! Audit events: one for every security-relevant action, without secrets.

use serde::Serialize;

/// An audit event. Tokens appear by their `jti` only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AuditEvent {
    /// Milliseconds since the epoch.
    pub at_ms: u64,
    /// Name of the event: `login.ok`, `login.failed`, `consent.given`, `consent.denied`, `token.issued`, `token.refreshed`,
    /// `token.reuse_detected`, `code.reuse_detected`, `token.revoked`, `client.registered`, `client.updated`, `client.deleted`, `logout`, `keys.rotated`, `keys.retired`, `admin.user_revoked`,
    /// `admin.client_revoked`, `passkey.login`, `passkey.added`, `passkey.renamed`, `passkey.removed`, `passkey.ended_everything`,
    /// `passkey.invited`, `passkey.clone_suspected`, `upstream.connected`, `upstream.refreshed`, `upstream.lost`, `upstream.disconnected`, `session.ended`,
    /// `provider.confirmed`, `provider.refused`, `api_key.created`, `api_key.revoked`.
    pub event: &'static str,
    /// Subject, when known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The OAuth client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The caller's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// `jti` of the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
}

/// A sink of audit events.
pub trait AuditSink: Send + Sync {
    /// Records `event`.
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

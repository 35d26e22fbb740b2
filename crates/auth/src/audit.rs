//! Audit events: one for every security-relevant action, never with a secret in it.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    path::Path,
    sync::{Mutex, PoisonError},
};

use serde::Serialize;

use crate::crypto::sha256_hex;

/// Something that happened. Tokens appear by their `jti` only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AuditEvent {
    /// Milliseconds since the epoch.
    pub at_ms: u64,
    /// What happened: `login.ok`, `login.failed`, `consent.given`, `consent.denied`, `token.issued`, `token.refreshed`,
    /// `token.reuse_detected`, `code.reuse_detected`, `token.revoked`, `client.registered`, `client.deleted`, `logout`, `keys.rotated`, `admin.user_revoked`,
    /// `admin.client_revoked`.
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

/// Appends events to a file, a JSON object a line. Each line carries a digest over itself and the line before, so that a changed or
/// removed line shows ([`FileAudit::verify`]); a file cut short at its end does not.
#[derive(Debug)]
pub struct FileAudit(Mutex<(File, String)>);

impl FileAudit {
    /// Opens `path` to append to.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let before = match std::fs::read_to_string(path) {
            Ok(text) => text.lines().last().and_then(chain_of).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self(Mutex::new((file, before))))
    }

    /// The number of the first line that does not follow from the one before it, counted from 1.
    pub fn verify(text: &str) -> Option<usize> {
        let mut before = String::new();
        for (at, line) in text.lines().enumerate() {
            let chain = chain_of(line);
            let expected = line.rfind(",\"chain\":").map(|end| link(&before, &line[..end]));
            if chain.is_none() || chain != expected {
                return Some(at + 1);
            }
            before = chain.unwrap_or_default();
        }
        None
    }
}

fn link(before: &str, body: &str) -> String {
    sha256_hex(format!("{before}\n{body}"))
}

fn chain_of(line: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(value.get("chain")?.as_str()?.to_owned())
}

impl AuditSink for FileAudit {
    fn record(&self, event: &AuditEvent) {
        let Ok(text) = serde_json::to_string(event) else { return };
        let body = text.trim_end_matches('}');
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let chain = link(&held.1, body);
        let line = format!("{body},\"chain\":\"{chain}\"}}\n");
        match held.0.write_all(line.as_bytes()) {
            Ok(()) => held.1 = chain,
            Err(error) => tracing::error!(%error, "an audit event could not be written"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l08_a_changed_or_removed_line_shows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        for round in 0..2 {
            let sink = FileAudit::open(&path).unwrap();
            for n in 0..2 {
                sink.record(&AuditEvent {
                    at_ms: round * 10 + n,
                    event: "login.ok",
                    ..AuditEvent::default()
                });
            }
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 4);
        assert_eq!(FileAudit::verify(&text), None, "also across a restart");
        assert_eq!(FileAudit::verify(&text.replacen("login.ok", "logout", 1)), Some(1));
        let without: Vec<&str> = text.lines().enumerate().filter(|(n, _)| *n != 1).map(|(_, l)| l).collect();
        assert_eq!(FileAudit::verify(&without.join("\n")), Some(2));
    }
}

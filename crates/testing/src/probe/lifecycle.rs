//! Handshakes in each revision, and the end of the server.

use std::{os::unix::process::ExitStatusExt as _, time::Duration};

use gatewright_core::{Era, Revision};
use serde_json::{Value, json};

use super::{
    context::Probe,
    report::{Area, Finding},
};
use crate::{base::text::shorten, client::Mcp, fuzz::Severity, protocol::ClientError};

/// A revision that no server has.
const UNKNOWN: &str = "1999-01-01";

pub(super) async fn check(probe: &Probe<'_>) {
    let mut spoken = Vec::new();
    for revision in Revision::ALL {
        let name = revision.as_str();
        match connect(probe, name).await {
            Ok(mcp) => {
                if mcp.protocol_version() == name {
                    spoken.push(name);
                }
                probe.notes.check(Area::Lifecycle, None);
                if revision.era() == Era::Stateless {
                    // The lists of this era have members of their own.
                    let _ = mcp.tools().list().await;
                }
                probe.end(&mcp).await;
            }
            Err(error) if revision.era() == Era::Session => {
                let problem =
                    format!("`initialize` with revision {name} fails: {}", shorten(&error.to_string(), 300));
                let finding =
                    Finding::new(Area::Lifecycle, Severity::Warning, problem).request(initialize(name));
                probe.notes.check(Area::Lifecycle, Some(finding));
            }
            // A server of older revisions only.
            Err(_) => probe.notes.check(Area::Lifecycle, None),
        }
    }
    probe.notes.describe("revisions", json!(spoken));
    let finding = match connect(probe, UNKNOWN).await {
        Ok(mcp) => {
            probe.end(&mcp).await;
            None
        }
        Err(error) => {
            let problem = format!(
                "`initialize` with an unknown revision fails; a server answers it with a revision that it has: {}",
                shorten(&error.to_string(), 300)
            );
            Some(Finding::new(Area::Lifecycle, Severity::Warning, problem).request(initialize(UNKNOWN)))
        }
    };
    probe.notes.check(Area::Lifecycle, finding);
    ends_with_its_input(probe);
}

pub(super) async fn connect(probe: &Probe<'_>, revision: &str) -> Result<Mcp, ClientError> {
    let timeout = probe.call_timeout().max(Duration::from_secs(5));
    probe.target.client().observe().protocol_version(revision).timeout(timeout).connect().await
}

/// The exit of the last process, whose input has ended.
fn ends_with_its_input(probe: &Probe<'_>) {
    let Some(status) = probe.target.server().and_then(crate::server::Server::last_exit) else { return };
    let finding = status.signal().map(|signal| {
        let problem = format!("the server did not end within 1 s of the end of its standard input, and was ended by signal {signal}");
        Finding::new(Area::Lifecycle, Severity::Note, problem)
    });
    probe.notes.check(Area::Lifecycle, finding);
}

fn initialize(revision: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "gatewright-testing", "version": "1"},
    }})
}

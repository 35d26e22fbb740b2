//! A probe on its way: its clients, and what they notice.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    notebook::Notebook,
    options::ProbeOptions,
    report::{Area, Finding},
};
use crate::{
    base::text::shorten,
    client::Mcp,
    fuzz::{Severity, Target, weight},
    protocol::{ClientError, RpcRequest, RpcResponse},
    shapes::Rule,
};

/// Time to end a client.
const END: Duration = Duration::from_secs(10);

/// A probe on its way.
pub(super) struct Probe<'a> {
    pub(super) target: &'a Target,
    pub(super) options: &'a ProbeOptions,
    pub(super) notes: &'a Notebook,
    pub(super) deadline: Duration,
}

impl Probe<'_> {
    pub(super) fn call_timeout(&self) -> Duration {
        self.options.fuzz.call_timeout
    }

    /// Connects a client that keeps violations and does not fail with them.
    pub(super) async fn connect(&self) -> Result<Mcp, ClientError> {
        self.target.connect(self.call_timeout()).await
    }

    /// Ends a client. What it noticed on the wire becomes findings.
    pub(super) async fn end(&self, mcp: &Mcp) {
        self.keep_violations(mcp);
        for noticed in mcp.logs().violations().iter().take(5) {
            let problem = format!("on the wire: {}", shorten(noticed, 300));
            self.notes.find(Finding::new(Area::Protocol, Severity::Warning, problem));
        }
        let _ = tokio::time::timeout(END, mcp.disconnect()).await;
    }

    /// Keeps the violations of rules since the last time.
    pub(super) fn keep_violations(&self, mcp: &Mcp) {
        let revision = mcp.protocol_version();
        for one in mcp.take_violations() {
            let problem = match one.rule {
                // A server that sends a wrong one does so with each answer.
                Rule::ContentType => one.to_string(),
                _ => format!("`{}` ({revision}): {one}", one.method),
            };
            let finding = Finding::new(Area::Shapes, weight(one.rule), problem);
            self.notes.find(finding.request(json!({"jsonrpc": "2.0", "id": 1, "method": one.method})));
        }
    }
}

/// One check of a request: sends it, and makes the finding of its outcome.
pub(super) async fn ask(mcp: &Mcp, request: RpcRequest) -> (Value, Result<RpcResponse, ClientError>) {
    let message = request.message();
    let response = mcp.raw().request(request).await;
    mcp.trace().clear();
    (message, response)
}

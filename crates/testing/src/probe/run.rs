//! The course of a probe: one area after the other, each within its time.

use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{
    auth,
    context::Probe,
    http, lifecycle,
    notebook::Notebook,
    options::ProbeOptions,
    protocol,
    report::{Area, Finding, ProbeReport},
    shapes,
};
use crate::{
    client::Mcp,
    fuzz::{LIST, Severity, Target, fuzz},
    protocol::ClientError,
};

/// Time of each area but the tools.
const AREA: Duration = Duration::from_secs(40);
/// Time to stop the server at the end.
const STOP: Duration = Duration::from_secs(10);

/// Tries a server, and reports what was found. Ends at its deadline at the latest, plus 10 s to stop the server.
pub fn probe<'a>(target: &'a Target, options: &'a ProbeOptions) -> BoxFuture<'a, ProbeReport> {
    Box::pin(async move {
        let notes = Notebook::new();
        let deadline = options.deadline.unwrap_or(options.fuzz.time + Duration::from_secs(90));
        let probe = Probe { target, options, notes: &notes, deadline };
        let stopped = match tokio::time::timeout(deadline, probe.run()).await {
            Ok(stopped) => stopped,
            Err(_) => Some(format!("the probe took longer than {deadline:?}; what follows was not tried")),
        };
        let _ = tokio::time::timeout(STOP, target.stop()).await;
        notes.report(target.to_string(), stopped)
    })
}

impl Probe<'_> {
    /// Returns the reason if the probe ends early.
    async fn run(&self) -> Option<String> {
        if self.target.endpoint().is_some() {
            self.area(Area::Auth, AREA, auth::check(self)).await;
        } else {
            let reason = "the server runs over standard input and output";
            self.notes.leave_out(Area::Auth, reason);
            self.notes.leave_out(Area::Http, reason);
        }
        let mcp = match self.connect().await {
            Ok(mcp) => mcp,
            Err(error) => {
                let refused = matches!(error, ClientError::Refused { .. });
                let hint = if refused { "; give a token with `--token`" } else { "" };
                if !refused {
                    let finding = Finding::new(
                        Area::Lifecycle,
                        Severity::Error,
                        format!("no client connects: {error}"),
                    );
                    self.notes.check(Area::Lifecycle, Some(finding));
                }
                return Some(format!("the server could not be reached as a client{hint}: {error}"));
            }
        };
        self.notes.reached(described(&mcp));
        self.area(Area::Shapes, AREA, shapes::check(self, &mcp)).await;
        self.area(Area::Protocol, AREA, protocol::check(self, mcp.clone())).await;
        self.end(&mcp).await;
        self.area(Area::Lifecycle, AREA, lifecycle::check(self)).await;
        if self.target.endpoint().is_some() {
            self.area(Area::Http, AREA, http::check(self)).await;
        }
        let tools = self.options.fuzz.time + self.call_timeout() * 2;
        self.area(Area::Tools, tools, self.tools()).await;
        None
    }

    /// Does the checks of an area, as long as there is time.
    async fn area(&self, area: Area, limit: Duration, checks: impl Future<Output = ()>) {
        let limit = limit.min(self.deadline.saturating_sub(self.notes.elapsed()));
        if tokio::time::timeout(limit, checks).await.is_err() {
            let problem =
                format!("the checks did not end within {limit:?}: the server or this machine is slow");
            self.notes.check(area, Some(Finding::new(area, Severity::Note, problem)));
        }
    }

    async fn tools(&self) {
        let report = match fuzz(self.target, &self.options.fuzz).await {
            Ok(report) => report,
            Err(error) => {
                let finding = Finding::new(
                    Area::Tools,
                    Severity::Error,
                    format!("the tools cannot be called: {error}"),
                );
                return self.notes.check(Area::Tools, Some(finding));
            }
        };
        match report.calls() {
            0 if report.tools.is_empty() => self.notes.leave_out(Area::Tools, "the server has no tools"),
            0 => self.notes.leave_out(
                Area::Tools,
                "no tool says that it does no harm; `--destructive` calls all, `--tool` one",
            ),
            calls => (0..calls).for_each(|_| self.notes.check(Area::Tools, None)),
        }
        // Findings of the list of tools are those of shapes.
        for one in report.findings.iter().filter(|one| one.tool != LIST) {
            let params = json!({"name": one.tool, "arguments": one.arguments});
            let request = match one.arguments.is_null() {
                true => Value::Null,
                false => json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}),
            };
            let finding = Finding::new(Area::Tools, one.severity, format!("`{}`: {}", one.tool, one.problem));
            self.notes.find(finding.request(request).answer(&one.answer));
        }
        self.notes.fuzzed(report);
    }
}

fn described(mcp: &Mcp) -> Value {
    json!({
        "info": mcp.server_info(),
        "revision": mcp.protocol_version(),
        "capabilities": mcp.capabilities(),
    })
}

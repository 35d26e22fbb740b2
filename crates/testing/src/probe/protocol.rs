//! What every revision requires: answers to wrong requests, and a server that goes on after them.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    context::{Probe, ask},
    report::{Area, Finding},
};
use crate::{
    client::Mcp,
    fuzz::Severity::{self, Error, Note, Warning},
    protocol::{ClientError, RpcRequest, RpcResponse},
};

/// Time for an answer to text that is no JSON; a server may ignore it.
const MALFORMED: Duration = Duration::from_secs(2);

pub(super) async fn check(probe: &Probe<'_>, mcp: Mcp) {
    let checks = Checks { probe, mcp };
    checks.methods().await;
    checks.lists().await;
    if checks.mcp.has_capability("tools") {
        checks.tools().await;
    }
    if checks.mcp.has_capability("resources") {
        let unknown = json!({"uri": "gatewright://unknown/resource"});
        checks.refuses("an unknown resource", "resources/read", unknown, Warning, &[-32002, -32602]).await;
    }
    if checks.mcp.has_capability("prompts") {
        checks
            .refuses(
                "an unknown prompt",
                "prompts/get",
                json!({"name": "gatewright-unknown"}),
                Warning,
                &[-32602],
            )
            .await;
    }
    checks.at_once().await;
    checks.goes_on().await;
}

struct Checks<'a> {
    probe: &'a Probe<'a>,
    mcp: Mcp,
}

impl Checks<'_> {
    fn keep(&self, finding: Option<Finding>) {
        self.probe.notes.check(Area::Protocol, finding);
    }

    fn finding(&self, severity: Severity, problem: String, request: Value, answer: &str) -> Option<Finding> {
        Some(Finding::new(Area::Protocol, severity, problem).request(request).answer(answer))
    }

    async fn methods(&self) {
        let (request, response) = ask(&self.mcp, RpcRequest::new("ping", json!({})).id("a text")).await;
        self.keep(match response {
            Ok(answer) if answer.result().is_some() => None,
            Ok(answer) => self.finding(
                Warning,
                "`ping` is not answered with a result".into(),
                request,
                &answer.raw.to_string(),
            ),
            Err(error) => {
                let problem = format!("`ping` with a text as id gets no answer with this id: {error}");
                self.finding(Error, problem, request, "")
            }
        });
        self.refuses("an unknown method", "gatewright/unknown", json!({}), Warning, &[-32601]).await;
        let _ = self.mcp.raw().notify("notifications/gatewright/unknown", json!({})).await;
        if self.mcp.has_capability("logging") {
            self.answers("logging/setLevel", json!({"level": "info"}), "logging").await;
        }
    }

    /// Declared capabilities are there, and cursors that were not given are refused.
    async fn lists(&self) {
        for (capability, method) in
            [("tools", "tools/list"), ("resources", "resources/list"), ("prompts", "prompts/list")]
        {
            if self.mcp.has_capability(capability) {
                self.answers(method, json!({}), capability).await;
                let cursor = json!({"cursor": "gatewright-unknown"});
                self.refuses("an unknown cursor", method, cursor, Note, &[-32602]).await;
            }
        }
    }

    async fn tools(&self) {
        let unknown = json!({"name": "gatewright_unknown", "arguments": {}});
        self.refuses("an unknown tool", "tools/call", unknown, Error, &[]).await;
        self.refuses("a call without the name of a tool", "tools/call", json!({"arguments": {}}), Error, &[])
            .await;
        self.refuses(
            "arguments that are no object",
            "tools/call",
            json!({"name": "x", "arguments": [1]}),
            Warning,
            &[],
        )
        .await;
    }

    async fn answers(&self, method: &str, params: Value, capability: &str) {
        let (request, response) = ask(&self.mcp, RpcRequest::new(method, params)).await;
        let problem = format!("the server declares `{capability}`, but `{method}` gives no result");
        self.keep(match response {
            Ok(answer) if answer.result().is_some() => None,
            Ok(answer) => self.finding(Error, problem, request, &answer.raw.to_string()),
            Err(error) => self.finding(Error, problem, request, &error.to_string()),
        });
    }

    /// A wrong request gets an error, with one of these codes if there are some.
    async fn refuses(&self, what: &str, method: &str, params: Value, severity: Severity, codes: &[i64]) {
        let (request, response) = ask(&self.mcp, RpcRequest::new(method, params)).await;
        let answer = response.as_ref().map(|answer| answer.raw.to_string()).unwrap_or_default();
        let finding = match &response {
            Ok(response) => match response.error() {
                Some(error) if codes.is_empty() || codes.contains(&error.code) => None,
                Some(error) => {
                    let problem = format!("{what} gets the error code {}, not {}", error.code, codes[0]);
                    self.finding(Note, problem, request, &answer)
                }
                None if is_tool_error(response) => None,
                None => {
                    self.finding(severity, format!("{what} gets a result, not an error"), request, &answer)
                }
            },
            Err(ClientError::Http { status, body }) if *status >= 500 => {
                self.finding(Error, format!("{what} gets HTTP {status}"), request, body)
            }
            Err(ClientError::Http { .. } | ClientError::Refused { .. }) => None,
            Err(error) => self.finding(Error, format!("{what} gets no answer: {error}"), request, ""),
        };
        self.keep(finding);
    }

    /// Answers to requests at once go to the right ones.
    async fn at_once(&self) {
        let pings =
            (0..10).map(|number| ask(&self.mcp, RpcRequest::new("ping", json!({})).id(1000 + number)));
        let answers = futures::future::join_all(pings).await;
        let lost = answers.iter().filter(|(_, answer)| answer.is_err()).count();
        let request = json!({"jsonrpc": "2.0", "id": 1000, "method": "ping"});
        self.keep(match lost {
            0 => None,
            lost => self.finding(Error, format!("of 10 requests at once {lost} got no answer"), request, ""),
        });
    }

    /// Text that is no JSON neither ends nor blocks the server.
    async fn goes_on(&self) {
        let text = "{oops";
        let sent = tokio::time::timeout(MALFORMED, self.mcp.raw().send_raw(text)).await;
        let is_told = matches!(&sent, Ok(Ok(answer)) if answer.error().is_some_and(|error| error.code == -32700))
            || matches!(&sent, Ok(Err(ClientError::Http { status: 400..500, .. })));
        let (request, response) = ask(&self.mcp, RpcRequest::new("ping", json!({})).id("after")).await;
        self.keep(match response {
            Err(error) => {
                let problem =
                    format!("after text that is no JSON the server answers nothing any more: {error}");
                self.finding(Error, problem, json!([text, request]), "")
            }
            Ok(_) if !is_told => {
                let problem = "text that is no JSON is not answered with a parse error (-32700)";
                self.finding(Note, problem.into(), json!(text), "")
            }
            Ok(_) => None,
        });
    }
}

fn is_tool_error(response: &RpcResponse) -> bool {
    response.result().is_some_and(|result| result["isError"] == true)
}

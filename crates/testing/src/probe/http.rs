//! What Streamable HTTP requires: content types, sessions, `Origin`.

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::{
    context::Probe,
    report::{Area, Finding},
};
use crate::{
    base::{net::direct_client, text::shorten},
    fuzz::Severity::{self, Error, Note, Warning},
};

/// Time of one exchange.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read.
const MOST_BYTES: usize = 1 << 20;

/// An HTTP request, as it goes into reports.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    method: Method,
    url: String,
    headers: Vec<(&'static str, String)>,
    body: Option<String>,
}

/// Status, headers and the beginning of the body of an answer.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) status: u16,
    headers: reqwest::header::HeaderMap,
    pub(super) body: String,
}

impl Sent {
    pub(super) fn get(url: &str) -> Self {
        Self {
            method: Method::GET,
            url: url.to_owned(),
            headers: vec![("accept", "application/json".into())],
            body: None,
        }
    }

    /// A message to the endpoint, as clients send it.
    pub(super) fn post(url: &str, body: &Value) -> Self {
        let headers = vec![
            ("content-type", "application/json".into()),
            ("accept", "application/json, text/event-stream".into()),
        ];
        Self { method: Method::POST, url: url.to_owned(), headers, body: Some(body.to_string()) }
    }

    /// Sets a header; an empty value takes it out.
    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        let value = value.into();
        self.headers.retain(|(known, _)| *known != name);
        if !value.is_empty() {
            self.headers.push((name, value));
        }
        self
    }

    fn body(mut self, body: &str) -> Self {
        self.body = Some(body.to_owned());
        self
    }

    fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// The request as JSON, without its token.
    pub(super) fn shown(&self) -> Value {
        let shown = |name: &str, value: &str| {
            if name == "authorization" { "Bearer …".to_owned() } else { value.to_owned() }
        };
        let headers: serde_json::Map<String, Value> = self
            .headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), shown(name, value).into()))
            .collect();
        let body =
            self.body.as_deref().map(|body| serde_json::from_str(body).unwrap_or_else(|_| json!(body)));
        json!({"method": self.method.as_str(), "url": self.url, "headers": headers, "body": body})
    }

    pub(super) async fn send(&self) -> Result<Received, String> {
        let client = direct_client(&self.url).map_err(|error| error.to_string())?;
        let mut request = client.request(self.method.clone(), &self.url).timeout(TIMEOUT);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = &self.body {
            request = request.body(body.clone());
        }
        let response = request.send().await.map_err(|error| crate::base::net::root_cause(&error))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Received { status, headers, body: beginning(response).await })
    }
}

/// The body as far as it comes: an event stream may stay open.
async fn beginning(mut response: Response) -> String {
    let mut bytes = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MOST_BYTES {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Received {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(super) fn shown(&self) -> String {
        format!("HTTP {} {}", self.status, shorten(&self.body, 300))
    }
}

/// The first message of a client.
pub(super) fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "gatewright-testing", "version": "1"},
    }})
}

pub(super) async fn check(probe: &Probe<'_>) {
    let Some(url) = probe.target.endpoint() else { return };
    let token = probe.target.bearer().map(|token| format!("Bearer {token}")).unwrap_or_default();
    let opened = Sent::post(url, &initialize()).header("authorization", &token).send().await;
    let session =
        opened.ok().and_then(|answer| answer.header("mcp-session-id").map(str::to_owned)).unwrap_or_default();
    let post = |body: &Value| {
        Sent::post(url, body)
            .header("authorization", &token)
            .header("mcp-session-id", &session)
            .header("mcp-protocol-version", "2025-11-25")
    };
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let checks = Checks { probe };
    let is_local = url::Url::parse(url)
        .is_ok_and(|url| matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")));

    checks
        .status(post(&initialized), Warning, "a notification is answered with 202", |status| status == 202)
        .await;
    let origin = if is_local { Error } else { Warning };
    let told = "a request of another site (`Origin`) is refused with 403, against DNS rebinding";
    checks
        .status(post(&ping).header("origin", "https://evil.example"), origin, told, |status| {
            (400..500).contains(&status)
        })
        .await;
    let told = "an unknown `MCP-Protocol-Version` is refused with 400";
    checks
        .status(post(&ping).header("mcp-protocol-version", "1999-01-01"), Warning, told, |status| {
            status == 400
        })
        .await;
    let told = "a body that is no JSON is refused with 400";
    checks.status(post(&ping).body("{oops"), Warning, told, |status| (400..500).contains(&status)).await;
    let told = "a body of another type than JSON is refused";
    checks
        .status(post(&ping).header("content-type", "text/plain"), Note, told, |status| {
            (400..500).contains(&status)
        })
        .await;
    let told = "a client that accepts neither JSON nor an event stream is refused with 406";
    checks
        .status(post(&ping).header("accept", "text/html"), Note, told, |status| (400..500).contains(&status))
        .await;
    let told = "GET opens an event stream or is refused with 405";
    let get = post(&ping).method(Method::GET).header("accept", "text/event-stream");
    let get = Sent { body: None, ..get };
    // A stream may send nothing before its first event.
    checks.status(get, Note, told, |status| status == 200 || status == 405).await;
    if !session.is_empty() {
        let told = "an unknown session is refused with 404";
        checks
            .status(post(&ping).header("mcp-session-id", "gatewright-unknown"), Warning, told, |status| {
                status == 404
            })
            .await;
        let told = "a request without the session is refused with 400";
        checks
            .status(post(&ping).header("mcp-session-id", ""), Note, told, |status| {
                (400..500).contains(&status)
            })
            .await;
        let end = Sent { body: None, ..post(&ping).method(Method::DELETE) };
        let told = "DELETE ends the session or is refused with 405";
        checks.status(end, Note, told, |status| (200..300).contains(&status) || status == 405).await;
    }
    checks.mismatches(url, &token).await;
}

/// Checks of statuses.
pub(super) struct Checks<'a> {
    pub(super) probe: &'a Probe<'a>,
}

impl Checks<'_> {
    /// Checks the status of an answer. `told` says what is right.
    pub(super) async fn status(
        &self,
        sent: Sent,
        severity: Severity,
        told: &str,
        is_right: impl Fn(u16) -> bool,
    ) {
        let answer = sent.send().await;
        let finding = |severity, problem: String, answer: &str| {
            Some(Finding::new(Area::Http, severity, problem).request(sent.shown()).answer(answer))
        };
        self.probe.notes.check(
            Area::Http,
            match &answer {
                Ok(answer) if is_right(answer.status) => None,
                Ok(answer) if answer.status >= 500 => {
                    finding(Error, format!("HTTP {}, where {told}", answer.status), &answer.shown())
                }
                Ok(answer) => {
                    finding(severity, format!("HTTP {}, where {told}", answer.status), &answer.shown())
                }
                Err(error) => finding(Warning, format!("no answer, where {told}: {error}"), ""),
            },
        );
    }
}

//! The requests of a client and their responses.

use std::{
    sync::Mutex,
    time::{Instant, SystemTime},
};

use serde_json::Value;

use crate::{
    base::{lock, text::shorten},
    matchers::{AsSubject, Recorded, Subject},
    protocol::{ClientError, RpcRequest, RpcResponse},
};

/// A request and its outcome.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RequestTrace {
    /// The method.
    pub method: String,
    /// The parameters, as the test sent them.
    pub params: Value,
    /// The response, as the test received it.
    pub response: Option<RpcResponse>,
    /// The reason if there was no response.
    pub failure: Option<String>,
    /// True if the connection was missing or broke.
    #[serde(skip)]
    pub(crate) disconnected: bool,
    /// True if a mock or an interceptor answered.
    pub mocked: bool,
    /// Duration in milliseconds.
    pub duration_ms: f64,
    /// Time of the request.
    pub timestamp: SystemTime,
}

impl std::fmt::Display for RequestTrace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let by = if self.mocked { ", mocked" } else { "" };
        write!(
            f,
            "{} {} ({:.1} ms{by})",
            self.method,
            shorten(&self.params.to_string(), 400),
            self.duration_ms
        )?;
        match (&self.response, &self.failure) {
            (Some(response), _) => {
                let part = response.result().or(response.raw.get("error")).unwrap_or(&response.raw);
                let kind = if response.raw.get("error").is_some() { "error" } else { "result" };
                write!(f, "\n    {kind} {}", shorten(&part.to_string(), 800))
            }
            (None, Some(failure)) => write!(f, "\n    no answer: {failure}"),
            (None, None) => Ok(()),
        }
    }
}

macro_rules! recorded {
    ($($list:ty),+) => {$(
        /// The requests as a recorded list, with their durations.
        impl AsSubject for $list {
            fn as_subject(&self) -> Subject<'_> {
                let durations_ms = self.iter().map(|one| one.duration_ms).collect();
                Subject::Recorded(Recorded { durations_ms, ..Recorded::of(self) })
            }
        }
    )+};
}

recorded!([RequestTrace], Vec<RequestTrace>);

/// The start of a request, for its entry in the trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timer {
    started: Instant,
    timestamp: SystemTime,
}

impl Timer {
    pub(super) fn start() -> Self {
        Self { started: Instant::now(), timestamp: SystemTime::now() }
    }

    pub(super) fn elapsed_ms(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * 1e3
    }

    /// The entry of a request that ends now.
    pub(super) fn trace(
        self,
        request: RpcRequest,
        outcome: &Result<RpcResponse, ClientError>,
        mocked: bool,
    ) -> RequestTrace {
        RequestTrace {
            method: request.method,
            params: request.params,
            response: outcome.as_ref().ok().cloned(),
            failure: outcome.as_ref().err().map(ToString::to_string),
            disconnected: matches!(outcome, Err(ClientError::Closed(_))),
            mocked,
            duration_ms: self.elapsed_ms(),
            timestamp: self.timestamp,
        }
    }

    /// The entry of a request that was abandoned without a response.
    pub(super) fn abandoned(self, request: RpcRequest, reason: String) -> RequestTrace {
        RequestTrace {
            method: request.method,
            params: request.params,
            response: None,
            failure: Some(reason),
            disconnected: false,
            mocked: false,
            duration_ms: self.elapsed_ms(),
            timestamp: self.timestamp,
        }
    }
}

/// The requests of one client, without the handshake.
#[derive(Debug, Default)]
pub struct Trace {
    entries: Mutex<Vec<RequestTrace>>,
}

impl Trace {
    /// All requests, oldest first.
    pub fn all(&self) -> Vec<RequestTrace> {
        lock(&self.entries).clone()
    }

    /// The last request that was answered or failed.
    pub fn last(&self) -> Option<RequestTrace> {
        lock(&self.entries).last().cloned()
    }

    /// Removes all requests.
    pub fn clear(&self) {
        lock(&self.entries).clear();
    }

    pub(super) fn push(&self, entry: RequestTrace) {
        lock(&self.entries).push(entry);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    use super::*;
    use crate::{client::Mcp, protocol::RpcRequest};

    /// Answers `initialize`, fails at `fail` with a misleading message, and closes the connection at any other method.
    async fn server(stream: tokio::io::DuplexStream) {
        let (reader, mut writer) = tokio::io::split(stream);
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let asked: Value = serde_json::from_str(&line).unwrap();
            let info = json!({"name": "n", "version": "1"});
            let mut answer = match asked["method"].as_str().unwrap() {
                "initialize" => {
                    json!({"result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}})
                }
                "fail" => json!({"error": {"code": -32000, "message": "not connected: to the database"}}),
                "notifications/initialized" => continue,
                _ => return,
            };
            (answer["jsonrpc"], answer["id"]) = ("2.0".into(), asked["id"].clone());
            writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn tells_a_broken_connection_from_an_error_with_similar_words() {
        let (client_end, server_end) = tokio::io::duplex(4096);
        tokio::spawn(server(server_end));
        let (reader, writer) = tokio::io::split(client_end);
        let mcp = Mcp::lines(reader, writer).connect().await.unwrap();
        let ask = async |method: &str| {
            let _ = mcp.raw().request(RpcRequest::new(method, json!({}))).await;
            mcp.trace().last().unwrap()
        };
        let failed = ask("fail").await;
        assert!(failed.to_string().contains("not connected: to the database") && !failed.disconnected);
        assert!(ask("go away").await.disconnected);
        assert!(ask("fail").await.disconnected, "nobody is there any more");
    }
}

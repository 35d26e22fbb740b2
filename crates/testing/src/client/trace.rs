//! What was asked and answered.

use std::{sync::Mutex, time::SystemTime};

use serde_json::Value;

use crate::{lock, records::RpcResponse, shorten};

/// One request and what became of it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RequestTrace {
    /// What was asked.
    pub method: String,
    /// With what, as the test made it.
    pub params: Value,
    /// The answer, as the test got it; none when there was no answer.
    pub response: Option<RpcResponse>,
    /// Why there was no answer.
    pub failure: Option<String>,
    /// Whether that was for want of a connection.
    #[serde(skip)]
    pub(crate) disconnected: bool,
    /// Whether a mock or an interceptor answered.
    pub mocked: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
    /// When it was made.
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

/// The requests of one client. The handshake is not among them.
#[derive(Debug, Default)]
pub struct Trace {
    entries: Mutex<Vec<RequestTrace>>,
}

impl Trace {
    /// All, oldest first.
    pub fn all(&self) -> Vec<RequestTrace> {
        lock(&self.entries).clone()
    }

    /// The last one that was answered or failed.
    pub fn last(&self) -> Option<RequestTrace> {
        lock(&self.entries).last().cloned()
    }

    /// Forgets all.
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
    use crate::{Mcp, RpcRequest};

    /// Greets, fails at `fail` with words of its own, and goes away at anything else.
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
    async fn a_connection_that_broke_is_told_from_a_failure_with_such_words() {
        let (ours, theirs) = tokio::io::duplex(4096);
        tokio::spawn(server(theirs));
        let (reader, writer) = tokio::io::split(ours);
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

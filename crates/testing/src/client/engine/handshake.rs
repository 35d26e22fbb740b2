//! The first request of a connection: `initialize`, or `server/discover` from 2026-07-28.

use serde_json::json;

use super::{Engine, ServerDescription};
use crate::{
    base::lock,
    client::{
        connection::Connection, initialize, pending_requests::Response, settings::Settings,
        transport::Outgoing,
    },
    protocol::{ClientError, RpcRequest},
};

impl Engine {
    /// Sends `initialize`, or `server/discover` in stateless revisions, and keeps the description of the server.
    pub(super) async fn handshake(&self, connection: &Connection) -> Result<(), ClientError> {
        let version = &self.settings.version;
        let (method, params) = if self.is_stateless() {
            connection.transport.negotiated(version).await;
            ("server/discover", json!({}))
        } else {
            let Settings { capabilities, client_info, .. } = &self.settings;
            let params =
                json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client_info});
            ("initialize", params)
        };
        let request = self.numbered(method, params);
        let response = self.first_request(connection, &request).await?;
        let result = response.clone().into_result(method)?;
        if !self.is_stateless() {
            initialize::validate(version, &result)?;
        }
        let info = match result.get("serverInfo") {
            Some(info) => info.clone(),
            None => result["_meta"]["io.modelcontextprotocol/serverInfo"].clone(),
        };
        let negotiated = match self.is_stateless() {
            true => version.clone(),
            false => result["protocolVersion"].as_str().unwrap_or(version).to_owned(),
        };
        self.recorder.shapes.begin(&negotiated, &result["capabilities"]);
        self.recorder.shapes.answer(&request, &response)?;
        *lock(&self.server) = ServerDescription {
            info,
            version: negotiated.clone(),
            capabilities: result["capabilities"].clone(),
            instructions: result["instructions"].as_str().map(str::to_owned),
        };
        if !self.is_stateless() {
            let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            connection.transport.negotiated(&negotiated).await;
            connection.transport.send(Outgoing::message(&initialized)).await?;
        }
        Ok(())
    }

    /// Sends the first request of a connection. For a server that starts with the connection the startup timeout applies, if
    /// set, even if it is shorter than the timeout of later requests.
    async fn first_request(&self, connection: &Connection, request: &RpcRequest) -> Response {
        let Some(startup) = &self.settings.startup else { return self.send(connection, request, true).await };
        let timeout = startup.timeout.unwrap_or_else(|| *lock(&self.timeout));
        let response = self.send_within(connection, request, true, timeout).await;
        response.map_err(|error| match error {
            ClientError::TimedOut { method, after, hint } => {
                ClientError::TimedOut { method, after, hint: format!("{hint}\n{}", (startup.details)()) }
            }
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    use crate::{
        client::{Mcp, McpBuilder, Startup},
        protocol::ClientError,
    };

    const RESULT: &str = r#"{"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "slow", "version": "1"}}"#;

    /// A client of a server that is started for it and needs `seconds` to respond.
    fn client_of_slow_server(seconds: u64, startup_timeout: Option<u64>) -> McpBuilder {
        let (client_end, server_end) = tokio::io::duplex(4096);
        tokio::spawn(async move {
            let (reader, mut writer) = tokio::io::split(server_end);
            let mut lines = BufReader::new(reader).lines();
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            while let Ok(Some(line)) = lines.next_line().await {
                let asked: Value = serde_json::from_str(&line).unwrap();
                let result: Value = serde_json::from_str(RESULT).unwrap();
                let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
                if asked["method"] == "initialize"
                    && writer.write_all(format!("{answer}\n").as_bytes()).await.is_err()
                {
                    return;
                }
            }
        });
        let (reader, writer) = tokio::io::split(client_end);
        let timeout = startup_timeout.map(Duration::from_secs);
        Mcp::lines(reader, writer).startup(Startup { timeout, details: Box::new(String::new) })
    }

    #[tokio::test(start_paused = true)]
    async fn the_startup_timeout_applies_to_the_first_response_only() {
        assert!(
            client_of_slow_server(40, Some(60)).connect().await.is_ok(),
            "longer than the timeout of other responses"
        );
        let hasty = client_of_slow_server(40, Some(60)).timeout(Duration::from_secs(1));
        assert!(hasty.connect().await.is_ok(), "the shorter timeout is for later responses");
        let patient = client_of_slow_server(40, None).timeout(Duration::from_secs(50));
        assert!(patient.connect().await.is_ok(), "without a startup timeout the usual one applies");
        for (needed, startup, waited) in [(40, None, 30), (70, Some(60), 60), (2, Some(1), 1)] {
            let error = client_of_slow_server(needed, startup).connect().await.unwrap_err();
            let ClientError::TimedOut { after, .. } = error else { panic!("{error}") };
            assert_eq!(after, Duration::from_secs(waited));
        }
    }
}

//! The first request of a connection: `initialize`, or `server/discover` from 2026-07-28.

use serde_json::json;

use super::{Core, Facts, result_of};
use crate::{
    ClientError,
    client::{connect::Settings, greeting, link::Link, waiting::Answer},
    lock,
    mock::RpcRequest,
    wire::Outgoing,
};

impl Core {
    /// `initialize` in the older era, `server/discover` in the newer one.
    pub(super) async fn greet(&self, link: &Link) -> Result<(), ClientError> {
        let version = &self.settings.version;
        let (method, params) = if self.stateless() {
            link.wire.agreed(version).await;
            ("server/discover", json!({}))
        } else {
            let Settings { capabilities, client_info, .. } = &self.settings;
            let hello =
                json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client_info});
            ("initialize", hello)
        };
        let answer = self.greeted(link, &self.numbered(method, params)).await?;
        let result = result_of(method, answer)?;
        if !self.stateless() {
            greeting::check(version, &result)?;
        }
        let info = match result.get("serverInfo") {
            Some(info) => info.clone(),
            None => result["_meta"]["io.modelcontextprotocol/serverInfo"].clone(),
        };
        let agreed = match self.stateless() {
            true => version.clone(),
            false => result["protocolVersion"].as_str().unwrap_or(version).to_owned(),
        };
        *lock(&self.facts) = Facts {
            server_info: info,
            version: agreed.clone(),
            capabilities: result["capabilities"].clone(),
            instructions: result["instructions"].as_str().map(str::to_owned),
        };
        if !self.stateless() {
            let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            link.wire.agreed(&agreed).await;
            link.wire.send(Outgoing::message(&ready)).await?;
        }
        Ok(())
    }

    /// The answer to the first request of a connection. A server that starts with the connection has the time to start for it,
    /// where the test gives one, whether that is more or less than the client waits otherwise.
    async fn greeted(&self, link: &Link, request: &RpcRequest) -> Answer {
        let Some(starting) = &self.settings.starting else { return self.over(link, request, true).await };
        let after = starting.timeout.unwrap_or_else(|| *lock(&self.timeout));
        let answer = self.over_within(link, request, true, after).await;
        answer.map_err(|error| match error {
            ClientError::TimedOut { method, after, hint } => {
                ClientError::TimedOut { method, after, hint: format!("{hint}\n{}", (starting.details)()) }
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

    use crate::{ClientError, Mcp, McpBuilder, client::Starting};

    const GREETING: &str = r#"{"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "slow", "version": "1"}}"#;

    /// A client of a server that is started for it and needs `seconds` until it answers.
    fn needs(seconds: u64, startup_timeout: Option<u64>) -> McpBuilder {
        let (ours, theirs) = tokio::io::duplex(4096);
        tokio::spawn(async move {
            let (reader, mut writer) = tokio::io::split(theirs);
            let mut lines = BufReader::new(reader).lines();
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            while let Ok(Some(line)) = lines.next_line().await {
                let asked: Value = serde_json::from_str(&line).unwrap();
                let result: Value = serde_json::from_str(GREETING).unwrap();
                let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
                if asked["method"] == "initialize"
                    && writer.write_all(format!("{answer}\n").as_bytes()).await.is_err()
                {
                    return;
                }
            }
        });
        let (reader, writer) = tokio::io::split(ours);
        let timeout = startup_timeout.map(Duration::from_secs);
        Mcp::lines(reader, writer).starting(Starting { timeout, details: Box::new(String::new) })
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_has_the_time_to_start_that_the_test_gives_it() {
        assert!(needs(40, Some(60)).connect().await.is_ok(), "longer than any other answer may take");
        let hasty = needs(40, Some(60)).timeout(Duration::from_secs(1));
        assert!(hasty.connect().await.is_ok(), "later answers are to come sooner");
        let patient = needs(40, None).timeout(Duration::from_secs(50));
        assert!(patient.connect().await.is_ok(), "as long as for any other answer");
        for (needed, startup, waited) in [(40, None, 30), (70, Some(60), 60), (2, Some(1), 1)] {
            let error = needs(needed, startup).connect().await.unwrap_err();
            let ClientError::TimedOut { after, .. } = error else { panic!("{error}") };
            assert_eq!(after, Duration::from_secs(waited));
        }
    }
}

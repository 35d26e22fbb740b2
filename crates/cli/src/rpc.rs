//! A client of a gateway: in this process, or at a URL.

use anyhow::Context as _;
use gatewright_core::{Gateway, memory_transport};
use rmcp::{
    RoleClient, ServiceExt,
    model::{CallToolRequestParams, CallToolResult, JsonObject, Tool},
    service::RunningService,
    transport::StreamableHttpClientTransport,
};

/// A connected client.
pub struct Rpc {
    client: RunningService<RoleClient, ()>,
}

impl Rpc {
    /// Connects to a gateway of this process.
    pub async fn local(gateway: &Gateway) -> anyhow::Result<Self> {
        let (client_end, server_end) = memory_transport();
        let server = gateway.session();
        tokio::spawn(async move {
            if let Ok(running) = server.serve(server_end).await {
                let _ = running.waiting().await;
            }
        });
        Ok(Self { client: ().serve(client_end).await? })
    }

    /// Connects to an MCP endpoint.
    pub async fn remote(url: &str) -> anyhow::Result<Self> {
        let transport = StreamableHttpClientTransport::from_uri(url);
        let client = ().serve(transport).await.with_context(|| format!("no MCP server answers at {url}"))?;
        Ok(Self { client })
    }

    /// All tools the server lists.
    pub async fn tools(&self) -> anyhow::Result<Vec<Tool>> {
        Ok(self.client.peer().list_all_tools().await?)
    }

    /// Calls a tool.
    pub async fn call(&self, name: &str, arguments: JsonObject) -> anyhow::Result<CallToolResult> {
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        Ok(self.client.peer().call_tool(params).await?)
    }

    /// Ends the connection.
    pub async fn close(self) {
        let _ = self.client.cancel().await;
    }
}

//! Answers of an app of one era to a client of the other.

use std::sync::Arc;

use gatewright_core::{
    AppOptions, Gateway, GatewayConfig, Invoker, LocalApp, Principal, Registry, ToolNames, memory_transport,
    rmcp::{
        ErrorData, RoleServer, ServerHandler, ServiceExt,
        model::{
            CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult, PaginatedRequestParams,
            ProtocolVersion, ResultType, ServerConfig,
        },
        service::{ClientLifecycleMode, ClientServiceExt, RequestContext},
    },
};

use crate::support::Handler;

/// Answers as a server of an older era does: without `resultType`.
struct Old(Handler);

impl ServerHandler for Old {
    fn get_info(&self) -> ServerConfig {
        self.0.get_info()
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.0.list_tools(request, context).await
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut result = CallToolResult::success(Vec::new());
        result.result_type = None;
        Ok(result.into())
    }
}

#[tokio::test]
async fn a_result_of_an_older_server_says_that_it_is_complete_to_a_newer_client() {
    let registry = Registry::new(ToolNames::Colon);
    let app = LocalApp::start(Old(Handler::with(&["a"]))).await.unwrap();
    registry.add("old", Arc::new(app), AppOptions::default());
    let gateway = Gateway::new(GatewayConfig::new("test", "1"), Arc::new(Invoker::new(registry)), Vec::new());
    let (client_end, server_end) = memory_transport();
    let server = tokio::spawn(async move {
        gateway.session_of(Principal::local()).serve(server_end).await.unwrap().waiting().await
    });
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
    let client = ().serve_with_lifecycle(client_end, lifecycle).await.unwrap();
    let result = client.peer().call_tool(CallToolRequestParams::new("old:a")).await.unwrap();
    assert_eq!(result.result_type, Some(ResultType::COMPLETE));
    client.cancel().await.unwrap();
    server.await.unwrap().unwrap();
}

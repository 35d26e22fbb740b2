//! Tools for tests.

use std::sync::Arc;

use gatewright_core::{
    AppOptions, LocalApp, Registry, ToolEntry, ToolNames,
    rmcp::{
        ErrorData, RoleServer, ServerHandler,
        model::{ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool},
        service::RequestContext,
    },
};
use serde_json::Value;

struct Listed(Vec<Tool>);

impl ServerHandler for Listed {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.clone()))
    }
}

/// The tools as the registry has them, of an app `t`.
pub(crate) async fn entries(tools: Value) -> Vec<Arc<ToolEntry>> {
    let tools = serde_json::from_value(tools).unwrap();
    let registry = Registry::new(ToolNames::Colon);
    registry.add("t", Arc::new(LocalApp::start(Listed(tools)).await.unwrap()), AppOptions::default());
    registry.operator_snapshot().tools.clone()
}

/// Tools with schemas of the kinds that real servers have.
pub(crate) async fn fixtures() -> Vec<Arc<ToolEntry>> {
    entries(serde_json::from_str(include_str!("fixtures.json")).unwrap()).await
}

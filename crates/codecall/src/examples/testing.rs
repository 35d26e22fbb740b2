//! Tools for tests.

use std::sync::Arc;

use gatewright_core::{AppOptions, LocalApp, Registry, ToolEntry, ToolNames, rmcp::ErrorData};
use gatewright_testing::ToolServer;
use serde_json::Value;

/// The tools as the registry has them, of an app `t`.
pub(crate) async fn entries(tools: Value) -> Vec<Arc<ToolEntry>> {
    let app =
        ToolServer::new(tools, async |_, _| Err(ErrorData::invalid_params("no call is answered", None)));
    let registry = Registry::new(ToolNames::Colon);
    registry.add("t", Arc::new(LocalApp::start(app).await.unwrap()), AppOptions::default());
    registry.operator_snapshot().tools.clone()
}

/// Tools with schemas of the kinds that real servers have.
pub(crate) async fn fixtures() -> Vec<Arc<ToolEntry>> {
    entries(serde_json::from_str(include_str!("fixtures.json")).unwrap()).await
}

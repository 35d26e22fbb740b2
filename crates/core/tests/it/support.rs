//! A small handler.

use std::sync::{Arc, Mutex};

use gatewright_core::rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, Tool,
    },
    service::{NotificationContext, Peer, RequestContext},
};
use serde_json::json;

/// Methods of a `ServerHandler` that answer every request for a list with this JSON.
macro_rules! lists {
    ($($method:ident -> $result:ident $list:tt)*) => {$(
        async fn $method(
            &self,
            _: Option<gatewright_core::rmcp::model::PaginatedRequestParams>,
            _: RequestContext<RoleServer>,
        ) -> Result<gatewright_core::rmcp::model::$result, ErrorData> {
            Ok(crate::person::made(serde_json::json!($list)))
        }
    )*};
}
pub(crate) use lists;

/// Serves the tools named in a list that a test can change.
#[derive(Clone, Default)]
pub struct Handler {
    pub tools: Arc<Mutex<Vec<String>>>,
    peers: Arc<Mutex<Vec<Peer<RoleServer>>>>,
}

impl Handler {
    pub fn with(tools: &[&str]) -> Self {
        let handler = Self::default();
        *handler.tools.lock().unwrap() = tools.iter().map(|tool| (*tool).to_owned()).collect();
        handler
    }

    /// Tells everyone who is connected that the list is new.
    pub async fn announce(&self) {
        let peers = self.peers.lock().unwrap().clone();
        for peer in peers {
            peer.notify_tool_list_changed().await.unwrap();
        }
    }

    /// Tells everyone who is connected `times` times that a resource has changed.
    pub async fn announce_updates(&self, times: usize) {
        let peers = self.peers.lock().unwrap().clone();
        for peer in peers {
            for _ in 0..times {
                let update = ResourceUpdatedNotificationParam::new("x://1");
                peer.notify_resource_updated(update).await.unwrap();
            }
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.peers.lock().unwrap().push(context.peer);
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false});
        let schema = Arc::new(schema.as_object().unwrap().clone());
        let names = self.tools.lock().unwrap().clone();
        Ok(ListToolsResult::with_all_items(
            names.into_iter().map(|name| Tool::new(name, "A tool", schema.clone())).collect(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text(request.name.to_string())]).into())
    }
}

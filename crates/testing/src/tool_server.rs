//! An MCP server made of a list of tools and one function.

use std::{fmt, sync::Arc};

use futures::{FutureExt as _, TryFutureExt as _, future::BoxFuture};
use gatewright_core::rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::Value;

type Called = BoxFuture<'static, Result<CallToolResponse, ErrorData>>;
type OnCall = dyn Fn(CallToolRequestParams, RequestContext<RoleServer>) -> Called + Send + Sync;

/// An MCP server with a fixed list of tools, whose calls one function answers.
///
/// It stands in for a real server in tests of clients and gateways. It offers tools only.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use gatewright_testing::{ClientOptions, Server, ToolServer, json, rmcp::model::CallToolResult};
///
/// let tools = json!([{"name": "echo", "inputSchema": {"type": "object"}}]);
/// let echo = ToolServer::new(tools, async |call, _| {
///     Ok(CallToolResult::structured(json!(call.arguments)))
/// });
/// let mcp = Server::in_memory(move || echo.clone()).create_client(ClientOptions::default()).await?;
/// let result = mcp.tools().call("echo", json!({"n": 1})).await?;
/// assert_eq!(result.structured(), Some(&json!({"n": 1})));
/// # Ok::<_, gatewright_testing::BoxError>(())
/// # })?;
/// # Ok::<_, gatewright_testing::BoxError>(())
/// ```
#[derive(Clone)]
pub struct ToolServer {
    tools: Vec<Tool>,
    on_call: Arc<OnCall>,
}

impl ToolServer {
    /// A server with these tools, as `tools/list` has them. `on_call` answers the calls of all of them.
    ///
    /// # Panics
    /// If `tools` is not an array of tool definitions.
    pub fn new<F>(
        tools: Value,
        on_call: impl Fn(CallToolRequestParams, RequestContext<RoleServer>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<CallToolResult, ErrorData>> + Send + 'static,
    {
        Self::asking(tools, move |call, context| on_call(call, context).map_ok(Into::into))
    }

    /// A server whose tools may ask their caller: an answer may be [`CallToolResponse::InputRequired`].
    ///
    /// # Panics
    /// If `tools` is not an array of tool definitions.
    pub fn asking<F>(
        tools: Value,
        on_call: impl Fn(CallToolRequestParams, RequestContext<RoleServer>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<CallToolResponse, ErrorData>> + Send + 'static,
    {
        let tools = serde_json::from_value(tools).expect("an array of tool definitions");
        Self { tools, on_call: Arc::new(move |call, context| on_call(call, context).boxed()) }
    }
}

impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer").field("tools", &self.tools).finish_non_exhaustive()
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        (self.on_call)(call, context).await
    }
}

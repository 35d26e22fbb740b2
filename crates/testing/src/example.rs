//! The server of the examples in this documentation.

use gatewright_core::rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
    },
    service::RequestContext,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    client::Mcp,
    fixture::BoxError,
    server::{ClientOptions, Server},
};

/// A server with the tool `echo`, the resource `note://1` and the prompt `greet`.
#[derive(Debug, Clone, Copy)]
pub struct Example;

/// Runs `body` with a client of [`Example`], and the server as the fixture provides it.
pub fn example(body: impl AsyncFnOnce(Mcp, Server) -> Result<(), BoxError>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.expect("the system gives a runtime").block_on(async {
        let server = Server::in_memory(|| Example);
        let mcp = server.create_client(ClientOptions::default()).await?;
        body(mcp, server).await
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the answer has the shape MCP gives it")
}

type Context = RequestContext<RoleServer>;
type Page = Option<PaginatedRequestParams>;

impl ServerHandler for Example {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = of(json!({"tools": {}, "resources": {}, "prompts": {}}));
        info.server_info = of(json!({"name": "example", "version": "1.0.0"}));
        info
    }

    async fn list_tools(&self, _: Page, _: Context) -> Result<ListToolsResult, ErrorData> {
        Ok(of(
            json!({"tools": [{"name": "echo", "description": "Says it again", "inputSchema": {"type": "object"}}]}),
        ))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        if call.name != "echo" {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", call.name), None));
        }
        let text = call
            .arguments
            .and_then(|mut arguments| arguments.shift_remove("text"))
            .unwrap_or_else(|| "".into());
        Ok(CallToolResponse::Complete(of(json!({"content": [{"type": "text", "text": text}]}))))
    }

    async fn list_resources(&self, _: Page, _: Context) -> Result<ListResourcesResult, ErrorData> {
        Ok(of(json!({"resources": [{"uri": "note://1", "name": "note"}]})))
    }

    async fn list_resource_templates(
        &self,
        _: Page,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(of(json!({"resourceTemplates": [{"uriTemplate": "note://{id}", "name": "notes"}]})))
    }

    async fn read_resource(
        &self,
        read: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let content = json!({"uri": read.uri, "mimeType": "text/plain", "text": "{\"a\": 1}"});
        Ok(ReadResourceResponse::Complete(of(json!({"contents": [content]}))))
    }

    async fn list_prompts(&self, _: Page, _: Context) -> Result<ListPromptsResult, ErrorData> {
        Ok(of(json!({"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]})))
    }

    async fn get_prompt(
        &self,
        get: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let text = format!("Hello {}", json!(get.arguments)["who"].as_str().unwrap_or("you"));
        let message = json!({"role": "user", "content": {"type": "text", "text": text}});
        Ok(GetPromptResponse::Complete(of(json!({"messages": [message]}))))
    }
}

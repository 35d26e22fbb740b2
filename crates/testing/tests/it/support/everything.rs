//! A server with every feature a client can use.

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CreateMessageRequestParams, GetPromptRequestParams,
        GetPromptResponse, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
        ListToolsResult, LoggingLevel, LoggingMessageNotificationParam, PaginatedRequestParams,
        ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
        SetLevelRequestParams,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

#[derive(Clone, Default)]
pub(crate) struct Everything;

type Context = RequestContext<RoleServer>;

fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A result, with its type where the era has one.
fn complete<T: serde::de::DeserializeOwned>(context: &Context, mut result: Value) -> T {
    if is_stateless(context) {
        result["resultType"] = "complete".into();
    }
    of(result)
}

fn tool(name: &str, properties: Value) -> Value {
    json!({"name": name, "description": format!("{name} it"), "inputSchema": {"type": "object", "properties": properties}})
}

fn is_stateless(context: &Context) -> bool {
    json!(context.meta)["io.modelcontextprotocol/protocolVersion"].is_string()
}

impl ServerHandler for Everything {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = of(json!({"tools": {}, "resources": {}, "prompts": {}, "logging": {}}));
        info.server_info = of(json!({"name": "everything", "version": "1.2.3"}));
        info.instructions = Some("Ask for anything.".into());
        info
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let page = match page.and_then(|page| page.cursor) {
            None => {
                json!({"tools": [tool("echo", json!({"text": {"type": "string", "x-mcp-header": "Text"}})), tool("fail", json!({}))], "nextCursor": "2"})
            }
            Some(_) => {
                json!({"tools": [tool("picture", json!({})), tool("work", json!({})), tool("ask", json!({})), tool("think", json!({}))]})
            }
        };
        Ok(complete(&context, page))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(params.arguments.unwrap_or_default());
        let result = match &*params.name {
            "echo" => {
                json!({"content": [{"type": "text", "text": arguments["text"]}], "structuredContent": {"text": arguments["text"], "from": "structured"}})
            }
            "fail" => json!({"content": [{"type": "text", "text": "it went wrong"}], "isError": true}),
            "picture" => json!({"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "note://1", "mimeType": "text/plain", "text": "a note"}}]}),
            "work" => {
                if let Some(token) = context.meta.get_progress_token() {
                    for done in [1.0, 2.0] {
                        let progress = ProgressNotificationParam::new(token.clone(), done);
                        context.peer.notify_progress(progress).await.unwrap();
                    }
                }
                let log = LoggingMessageNotificationParam::new(LoggingLevel::Warning, json!("nearly done"));
                context.peer.notify_logging_message(log).await.unwrap();
                json!({"content": [{"type": "text", "text": "{\"done\": true}"}]})
            }
            // From 2026-07-28 on a server requests input in its response.
            "ask" if is_stateless(&context) => match params.input_responses {
                None => {
                    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                    let question = json!({"method": "elicitation/create",
                        "params": {"mode": "form", "message": "Who?", "requestedSchema": schema}});
                    return Ok(CallToolResponse::InputRequired(of(json!({
                        "resultType": "input_required", "inputRequests": {"who": question}, "requestState": "sealed",
                    }))));
                }
                Some(answers) => {
                    let said = json!({"answers": answers, "state": params.request_state});
                    json!({"content": [{"type": "text", "text": said.to_string()}]})
                }
            },
            "ask" => {
                let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                let question = of(json!({"mode": "form", "message": "Who?", "requestedSchema": schema}));
                let answer = context.peer.create_elicitation(question).await.unwrap();
                json!({"content": [{"type": "text", "text": serde_json::to_string(&answer).unwrap()}]})
            }
            "think" => {
                let wanted: CreateMessageRequestParams = of(json!({"messages": [], "maxTokens": 10}));
                match context.peer.create_message(wanted).await {
                    Ok(thought) => {
                        json!({"content": [{"type": "text", "text": serde_json::to_string(&thought).unwrap()}]})
                    }
                    Err(error) => {
                        json!({"content": [{"type": "text", "text": error.to_string()}], "isError": true})
                    }
                }
            }
            other => return Err(ErrorData::invalid_params(format!("unknown tool `{other}`"), None)),
        };
        Ok(CallToolResponse::Complete(complete(&context, result)))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(complete(
            &context,
            json!({"resources": [{"uri": "note://1", "name": "note", "mimeType": "text/plain"}]}),
        ))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(complete(
            &context,
            json!({"resourceTemplates": [{"uriTemplate": "note://{id}", "name": "notes"}]}),
        ))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = match params.uri.as_str() {
            "note://1" => json!([{"uri": "note://1", "mimeType": "text/plain", "text": "{\"a\": 1}"}]),
            "blob://1" => json!([{"uri": "blob://1", "mimeType": "image/png", "blob": "aGk="}]),
            other => return Err(ErrorData::resource_not_found(format!("no `{other}`"), None)),
        };
        Ok(ReadResourceResponse::Complete(complete(&context, json!({"contents": contents}))))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(complete(
            &context,
            json!({"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": true}]}]}),
        ))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = json!(params.arguments);
        let text = format!("Hello {}", arguments["who"].as_str().unwrap_or("nobody"));
        Ok(GetPromptResponse::Complete(complete(
            &context,
            json!({"description": "A greeting", "messages": [
                {"role": "user", "content": {"type": "text", "text": text}},
                {"role": "assistant", "content": {"type": "text", "text": "Hi"}},
            ]}),
        )))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }
}

//! A gateway in code mode over an app with a little of everything, and a client that notes what it is told.
#![expect(deprecated, reason = "sessions have log messages, which SEP-2577 marks as deprecated")]

use std::sync::{Arc, Mutex};

use gatewright_core::{
    AppOptions, Principal, ProgressSink, Scopes,
    rmcp::{
        ClientHandler, ErrorData, RoleClient, RoleServer, ServerHandler,
        model::{
            CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, ClientRequest,
            ContentBlock, GetPromptRequestParams, GetPromptResponse, ListPromptsResult, ListResourcesResult,
            ListToolsResult, LoggingLevel, LoggingMessageNotificationParam, PaginatedRequestParams,
            ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
        },
        service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService},
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::Served;

fn made<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

#[derive(Clone)]
struct Desk;

impl ServerHandler for Desk {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = made(json!({"tools": {}, "prompts": {}, "resources": {}, "logging": {}}));
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |name: &str, meta: Value| json!({"name": name, "inputSchema": {"type": "object"}, "_meta": {"gatewright": meta}});
        Ok(made(json!({"tools": [
            tool("import", json!({})),
            tool("shown", json!({"visibleInListTools": true})),
            tool("hidden", json!({"visibleInListTools": false})),
            tool("by_name", json!({"enabledInCodeCall": false})),
        ]})))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if &*request.name == "import" {
            if let Some(sink) = context.extensions.get::<ProgressSink>() {
                assert!(context.meta.get_progress_token().is_none(), "the plan's token is not the call's");
                for row in [1, 2] {
                    let progress = json!({"progressToken": "own", "progress": row, "total": 3});
                    sink.receive(made::<ProgressNotificationParam>(progress)).await;
                }
            }
            let log = LoggingMessageNotificationParam::new(LoggingLevel::Warning, json!("row 3 is empty"));
            context.peer.notify_logging_message(log).await.unwrap();
        }
        Ok(CallToolResult::success(vec![ContentBlock::text("imported")]).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(made(json!({"resources": [
            {"uri": "desk://notes", "name": "notes"}, {"uri": "desk://secret", "name": "secret"},
            {"uri": "desk://logo", "name": "logo"},
        ]})))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(made(json!({"prompts": [{"name": "greet"}]})))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let part = match request.uri.as_str() {
            "desk://logo" => json!({"uri": request.uri, "mimeType": "image/png", "blob": "iVBORw0KGgo="}),
            "desk://none" => return Err(ErrorData::resource_not_found("gone", None)),
            _ => json!({"uri": request.uri, "text": "written down"}),
        };
        Ok(ReadResourceResponse::Complete(made(json!({"contents": [part]}))))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let name = request.arguments.and_then(|arguments| arguments.get("name").cloned());
        let text = format!("Hello {}", name.as_ref().and_then(Value::as_str).unwrap_or("you"));
        let messages = json!([{"role": "user", "content": {"type": "text", "text": text}}]);
        Ok(GetPromptResponse::Complete(made(json!({"messages": messages}))))
    }
}

/// Notes progress and log messages.
#[derive(Clone, Default)]
pub(crate) struct Notes {
    pub(crate) progress: Arc<Mutex<Vec<(f64, String)>>>,
    pub(crate) logs: Arc<Mutex<Vec<Value>>>,
}

impl ClientHandler for Notes {
    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push((params.progress, params.message.unwrap_or_default()));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.logs.lock().unwrap().push(params.data);
    }
}

pub(crate) struct Client {
    service: RunningService<RoleClient, Notes>,
    pub(crate) notes: Notes,
    _served: Served,
}

/// A client of `subject` with scopes, at a gateway whose `codecall` section is `config`.
pub(crate) async fn client(config: Value, scopes: &str) -> Client {
    let options: AppOptions = AppOptions {
        resources: made(json!({"desk://secret": {"scopes": ["desk:secret"]}})),
        ..AppOptions::default()
    };
    let served = Served::start(made(config), "desk", Desk, options).await;
    let principal = Principal {
        subject: "ada".into(),
        client_id: Some("editor".into()),
        scopes: Scopes::parse(scopes),
        ..Principal::local()
    };
    let notes = Notes::default();
    Client { service: served.connect(principal, notes.clone()).await, notes, _served: served }
}

impl Client {
    pub(crate) async fn tools(&self) -> String {
        let tools = self.service.peer().list_all_tools().await.unwrap();
        tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>().join(" ")
    }

    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Value {
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(made(arguments));
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let handle = self.service.peer().send_cancellable_request(request, options).await.unwrap();
        serde_json::to_value(handle.await_response().await.unwrap()).unwrap()
    }

    /// The body of an execution.
    pub(crate) async fn execute(&self, script: &str, allowed: Option<&[&str]>) -> Value {
        let mut arguments = json!({"script": script});
        if let Some(allowed) = allowed {
            arguments["allowedTools"] = json!(allowed);
        }
        self.call("codecall:execute", arguments).await["structuredContent"].take()
    }
}

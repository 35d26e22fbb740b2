//! Requests whose client cancels them: their work ends at the app.

use std::sync::Arc;

use gatewright_core::{
    AppOptions, Gateway, GatewayConfig, Invoker, LocalApp, Principal, Registry, ToolNames,
    rmcp::{
        ErrorData, RoleServer, ServerHandler,
        model::{
            CallToolRequestParams, CallToolResponse, ClientRequest, CompleteRequestParams, CompleteResult,
            GetPromptRequestParams, GetPromptResponse, ReadResourceRequestParams, ReadResourceResponse,
            ServerConfig,
        },
        service::{PeerRequestOptions, RequestContext},
    },
};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{
    access::{ask, client},
    person::made,
    support::lists,
};

/// Answers nothing until it is cancelled. Says `began` and `ended`.
#[derive(Clone)]
struct Waits(UnboundedSender<&'static str>);

struct Work(UnboundedSender<&'static str>);

impl Drop for Work {
    fn drop(&mut self) {
        let _ = self.0.send("ended");
    }
}

impl Waits {
    async fn wait<T>(&self, context: RequestContext<RoleServer>) -> Result<T, ErrorData> {
        let _work = Work(self.0.clone());
        self.0.send("began").unwrap();
        context.ct.cancelled().await;
        Err(ErrorData::internal_error("cancelled", None))
    }
}

impl ServerHandler for Waits {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = made(json!({"tools": {}, "prompts": {}, "resources": {}, "completions": {}}));
        info
    }

    lists! {
        list_tools -> ListToolsResult {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]}
        list_prompts -> ListPromptsResult {"prompts": [{"name": "wait"}]}
        list_resources -> ListResourcesResult {"resources": [{"uri": "wait://here", "name": "here"}]}
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.wait(context).await
    }

    async fn get_prompt(
        &self,
        _: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.wait(context).await
    }

    async fn read_resource(
        &self,
        _: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.wait(context).await
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.wait(context).await
    }
}

async fn waiting() -> (Arc<Gateway>, UnboundedReceiver<&'static str>) {
    let (said, says) = unbounded_channel();
    let registry = Registry::new(ToolNames::Colon);
    let app = LocalApp::start(Waits(said)).await.unwrap();
    registry.add("app", Arc::new(app), AppOptions::default());
    let invoker = Arc::new(Invoker::new(registry));
    (Arc::new(Gateway::new(GatewayConfig::new("test", "1"), invoker, Vec::new())), says)
}

#[tokio::test]
async fn a_request_that_its_client_cancels_ends_at_the_app_whatever_its_method() {
    let (gateway, mut says) = waiting().await;
    for modern in [false, true] {
        let client = client(&gateway, Principal::local(), modern).await;
        for (method, params) in [
            ("tools/call", json!({"name": "app:wait"})),
            ("resources/read", json!({"uri": "wait://here"})),
            ("prompts/get", json!({"name": "wait"})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "wait"}, "argument": {"name": "a", "value": ""}}),
            ),
        ] {
            let request: ClientRequest = made(json!({"method": method, "params": params}));
            let options = PeerRequestOptions::no_options();
            let request = client.peer().send_cancellable_request(request, options).await.unwrap();
            assert_eq!(says.recv().await, Some("began"), "{method}");
            request.cancel(None).await.unwrap();
            assert_eq!(says.recv().await, Some("ended"), "{method}");
        }
        ask(&client, "tools/list", json!({})).await.expect("the connection goes on");
    }
}

#[tokio::test]
async fn a_request_whose_client_goes_away_ends_at_the_app() {
    let (gateway, mut says) = waiting().await;
    let client = client(&gateway, Principal::local(), false).await;
    let request: ClientRequest = made(json!({"method": "prompts/get", "params": {"name": "wait"}}));
    let options = PeerRequestOptions::no_options();
    let _request = client.peer().send_cancellable_request(request, options).await.unwrap();
    assert_eq!(says.recv().await, Some("began"));
    client.cancel().await.unwrap();
    assert_eq!(says.recv().await, Some("ended"));
}

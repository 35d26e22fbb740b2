//! Calls that are held open at one instance, and answered through another.
#![expect(deprecated, reason = "the older era still has logging, which SEP-2577 marks as deprecated")]

use std::sync::Arc;

use futures::future::BoxFuture;
use gatewright_core::{
    App, AppEvent, AppFuture, AppHealth, AppOptions, CallContext, Caller, Catalog, Gateway, GatewayConfig,
    Invoker, LocalApp, NetworkTransport, PassedOn, Permit, Principal, Registry, Scopes, SealKey, ToolNames,
    ask,
};
use gatewright_server::Server;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CompleteRequestParams,
        CompleteResult, ContentBlock, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
        GetTaskResult, ListToolsResult, LoggingLevel, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, ServerCapabilities, ServerConfig, UpdateTaskParams,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::{
    hub::Hub,
    support::{Believing, Rig, Tools, answer, message},
};

/// Asks its caller who they are, as a server of the older era does.
struct Asks;

impl ServerHandler for Asks {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = json!([{"name": "ask", "inputSchema": {"type": "object"}}]);
        Ok(ListToolsResult::with_all_items(serde_json::from_value(tools).unwrap()))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let params = json!({"mode": "form", "message": "Who?", "requestedSchema": schema});
        let request = json!({"method": "elicitation/create", "params": params});
        let answer = ask(&context, serde_json::from_value(request).unwrap(), &CancellationToken::new()).await;
        let text = match answer {
            Ok(answer) => serde_json::to_string(&answer).unwrap(),
            Err(why) => why.to_string(),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// An app of this process that counts as one on another host.
struct Elsewhere(LocalApp<Asks>);

type Answer<'a, T> = AppFuture<'a, Result<T, ErrorData>>;

impl App for Elsewhere {
    fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog()
    }
    fn health(&self) -> AppHealth {
        self.0.health()
    }
    fn transport(&self) -> Option<NetworkTransport> {
        Some(NetworkTransport::Tcp)
    }
    fn events(&self) -> broadcast::Receiver<AppEvent> {
        self.0.events()
    }
    fn call_tool(&self, params: CallToolRequestParams, context: CallContext) -> Answer<'_, CallToolResponse> {
        self.0.call_tool(params, context)
    }
    fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: CallContext,
    ) -> Answer<'_, ReadResourceResponse> {
        self.0.read_resource(params, context)
    }
    fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: CallContext,
    ) -> Answer<'_, GetPromptResponse> {
        self.0.get_prompt(params, context)
    }
    fn complete(&self, params: CompleteRequestParams, context: CallContext) -> Answer<'_, CompleteResult> {
        self.0.complete(params, context)
    }
    fn subscribe<'a>(&'a self, uri: String, permit: &'a Permit) -> Answer<'a, ()> {
        self.0.subscribe(uri, permit)
    }
    fn unsubscribe<'a>(&'a self, uri: String, permit: &'a Permit) -> Answer<'a, ()> {
        self.0.unsubscribe(uri, permit)
    }
    fn set_level<'a>(&'a self, level: LoggingLevel, permit: &'a Permit) -> Answer<'a, ()> {
        self.0.set_level(level, permit)
    }
    fn get_task(&self, params: GetTaskParams, context: CallContext) -> Answer<'_, GetTaskResult> {
        self.0.get_task(params, context)
    }
    fn update_task(&self, params: UpdateTaskParams, context: CallContext) -> Answer<'_, ()> {
        self.0.update_task(params, context)
    }
    fn cancel_task(&self, params: CancelTaskParams, context: CallContext) -> Answer<'_, ()> {
        self.0.cancel_task(params, context)
    }
    fn shutdown(&self) -> BoxFuture<'_, ()> {
        self.0.shutdown()
    }
}

const KEY: &str = "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk";

async fn instance(hub: &Hub) -> Rig {
    let config = json!({"cluster": {"key": KEY}, "port": 0});
    let registry = Registry::new(ToolNames::Colon);
    registry.add("app", Arc::new(Elsewhere(LocalApp::start(Asks).await.unwrap())), AppOptions::default());
    let invoker = Invoker::new(registry).seal_key(&SealKey::derived(KEY.as_bytes()));
    let gateway = Arc::new(Gateway::new(GatewayConfig::new("test", "1"), Arc::new(invoker), Vec::new()));
    let builder = Server::builder(gateway.clone(), serde_json::from_value(config).unwrap());
    let builder = builder.authenticator(Arc::new(Believing)).peers(Arc::new(hub.clone()));
    let bound = builder.bind().await.unwrap();
    let base = format!("http://{}", bound.local_addr());
    let (shutdown, occupancy) = (CancellationToken::new(), bound.occupancy());
    let served = Some(tokio::spawn(bound.serve(shutdown.clone())));
    let (url, http) = (format!("{base}/mcp"), reqwest::Client::new());
    Rig { base, url, http, gateway, tools: Tools::default(), occupancy, shutdown, served }
}

/// Calls the tool as `who` at `rig`, with what a retry adds.
async fn call(rig: &Rig, who: &str, more: Value) -> Value {
    let mut params = json!({"name": "app:ask", "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }});
    params.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    let request = rig.post(message(7, "tools/call", &params)).bearer_auth(who);
    let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/call");
    answer(request.header("mcp-name", "app:ask").send().await.unwrap()).await
}

/// Parameters that a retry adds to the call that asked.
fn ada(asked: &Value) -> Value {
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let key = result["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let accept = json!({"action": "accept", "content": {"name": "Ada"}});
    json!({"inputResponses": {key: accept}, "requestState": result["requestState"]})
}

#[tokio::test]
async fn an_answer_given_to_another_instance_reaches_the_call_that_asked() {
    let hub = Hub::default();
    let (a, b) = (instance(&hub).await, instance(&hub).await);
    for (asks, answers) in [(&a, &b), (&b, &a), (&a, &a)] {
        let asked = call(asks, "ann", json!({})).await;
        let answered = call(answers, "ann", ada(&asked)).await;
        assert!(answered["result"]["content"][0]["text"].to_string().contains("Ada"), "{answered}");
        for rig in [&a, &b] {
            let again = call(rig, "ann", ada(&asked)).await;
            assert_eq!(again["result"]["_meta"]["code"], "INPUT_EXPIRED", "{again}");
        }
    }
}

#[tokio::test]
async fn a_state_is_of_no_use_to_others_at_any_instance() {
    let hub = Hub::default();
    let (a, b) = (instance(&hub).await, instance(&hub).await);
    let asked = call(&a, "ann", json!({})).await;
    for rig in [&a, &b] {
        let refused = call(rig, "bob", ada(&asked)).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let mut forged = ada(&asked);
    let state = forged["requestState"].as_str().unwrap().to_owned();
    let (_, home) = state.split_once('.').unwrap();
    for state in [format!("AAAA.{home}"), format!("{state}A"), home.to_owned(), ".".to_owned(), String::new()]
    {
        forged["requestState"] = state.clone().into();
        let refused = call(&b, "ann", forged.clone()).await;
        // A home that cannot be read leads nowhere; the state alone opens a call, and only where it is.
        let is_expired = refused["result"]["_meta"]["code"] == "INPUT_EXPIRED";
        assert!(is_expired || refused["error"]["code"] == -32602, "{state}: {refused}");
    }
    assert!(call(&b, "ann", ada(&asked)).await.to_string().contains("Ada"));
}

#[tokio::test]
async fn a_call_of_an_instance_that_is_gone_is_to_be_made_again() {
    let hub = Hub::default();
    let (mut a, b) = (instance(&hub).await, instance(&hub).await);
    let asked = call(&a, "ann", json!({})).await;
    a.end().await;
    let gone = call(&b, "ann", ada(&asked)).await;
    assert_eq!(gone["result"]["_meta"]["code"], "INPUT_EXPIRED", "{gone}");
    let asked = call(&b, "ann", json!({})).await;
    assert!(call(&b, "ann", ada(&asked)).await.to_string().contains("Ada"));
}

#[tokio::test]
async fn a_request_of_the_gateway_itself_reaches_the_instance_that_holds_a_call() {
    let hub = Hub::default();
    let (mut a, b) = (instance(&hub).await, instance(&hub).await);
    let caller = |subject: &str| {
        let scopes = Scopes::parse("crm:read");
        let client_id = Some("test".into());
        Caller::new(Principal { subject: subject.into(), client_id, scopes, ..Principal::local() })
    };
    let asked = call(&a, "ann", json!({})).await;
    let state = asked["result"]["requestState"].as_str().unwrap();
    let pass_on = async |rig: &Rig, who: &str| {
        let mut params = json!({"name": "app:ask", "arguments": {}});
        params.as_object_mut().unwrap().extend(ada(&asked).as_object().cloned().unwrap());
        let request = PassedOn {
            method: "tools/call",
            name: "app:ask".to_owned(),
            params: params.as_object().cloned().unwrap(),
            capabilities: serde_json::from_value(json!({"elicitation": {}})).unwrap(),
            address: None,
        };
        rig.gateway.invoker().pass_on(state, &caller(who), request).await
    };
    assert!(pass_on(&a, "ann").await.is_none(), "it is this one");
    assert_eq!(pass_on(&b, "bob").await.unwrap().unwrap_err().code.0, -32602);
    let answer = pass_on(&b, "ann").await.unwrap().unwrap();
    assert_eq!(answer["resultType"], "complete", "{answer}");
    assert!(answer["content"][0]["text"].to_string().contains("Ada"), "{answer}");
    let again = pass_on(&b, "ann").await.unwrap().unwrap();
    assert_eq!(again["_meta"]["code"], "INPUT_EXPIRED", "{again}");
    a.end().await;
    assert!(pass_on(&b, "ann").await.is_none(), "it is gone");
}

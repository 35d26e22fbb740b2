//! Access modes: what a client asks for, by address or header, in every kind of session and without one.

use std::sync::Arc;

use gatewright_core::{
    AccessMode, AppFuture, Caller, DirectAccess, InvokeError, Plugin, Principal, ToolEntry,
    rmcp::{
        ErrorData, RoleServer,
        model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Tool},
        service::RequestContext,
    },
};
use gatewright_server::ServerBuilder;
use serde_json::{Value, json};

use crate::{
    hub::Hub,
    support::{Believing, Rig, answer, message, refused, start_plugged},
};

/// Stands for the tools of apps, except to clients of direct mode. The clients of `bound` have to be in code mode.
struct Shell(Arc<[Tool]>);

impl Plugin for Shell {
    fn tools(&self) -> Arc<[Tool]> {
        self.0.clone()
    }

    fn own_tool(&self, name: &str) -> Option<&str> {
        self.0.iter().map(|tool| &*tool.name).find(|own| *own == name)
    }

    fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: Caller,
        _: RequestContext<RoleServer>,
    ) -> AppFuture<'_, Result<CallToolResponse, ErrorData>> {
        Box::pin(async { Ok(CallToolResult::success(vec![ContentBlock::text("run")]).into()) })
    }

    fn refused(&self, _: &str, error: &InvokeError) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(error.to_string())])
    }

    fn mode_of(&self, principal: &Principal) -> Option<AccessMode> {
        (&*principal.subject == "bound").then_some(AccessMode::Code)
    }

    fn direct_access(&self, _: &ToolEntry, mode: Option<AccessMode>) -> DirectAccess {
        if mode == Some(AccessMode::Direct) { DirectAccess::Listed } else { DirectAccess::Refused }
    }

    fn refusal(&self, _: &ToolEntry) -> String {
        "use shell:run".to_owned()
    }

    fn instructions(&self) -> Option<String> {
        Some("Use the shell.".to_owned())
    }
}

async fn rig(config: Value, set_up: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Rig {
    let tool = json!({"name": "shell:run", "inputSchema": {"type": "object"}});
    let shell: Arc<dyn Plugin> = Arc::new(Shell([serde_json::from_value(tool).unwrap()].into()));
    start_plugged(config, vec![shell], set_up).await
}

fn initialize(rig: &Rig, query: &str) -> reqwest::RequestBuilder {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    });
    at(rig, query, message(0, "initialize", &params))
}

fn at(rig: &Rig, query: &str, body: String) -> reqwest::RequestBuilder {
    rig.http
        .post(format!("{}{query}", rig.url))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(body)
}

/// Opens a session; its id, and the instructions it got.
async fn open(request: reqwest::RequestBuilder) -> (String, Value) {
    let opened = request.send().await.unwrap();
    let id = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    (id, answer(opened).await["result"]["instructions"].take())
}

async fn listed(request: reqwest::RequestBuilder) -> String {
    let answer = answer(request.send().await.unwrap()).await;
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

const APPS: &str = "app:echo app:guarded app:wait app:whoami";
/// Tools of a caller without `crm:write`.
const OWN: &str = "app:echo app:wait app:whoami";

#[tokio::test]
async fn a_session_keeps_the_mode_that_it_was_opened_with() {
    let rig = rig(json!({}), |builder| builder).await;
    for (request, tools, told) in [
        (initialize(&rig, ""), "shell:run", true),
        (initialize(&rig, "?mode=code"), "shell:run", true),
        (initialize(&rig, "?mode=direct"), APPS, false),
        (initialize(&rig, "").header("gatewright-mode", "direct"), APPS, false),
    ] {
        let (id, instructions) = open(request).await;
        assert_eq!(instructions.is_string(), told, "{tools}");
        for query in ["", "?mode=direct", "?mode=code"] {
            let list = at(&rig, query, message(1, "tools/list", &json!({}))).header("mcp-session-id", &id);
            assert_eq!(listed(list).await, tools, "{query}");
        }
    }
}

#[tokio::test]
async fn what_a_client_does_not_see_it_cannot_call_either() {
    let rig = rig(json!({}), |builder| builder).await;
    for (query, works, refused) in
        [("?mode=direct", "app:echo", "shell:run"), ("?mode=code", "shell:run", "app:echo")]
    {
        let (id, _) = open(initialize(&rig, query)).await;
        for (tool, is_error) in [(works, false), (refused, true)] {
            let call = rig.in_session(&id, "tools/call", json!({"name": tool, "arguments": {}}));
            let answer = answer(call.send().await.unwrap()).await;
            let result = &answer["result"];
            assert_eq!(result["isError"].as_bool().unwrap_or_default(), is_error, "{tool}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_request_outside_sessions_is_served_in_the_mode_it_asks_for() {
    for sessions in [true, false] {
        let rig = rig(json!({"sessions": sessions}), |builder| builder).await;
        let modern = |mode: &str| rig.modern("tools/list", json!({})).header("gatewright-mode", mode);
        assert_eq!(listed(modern("direct")).await, APPS);
        assert_eq!(listed(modern("code")).await, "shell:run");
        let discover = async |mode: &str| {
            let asked = rig.modern("server/discover", json!({})).header("gatewright-mode", mode);
            answer(asked.send().await.unwrap()).await["result"]["instructions"].is_string()
        };
        assert!(!discover("direct").await && discover("code").await);
        if !sessions {
            let old = at(&rig, "?mode=direct", message(1, "tools/list", &json!({})));
            assert_eq!(listed(old).await, APPS);
        }
    }
}

#[tokio::test]
async fn a_mode_that_is_none_is_refused() {
    let rig = rig(json!({"legacySse": true}), |builder| builder).await;
    let (status, code, text) = refused(initialize(&rig, "?mode=everything")).await;
    assert!((status, code) == (400, -32000) && text.contains("`direct` or `code`"), "{status} {text}");
    let both = initialize(&rig, "?mode=direct").header("gatewright-mode", "code");
    assert_eq!(refused(both).await.0, 400);
    let sse = rig.http.get(format!("{}/sse?mode=x", rig.base));
    assert_eq!(refused(sse).await.0, 400);
}

#[tokio::test]
async fn a_session_over_sse_has_the_mode_of_its_stream() {
    let rig = rig(json!({"legacySse": true}), |builder| builder).await;
    let client = gatewright_testing::Mcp::sse(format!("{}/sse?mode=direct", rig.base));
    let mcp = client.protocol_version("2024-11-05").connect().await.unwrap();
    let names: Vec<String> = mcp.tools().list().await.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names.join(" "), APPS);
}

#[tokio::test]
async fn another_instance_serves_a_session_in_its_mode() {
    let hub = Hub::default();
    let instance = async || {
        let config = json!({"cluster": {"key": "a".repeat(32)}});
        rig(config, |builder| builder.authenticator(Arc::new(Believing)).peers(Arc::new(hub.clone()))).await
    };
    let (a, b) = (instance().await, instance().await);
    let (id, _) = open(initialize(&a, "?mode=direct").bearer_auth("ann")).await;
    let list = b.in_session(&id, "tools/list", json!({})).bearer_auth("ann");
    assert_eq!(listed(list).await, OWN);
}

#[tokio::test]
async fn the_configuration_decides_for_a_client_before_the_client_does() {
    let rig = rig(json!({}), |builder| builder.authenticator(Arc::new(Believing))).await;
    for (who, tools) in [("bound", "shell:run"), ("free", OWN)] {
        let (id, _) = open(initialize(&rig, "?mode=direct").bearer_auth(who)).await;
        let list = rig.in_session(&id, "tools/list", json!({})).bearer_auth(who);
        assert_eq!(listed(list).await, tools, "{who}");
    }
}

#[tokio::test]
async fn a_mode_gives_no_scopes() {
    let rig = rig(json!({}), |builder| builder.authenticator(Arc::new(Believing))).await;
    let guarded = json!({"name": "app:guarded", "arguments": {}});
    let call = rig.modern("tools/call", guarded).bearer_auth("ann").header("gatewright-mode", "direct");
    let (status, _, text) = refused(call).await;
    assert!(status == 403 && text.contains("Forbidden"), "{status} {text}");
    let list = rig.modern("tools/list", json!({})).bearer_auth("ann").header("gatewright-mode", "direct");
    assert_eq!(listed(list).await, OWN);
}

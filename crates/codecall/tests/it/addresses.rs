//! Addresses that a user has to open before a tool can answer (MCP 2025-11-25, URL elicitation).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use gatewright_core::rmcp::{
    ClientHandler, ErrorData, RoleClient, ServiceError,
    model::{
        CallToolRequestParams, CallToolResult, ClientConfig, ElicitRequestParams, ElicitResult,
        ElicitationAction, ErrorCode, ProtocolVersion,
    },
    service::{ClientLifecycleMode, RequestContext},
};
use gatewright_testing::ToolServer;
use serde_json::{Value, json};

use super::{
    asking::{User, made},
    detached::{detach, ended},
    support::Served,
    waiting::{body, execute, principal},
};

const ADDRESS: &str = "https://accounts.example/connect/crm?ticket=7f3a";
const SCRIPT: &str = "return await callTool('app:list', {})";

/// A gateway over an app whose tool `list` refuses these many calls with addresses, and then answers. Returns its calls, too.
async fn refusing(urls: Vec<String>, refusals: usize) -> (Served, Arc<AtomicUsize>) {
    let tools = json!([{"name": "list", "inputSchema": {"type": "object"}}]);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let server = ToolServer::new(tools, move |_, _| {
        let elicitations: Value = urls
            .iter()
            .map(|url| json!({"mode": "url", "url": url, "elicitationId": "1", "message": "Sign in"}))
            .collect();
        let is_refused = counted.fetch_add(1, Ordering::SeqCst) < refusals;
        async move {
            let data = json!({"elicitations": elicitations});
            match is_refused {
                true => Err(ErrorData::new(ErrorCode(-32042), "sign in first", Some(data))),
                false => Ok(CallToolResult::structured(json!({"items": 2}))),
            }
        }
    });
    (Served::over(json!({}), server).await, calls)
}

async fn serving(urls: Vec<String>) -> Served {
    refusing(urls, usize::MAX).await.0
}

async fn refusing_once() -> (Served, Arc<AtomicUsize>) {
    refusing(vec![ADDRESS.to_owned()], 1).await
}

/// A client whose user opens addresses, or declines to.
#[derive(Clone)]
struct Opener {
    action: ElicitationAction,
    asked: Arc<AtomicUsize>,
}

impl Opener {
    fn with(action: ElicitationAction) -> Self {
        Self { action, asked: Arc::default() }
    }

    fn willing() -> Self {
        Self::with(ElicitationAction::Accept)
    }
}

impl ClientHandler for Opener {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.capabilities = made(json!({"elicitation": {"url": {}}}));
        info
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::UrlElicitationParams { url, .. } = params else { panic!("{params:?}") };
        assert_eq!(url, ADDRESS);
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(ElicitResult::new(self.action.clone()))
    }
}

#[tokio::test]
async fn a_plan_waits_until_its_user_has_agreed_to_open_the_address_and_makes_the_call_again() {
    let preferred_versions = vec![ProtocolVersion::LATEST];
    for lifecycle in [ClientLifecycleMode::Initialize, ClientLifecycleMode::Discover { preferred_versions }] {
        let (served, calls) = refusing_once().await;
        let ada = served.connect_in(principal("ada"), Opener::willing(), lifecycle).await;
        let ended = body(ada.call_tool(execute(SCRIPT)).await.unwrap());
        assert_eq!(ended["result"], json!({"items": 2}), "{ended}");
        assert_eq!((calls.load(Ordering::SeqCst), ada.service().asked.load(Ordering::SeqCst)), (2, 1));
    }
}

#[tokio::test]
async fn a_client_that_opens_no_addresses_is_told_the_address_and_the_plan_waits_for_another_one() {
    for is_detached in [false, true] {
        let (served, calls) = refusing_once().await;
        let ada = served.client_with("ada", User::named("Ada")).await;
        let told = match is_detached {
            true => ended(&ada, &detach(&ada, SCRIPT).await).await,
            false => ada.body("codecall:execute", json!({"script": SCRIPT})).await,
        };
        assert_eq!(told["error"]["code"], "INPUT_REQUIRED", "{told}");
        assert!(told["error"]["message"].as_str().unwrap().contains(ADDRESS), "{told}");
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        let id = told["executionId"].as_str().unwrap();
        let over = ended(&served.client_with("ada", Opener::willing()).await, id).await;
        assert_eq!(over["result"], json!({"items": 2}), "{over}");
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn a_user_who_declines_to_open_an_address_gives_the_plan_an_error_that_it_can_catch() {
    let (served, calls) = refusing_once().await;
    let ada = served.client_with("ada", Opener::with(ElicitationAction::Decline)).await;
    let script =
        "try { await callTool('app:list', {}) } catch (error) { return [error.code, error.message] }";
    let said = ada.run(script).await;
    assert_eq!(said[0], "INPUT_REQUIRED", "{said}");
    assert!(said[1].as_str().unwrap().contains(ADDRESS), "{said}");
    assert_eq!(calls.load(Ordering::SeqCst), 1, "it is not called again");
}

#[tokio::test]
async fn an_address_that_does_not_help_is_asked_for_ten_times() {
    let served = serving(vec![ADDRESS.to_owned()]).await;
    let ada = served.client_with("ada", Opener::willing()).await;
    let script = "try { await callTool('app:list', {}) } catch (error) { return error.code }";
    assert_eq!(ada.run(script).await, "INPUT_REQUIRED");
    assert_eq!(ada.0.service().asked.load(Ordering::SeqCst), 10);
}

#[tokio::test]
async fn the_address_reaches_invocations_and_a_direct_call_has_the_error_of_the_server() {
    let (served, calls) = refusing(vec![ADDRESS.to_owned()], 3).await;
    let ada = served.client_with("ada", Opener::willing()).await;
    let told = ada.body("codecall:invoke", json!({"tool": "app:list", "input": {}})).await;
    assert!(told["error"]["message"].as_str().unwrap().contains(ADDRESS), "{told}");
    let direct = ada.0.peer().call_tool(CallToolRequestParams::new("app:list")).await;
    let Err(ServiceError::McpError(error)) = direct else { panic!("{direct:?}") };
    assert_eq!(error.code, ErrorCode(-32042));
    assert_eq!(error.data.unwrap()["elicitations"][0]["url"], ADDRESS);
    // Clients of 2026-07-28 know results that ask in place of that error.
    let preferred_versions = vec![ProtocolVersion::LATEST];
    let lifecycle = ClientLifecycleMode::Discover { preferred_versions };
    let modern = served.connect_in(principal("ada"), Opener::willing(), lifecycle).await;
    let listed = modern.call_tool(CallToolRequestParams::new("app:list")).await.unwrap();
    assert_eq!(listed.structured_content, Some(json!({"items": 2})));
    assert_eq!((calls.load(Ordering::SeqCst), modern.service().asked.load(Ordering::SeqCst)), (4, 1));
}

#[tokio::test]
async fn of_the_addresses_of_a_server_only_few_short_ones_of_pages_are_named() {
    let long = format!("https://long.example/{}", "a".repeat(4_000));
    let many = (0..50).map(|n| format!("https://many.example/{n}"));
    let urls = ["javascript:alert(1)".to_owned(), "https://two.example/\nlines".to_owned(), long].into_iter();
    let served = serving(urls.chain(many).collect()).await;
    let body =
        served.client("ada").await.body("codecall:invoke", json!({"tool": "app:list", "input": {}})).await;
    let said = body["error"]["message"].as_str().unwrap();
    assert!(said.len() < 1_000 && said.contains("https://many.example/0"), "{said}");
    for absent in ["javascript:", "two.example", "long.example", "many.example/3"] {
        assert!(!said.contains(absent), "{absent}: {said}");
    }
}

//! Addresses that a user has to open before a tool can answer (MCP 2025-11-25, URL elicitation).

use gatewright_core::rmcp::{
    ErrorData,
    model::{CallToolResult, ErrorCode},
};
use gatewright_testing::ToolServer;
use serde_json::{Value, json};

use super::support::Served;

const ADDRESS: &str = "https://accounts.example/connect/crm?ticket=7f3a";

async fn serving(urls: Vec<String>) -> Served {
    let tools = json!([{"name": "list", "inputSchema": {"type": "object"}}]);
    let server = ToolServer::new(tools, move |_, _| {
        let elicitations: Value = urls
            .iter()
            .map(|url| json!({"mode": "url", "url": url, "elicitationId": "1", "message": "Sign in"}))
            .collect();
        async move {
            let data = json!({"elicitations": elicitations});
            Err::<CallToolResult, _>(ErrorData::new(ErrorCode(-32042), "sign in first", Some(data)))
        }
    });
    Served::over(json!({}), server).await
}

#[tokio::test]
async fn the_address_to_sign_in_at_reaches_scripts_and_invocations() {
    let served = serving(vec![ADDRESS.to_owned()]).await;
    let ada = served.client("ada").await;
    let said = ada.run("try { await callTool('app:list', {}) } catch (e) { return e.message }").await;
    assert!(said.as_str().unwrap().contains(ADDRESS), "{said}");
    let body = ada.body("codecall:execute", json!({"script": "return await callTool('app:list', {})"})).await;
    assert!(body["error"]["message"].as_str().unwrap().contains(ADDRESS), "{body}");
    let body = ada.body("codecall:invoke", json!({"tool": "app:list", "input": {}})).await;
    assert!(body["error"]["message"].as_str().unwrap().contains(ADDRESS), "{body}");
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

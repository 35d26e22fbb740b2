//! Both protocol eras on one endpoint, by hand and by `rmcp`'s client.

use rmcp::{
    ServiceExt,
    model::{CallToolRequestParams, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt},
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};

use crate::support::{answer, refused, start};

#[tokio::test]
async fn a_session_is_opened_used_and_closed() {
    let rig = start(json!({})).await;
    let id = rig.open("x").await;
    assert!(id.len() >= 32);
    let listed = answer(rig.in_session(&id, "tools/list", json!({})).send().await.unwrap()).await;
    let names: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["app:echo", "app:guarded", "app:wait", "app:whoami"]);
    assert_eq!(listed["result"].get("resultType"), None);
    let params = json!({"name": "app:echo", "arguments": {"a": 1}});
    let called = answer(rig.in_session(&id, "tools/call", params).send().await.unwrap()).await;
    assert_eq!(called["result"]["content"][0]["text"], r#"{"a":1}"#);

    let delete = |id: &str| rig.http.delete(&rig.url).header("mcp-session-id", id);
    assert!(delete(&id).send().await.unwrap().status().is_success());
    assert_eq!(refused(delete(&id)).await.0, 404);
    assert_eq!(refused(rig.in_session(&id, "tools/list", json!({}))).await.0, 404);
}

#[tokio::test]
async fn a_request_of_the_new_era_needs_no_session_and_says_who_answered() {
    let rig = start(json!({})).await;
    let params = json!({"name": "app:echo", "arguments": {"a": 1}});
    // A session id means nothing in this era.
    let response =
        rig.modern("tools/call", params).header("mcp-session-id", "whatever").send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    let result = &answer(response).await["result"];
    assert_eq!(result["content"][0]["text"], r#"{"a":1}"#);
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "test-gateway");

    let listed = answer(rig.modern("tools/list", json!({})).send().await.unwrap()).await;
    assert_eq!(listed["result"]["cacheScope"], "private");
    let discovered = answer(rig.modern("server/discover", json!({})).send().await.unwrap()).await;
    assert!(discovered["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
}

#[tokio::test]
async fn headers_that_contradict_the_body_are_refused() {
    let rig = start(json!({})).await;
    let params = json!({"name": "app:echo", "arguments": {}});
    let request = rig.modern("tools/call", params).header("mcp-name", "app:other");
    let (status, code, _) = refused(request).await;
    assert_eq!((status, code), (400, -32020));
}

#[tokio::test]
async fn the_older_era_is_served_without_sessions_when_they_are_off() {
    let rig = start(json!({"sessions": false})).await;
    let response = rig.initialize().send().await.unwrap();
    assert!(!response.headers().contains_key("mcp-session-id"));
    assert_eq!(answer(response).await["result"]["protocolVersion"], "2025-11-25");
    let params = json!({"name": "app:echo", "arguments": {"a": 1}});
    let called = answer(rig.in_session("", "tools/call", params).send().await.unwrap()).await;
    assert_eq!(called["result"]["content"][0]["text"], r#"{"a":1}"#);
    assert_eq!(rig.http.get(&rig.url).send().await.unwrap().status(), 405);
}

async fn call_and_list(rig: &crate::support::Rig, lifecycle: Option<ClientLifecycleMode>) {
    let transport = StreamableHttpClientTransport::from_uri(rig.url.as_str());
    let client = match lifecycle {
        Some(mode) => ().serve_with_lifecycle(transport, mode).await.unwrap(),
        None => ().serve(transport).await.unwrap(),
    };
    assert_eq!(client.list_all_tools().await.unwrap().len(), 4);
    let params = CallToolRequestParams::new("app:echo")
        .with_arguments(serde_json::from_value(json!({"x": [1, 2]})).unwrap());
    let result = client.call_tool(params).await.unwrap();
    let result: Value = serde_json::to_value(&result).unwrap();
    assert_eq!(result["content"][0]["text"], r#"{"x":[1,2]}"#);
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn the_rust_client_lists_and_calls_in_both_eras() {
    let rig = start(json!({})).await;
    call_and_list(&rig, None).await;
    let preferred_versions = vec![ProtocolVersion::LATEST];
    call_and_list(&rig, Some(ClientLifecycleMode::Discover { preferred_versions })).await;
}

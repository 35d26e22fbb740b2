//! Both protocol eras on one endpoint, by the test kit's client, by `rmcp`'s and by hand.

use gatewright_testing::{Mcp, RpcRequest, expect};
use rmcp::{
    ServiceExt,
    model::{CallToolRequestParams, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt},
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};

use crate::support::{refused, start};

async fn lists_and_calls(mcp: &Mcp) {
    let tools = mcp.tools().list().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["app:echo", "app:guarded", "app:wait", "app:whoami"]);
    let called = mcp.tools().call("app:echo", json!({"a": 1})).await.unwrap();
    expect(&called).to_have_text_content(r#"{"a":1}"#);
}

#[tokio::test]
async fn a_session_is_opened_used_and_closed() {
    let rig = start(json!({})).await;
    let mcp = rig.client().connect().await.unwrap();
    let id = mcp.session_id().unwrap();
    assert!(id.len() >= 32);
    lists_and_calls(&mcp).await;
    assert_eq!(mcp.trace().last().unwrap().response.unwrap().result().unwrap().get("resultType"), None);
    mcp.disconnect().await;
    assert_eq!(refused(rig.http.delete(&rig.url).header("mcp-session-id", &id)).await.0, 404);
    assert_eq!(refused(rig.in_session(&id, "tools/list", json!({}))).await.0, 404);
}

#[tokio::test]
async fn a_request_of_the_new_era_needs_no_session_and_says_who_answered() {
    let rig = start(json!({})).await;
    // A session id means nothing in this era.
    let mcp = rig.client().protocol_version("2026-07-28").header("mcp-session-id", "whatever");
    let mcp = mcp.connect().await.unwrap();
    assert_eq!(mcp.session_id(), None);
    lists_and_calls(&mcp).await;
    let answers: Vec<Value> = mcp.trace().all().into_iter().map(|one| one.response.unwrap().raw).collect();
    assert_eq!(answers[0]["result"]["cacheScope"], "private");
    assert_eq!(answers[1]["result"]["resultType"], "complete");
    let who = &answers[1]["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
    assert_eq!(who, "test-gateway");
    let params = json!({"_meta": mcp.raw().meta()});
    let discovered = mcp.raw().request(RpcRequest::new("server/discover", params)).await.unwrap();
    assert!(
        discovered.result().unwrap()["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28"))
    );

    let response = rig.modern("tools/list", json!({})).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
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
    let mcp = rig.client().connect().await.unwrap();
    assert_eq!((mcp.session_id(), mcp.protocol_version().as_str()), (None, "2025-11-25"));
    lists_and_calls(&mcp).await;
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

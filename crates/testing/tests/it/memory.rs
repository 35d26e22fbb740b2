use std::time::Duration;

use gatewright_testing::{ElicitResult, LogLevel, RpcRequest, expect};
use serde_json::{Value, json};

use crate::support::memory;

#[tokio::test]
async fn a_client_shows_the_description_of_the_server() {
    let mcp = memory().await;
    let info = mcp.server_info().unwrap();
    assert_eq!((info.name.as_str(), info.version.as_str()), ("everything", "1.2.3"));
    assert_eq!(mcp.protocol_version(), "2025-11-25");
    assert!(mcp.is_connected() && mcp.session_id().is_none());
    assert!(
        mcp.has_capability("tools") && mcp.has_capability("prompts") && !mcp.has_capability("completions")
    );
    assert_eq!(mcp.instructions().as_deref(), Some("Ask for anything."));
}

#[tokio::test]
async fn lists_are_read_page_by_page() {
    let mcp = memory().await;
    let tools = mcp.tools().list().await.unwrap();
    expect(&tools).to_contain_tool("echo");
    expect(&tools).to_contain_tool("picture");
    expect(&tools).not().to_contain_tool("delete");
    expect(&mcp.resources().list().await.unwrap()).to_contain_resource("note://1");
    expect(&mcp.resources().list_templates().await.unwrap()).to_contain_resource_template("note://{id}");
    let prompts = mcp.prompts().list().await.unwrap();
    expect(&prompts).to_contain_prompt("greet");
    assert!(prompts[0].arguments[0].required);
}

#[tokio::test]
async fn json_prefers_structured_content_and_falls_back_to_text() {
    let mcp = memory().await;
    let echoed = mcp.tools().call("echo", json!({"text": "hi"})).await.unwrap();
    assert!(echoed.is_success && !echoed.is_error && echoed.error.is_none());
    assert_eq!(echoed.text(), "hi");
    assert_eq!(echoed.json::<Value>().unwrap()["from"], "structured");
    let worked = mcp.tools().call("work", json!({})).await.unwrap();
    assert_eq!(worked.json::<Value>().unwrap(), json!({"done": true}));
    let picture = mcp.tools().call("picture", json!({})).await.unwrap();
    assert_eq!(picture.image().unwrap().mime_type, "image/png");
    expect(&picture).to_have_image_content();
    expect(&picture).to_have_resource_content();
}

#[tokio::test]
async fn tool_errors_and_call_errors_are_results() {
    let mcp = memory().await;
    let failed = mcp.tools().call("fail", json!({})).await.unwrap();
    expect(&failed).to_be_error();
    assert!(failed.error.is_none());
    let unknown = mcp.tools().call("nope", json!({})).await.unwrap();
    expect(&unknown).to_be_error_code(-32602);
    assert_eq!(unknown.error.unwrap().message, "unknown tool `nope`");
}

#[tokio::test]
async fn resources_and_prompts_read_as_the_contract_says() {
    let mcp = memory().await;
    let note = mcp.resources().read("note://1").await.unwrap();
    assert_eq!((note.uri.as_str(), note.mime_type.as_deref()), ("note://1", Some("text/plain")));
    assert_eq!(note.json::<Value>().unwrap(), json!({"a": 1}));
    assert_eq!(mcp.resources().read("blob://1").await.unwrap().blob().unwrap(), b"hi");
    assert_eq!(mcp.resources().read("note://9").await.unwrap_err().code(), Some(-32002));
    let prompt = mcp.prompts().get("greet", json!({"who": "Ada"})).await.unwrap();
    assert_eq!(prompt.description.as_deref(), Some("A greeting"));
    expect(&prompt).to_have_messages(2);
    expect(&prompt.messages[0]).to_have_role("user");
    expect(&prompt.messages[0]).to_contain_text("Hello Ada");
}

#[tokio::test]
async fn progress_and_logs_of_a_call_are_collected() {
    let mcp = memory().await;
    let result = mcp.tools().call("work", json!({})).progress("token-1").await.unwrap();
    assert_eq!(result.progress(), [1.0, 2.0]);
    assert_eq!(mcp.notifications().progress(&json!("token-1")).len(), 2);
    let logs = mcp.logs().filter(LogLevel::Warning);
    assert_eq!(logs[0].message, "nearly done");
    assert_eq!(mcp.logs().search("NEARLY").len(), 1);
    mcp.logs().clear();
    assert!(mcp.logs().all().is_empty());
    let seen =
        mcp.notifications().wait_for("notifications/message", 1, Duration::from_secs(5)).await.unwrap();
    assert_eq!(seen[0].params["level"], "warning");
}

#[tokio::test]
async fn elicitations_are_declined_without_a_handler_and_cancelled_if_it_panics() {
    let mcp = memory().await;
    let ask = || async { mcp.tools().call("ask", json!({})).await.unwrap().json::<Value>().unwrap() };
    assert_eq!(ask().await["action"], "decline");
    mcp.on_elicitation(|question| async move {
        assert_eq!(question["message"], "Who?");
        ElicitResult::Accept(json!({"name": "Ada"}))
    });
    assert_eq!(ask().await["content"]["name"], "Ada");
    mcp.on_elicitation(|_| async { panic!("no") });
    assert_eq!(ask().await["action"], "cancel");
    mcp.clear_elicitation_handler();
    assert_eq!(ask().await["action"], "decline");
}

#[tokio::test]
async fn sampling_fails_without_a_handler() {
    let mcp = memory().await;
    let without = mcp.tools().call("think", json!({})).await.unwrap();
    expect(&without).to_be_error();
    expect(&without).to_have_text_content("on_sampling");
    mcp.on_sampling(|_| async {
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "42"}})
    });
    expect(&mcp.tools().call("think", json!({})).await.unwrap()).to_have_text_content("42");
}

#[tokio::test]
async fn raw_messages_are_not_changed() {
    let mcp = memory().await;
    let pong = mcp.raw().request(RpcRequest::new("ping", Value::Null).id("mine")).await.unwrap();
    expect(&pong).to_be_valid_json_rpc();
    expect(&pong).to_have_result();
    assert_eq!(pong.id(), "mine");
    let unknown = mcp.raw().request(RpcRequest::new("no/such", json!({}))).await.unwrap();
    expect(&unknown).to_have_error_code(-32601);
    let broken = mcp.raw().send_raw("{not json").await.unwrap();
    expect(&broken).to_have_error_code(-32700);
    expect(&broken).to_be_valid_json_rpc();
    mcp.raw().notify("notifications/roots/list_changed", Value::Null).await.unwrap();
}

#[tokio::test]
async fn the_trace_has_every_request_with_its_response() {
    let mcp = memory().await;
    mcp.tools().call("echo", json!({"text": "a"})).await.unwrap();
    mcp.resources().read("note://9").await.unwrap_err();
    let trace = mcp.trace().all();
    assert_eq!(
        trace.iter().map(|one| one.method.as_str()).collect::<Vec<_>>(),
        ["tools/call", "resources/read"]
    );
    assert_eq!(trace[0].params["arguments"]["text"], "a");
    assert!(trace[0].duration_ms > 0.0 && !trace[0].mocked);
    expect(mcp.trace().last().unwrap().response.as_ref().unwrap()).to_have_error();
    mcp.trace().clear();
    assert!(mcp.trace().last().is_none());
}

#[tokio::test]
async fn requests_fail_after_disconnect_until_reconnect() {
    let mcp = memory().await;
    mcp.disconnect().await;
    assert!(!mcp.is_connected());
    let error = mcp.tools().list().await.unwrap_err();
    assert_eq!(error.to_string(), "not connected: disconnected by the test");
    mcp.reconnect().await.unwrap();
    assert!(mcp.tools().list().await.is_ok());
    let error = mcp.authenticate("token").await.unwrap_err();
    assert!(error.to_string().contains("cannot be sent over memory"), "{error}");
}

#[tokio::test]
async fn records_make_stable_snapshots() {
    let mcp = memory().await;
    let result = mcp.tools().call("echo", json!({"text": "hi"})).await.unwrap();
    insta::assert_snapshot!(serde_json::to_string(&result).unwrap(), @r#"{"content":[{"text":"hi","type":"text"}],"structuredContent":{"from":"structured","text":"hi"}}"#);
}

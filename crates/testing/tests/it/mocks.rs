use std::time::Duration;

use gatewright_testing::{MockOptions, RpcResponse, expect, mock_response};
use serde_json::{Value, json};

use crate::support::memory;

#[tokio::test]
async fn a_mocked_tool_never_reaches_the_server() {
    let mcp = memory().await;
    let text = mcp.mock().tool("echo", "from the mock");
    let result = mcp.tools().call("echo", json!({"text": "x"})).await.unwrap();
    assert_eq!(result.text(), "from the mock");
    assert!(mcp.trace().last().unwrap().mocked);
    assert_eq!(text.call_count(), 1);
    assert_eq!(text.calls()[0].params["arguments"]["text"], "x");
    text.remove();
    text.remove();
    assert_eq!(mcp.tools().call("echo", json!({"text": "x"})).await.unwrap().text(), "x");
}

#[tokio::test]
async fn mocks_respond_in_order_until_their_uses_are_exhausted() {
    let mcp = memory().await;
    let once = MockOptions::new(
        "tools/call",
        mock_response::tool_result(vec![json!({"type": "text", "text": "first"})]),
    );
    mcp.mock().add(once.params(json!({"name": "echo"})).times(1));
    mcp.mock().add(
        MockOptions::with("tools/call", |request| {
            RpcResponse::success(json!({"content": [{"type": "text", "text": request.params["name"]}]}))
        })
        .params_predicate(|params| params["arguments"]["text"] == "second"),
    );
    let call = |text: &'static str| {
        let mcp = mcp.clone();
        async move { mcp.tools().call("echo", json!({"text": text})).await.unwrap().text() }
    };
    assert_eq!(call("second").await, "first");
    assert_eq!(call("second").await, "echo");
    assert_eq!(call("third").await, "third");
    mcp.mock().clear();
    assert_eq!(call("second").await, "second");
}

#[tokio::test]
async fn errors_resources_and_structured_values_can_be_mocked() {
    let mcp = memory().await;
    mcp.mock().tool_error("echo", -32000, "down");
    let down = mcp.tools().call("echo", json!({})).await.unwrap();
    expect(&down).to_be_error_code(-32000);
    mcp.mock().tool("work", json!({"n": 1}));
    assert_eq!(mcp.tools().call("work", json!({})).await.unwrap().json::<Value>().unwrap(), json!({"n": 1}));
    mcp.mock().resource("note://7", "seven");
    assert_eq!(mcp.resources().read("note://7").await.unwrap().text(), "seven");
    mcp.mock().resource("note://8", json!({"blob": "aGk=", "mimeType": "x/y"}));
    let blob = mcp.resources().read("note://8").await.unwrap();
    assert_eq!((blob.blob().unwrap(), blob.uri.as_str()), (b"hi".to_vec(), "note://8"));
    mcp.mock().add(MockOptions::new("tools/list", mock_response::tools_list(vec![json!({"name": "only"})])));
    let tools = mcp.tools().list().await.unwrap();
    assert_eq!(tools.len(), 1);
    let unauthorized = MockOptions::new("prompts/list", mock_response::errors::unauthorized());
    mcp.mock().add(unauthorized);
    assert_eq!(mcp.prompts().list().await.unwrap_err().code(), Some(-32001));
}

#[tokio::test(start_paused = true)]
async fn a_delay_defers_the_response() {
    let mcp = memory().await;
    let slow = MockOptions::new("ping", RpcResponse::success(json!({}))).delay(Duration::from_secs(20));
    mcp.mock().add(slow);
    let before = tokio::time::Instant::now();
    mcp.raw().request(gatewright_testing::RpcRequest::new("ping", Value::Null)).await.unwrap();
    assert_eq!(before.elapsed(), Duration::from_secs(20));
}

#[tokio::test]
async fn a_handle_outlives_its_client() {
    let mcp = memory().await;
    let handle = mcp.mock().tool("echo", "x");
    drop(mcp);
    handle.remove();
    assert_eq!(handle.call_count(), 0);
}

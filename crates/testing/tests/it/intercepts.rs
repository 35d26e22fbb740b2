use std::{sync::Arc, sync::Mutex, time::Duration};

use gatewright_testing::{RequestAction, ResponseAction, RpcError, RpcRequest, RpcResponse, expect};
use serde_json::{Value, json};

use crate::support::memory;

#[tokio::test]
async fn request_interceptors_run_in_order_and_see_earlier_changes() {
    let mcp = memory().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    mcp.intercept().request(|one| {
        let mut request = one.request.clone();
        request.params["arguments"]["text"] = "changed".into();
        RequestAction::Modify(request)
    });
    let saw = seen.clone();
    let remove = mcp.intercept().request(move |one| {
        saw.lock().unwrap().push(one.request.params["arguments"]["text"].clone());
        RequestAction::Passthrough
    });
    assert_eq!(mcp.tools().call("echo", json!({"text": "x"})).await.unwrap().text(), "changed");
    remove.remove();
    mcp.tools().call("echo", json!({"text": "x"})).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["changed"]);
    assert_eq!(mcp.trace().last().unwrap().params["arguments"]["text"], "x");
}

#[tokio::test]
async fn mocked_requests_pass_request_and_response_interceptors() {
    let mcp = memory().await;
    let mock = mcp.mock().tool("echo", "mocked");
    let remove = mcp.intercept().request(|_| RequestAction::Error("not today".into()));
    assert_eq!(mcp.tools().call("echo", json!({})).await.unwrap().text(), "not today");
    remove.remove();
    mcp.intercept().request(|seen| {
        let mut request = seen.request.clone();
        request.params["name"] = "echo".into();
        RequestAction::Modify(request)
    });
    mcp.intercept().response(|one| {
        assert_eq!(one.response.id(), &one.request.id);
        let mut raw = one.response.raw.clone();
        raw["result"]["content"][0]["text"] = "and changed".into();
        ResponseAction::Modify(RpcResponse { raw })
    });
    assert_eq!(mcp.tools().call("other", json!({})).await.unwrap().text(), "and changed");
    assert_eq!(mock.call_count(), 1);
}

#[tokio::test]
async fn fail_method_fails_mocked_requests_too() {
    let mcp = memory().await;
    let mock = mcp.mock().tool("echo", "mocked");
    let remove = mcp.intercept().fail_method("tools/call", "down");
    let failed = mcp.tools().call("echo", json!({})).await.unwrap();
    assert_eq!(failed.error.map(|error| (error.code, error.message)), Some((-32603, "down".into())));
    assert_eq!(mock.call_count(), 0);
    remove.remove();
    assert_eq!(mcp.tools().call("echo", json!({})).await.unwrap().text(), "mocked");
}

#[tokio::test]
async fn an_error_of_an_interceptor_keeps_its_code_and_data() {
    let mcp = memory().await;
    let error = RpcError {
        code: -32042,
        message: "open a page".into(),
        data: Some(json!({"url": "https://a.example"})),
    };
    let expected = error.clone();
    mcp.intercept().request(move |_| RequestAction::Error(error.clone()));
    let answer = mcp.raw().request(RpcRequest::new("tools/list", Value::Null)).await.unwrap();
    assert_eq!(answer.error(), Some(expected.clone()));
    expect(&answer).to_have_error_code(-32042);
    assert_eq!(mcp.tools().list().await.unwrap_err().rpc_error(), Some(expected));
}

#[tokio::test]
async fn an_interceptor_can_answer_or_fail_a_request() {
    let mcp = memory().await;
    let remove = mcp.intercept().fail_method("prompts/list", "no prompts today");
    let error = mcp.prompts().list().await.unwrap_err();
    assert_eq!(error.to_string(), "`prompts/list` failed with -32603: no prompts today");
    remove.remove();
    assert!(mcp.prompts().list().await.is_ok());
    mcp.intercept().request(|_| RequestAction::Mock(RpcResponse::success(json!({"here": true}))));
    let answer = mcp.raw().request(RpcRequest::new("x", Value::Null).id(77)).await.unwrap();
    assert_eq!((answer.id(), &answer.result().unwrap()["here"]), (&json!(77), &json!(true)));
    mcp.intercept().clear();
    expect(&mcp.tools().call("echo", json!({"text": "a"})).await.unwrap()).to_be_successful();
}

#[tokio::test(start_paused = true)]
async fn a_delay_applies_to_mocked_requests_too() {
    let mcp = memory().await;
    mcp.intercept().delay(Duration::from_secs(3));
    mcp.mock().tool("work", "mocked");
    for tool in ["echo", "work"] {
        let before = tokio::time::Instant::now();
        mcp.tools().call(tool, json!({"text": "a"})).await.unwrap();
        assert_eq!(before.elapsed(), Duration::from_secs(3), "{tool}");
    }
}

//! The same server over every transport, with and without sessions.

use std::time::Duration;

use gatewright_testing::{ClientOptions, ElicitResult, Mcp, Server, Transport, expect};
use serde_json::json;

use crate::support::{everything, script};

async fn uses_everything(mcp: &Mcp) {
    expect(&mcp.tools().list().await.unwrap()).to_contain_tool("ask");
    let echoed = mcp.tools().call("echo", json!({"text": "grüße\n"})).await.unwrap();
    assert_eq!(echoed.text(), "grüße\n");
    expect(&mcp.resources().read("note://1").await.unwrap()).to_have_mime_type("text/plain");
    expect(&mcp.prompts().get("greet", json!({"who": "Ada"})).await.unwrap()).to_contain_text("Hello Ada");
    let work = mcp.tools().call("work", json!({})).progress(5).await.unwrap();
    assert_eq!(work.progress(), [1.0, 2.0]);
}

#[tokio::test]
async fn streamable_http_with_sessions() {
    let server = everything().start().await.unwrap();
    let mcp = server.client().connect().await.unwrap();
    assert!(mcp.session_id().is_some());
    uses_everything(&mcp).await;
    mcp.on_elicitation(|_| async { ElicitResult::Accept(json!({"name": "Ada"})) });
    expect(&mcp.tools().call("ask", json!({})).await.unwrap()).to_have_text_content("Ada");
    mcp.disconnect().await;
}

#[tokio::test]
async fn streamable_http_without_sessions() {
    let server = everything().start().await.unwrap();
    let mcp = server.client().protocol_version("2026-07-28").connect().await.unwrap();
    assert_eq!((mcp.session_id(), mcp.protocol_version().as_str()), (None, "2026-07-28"));
    assert_eq!(mcp.server_info().unwrap().name, "everything");
    uses_everything(&mcp).await;
    let missing = mcp.resources().read("note://9").await.unwrap_err();
    assert_eq!(missing.code(), Some(-32602));
    // The response requests input, and the client repeats the request with the answer of the handler.
    mcp.on_elicitation(|_| async { ElicitResult::Accept(json!({"name": "Ada"})) });
    mcp.trace().clear();
    let asked = mcp.tools().call("ask", json!({})).await.unwrap().json::<serde_json::Value>().unwrap();
    assert_eq!(asked["answers"]["who"]["content"]["name"], "Ada");
    assert_eq!(asked["state"], "sealed");
    assert_eq!(mcp.trace().all().len(), 2);
}

#[tokio::test]
async fn the_older_sse_transport() {
    let server = Server::builder(script("tiny.mjs")).transport(Transport::Sse).start().await.unwrap();
    let mcp = server.create_client(ClientOptions::default()).await.unwrap();
    assert_eq!(mcp.session_id().as_deref(), Some("1"));
    expect(&mcp.tools().list().await.unwrap()).to_contain_tool("env");
    mcp.disconnect().await;
    let other = ClientOptions { transport: Some(Transport::StreamableHttp), ..ClientOptions::default() };
    assert!(server.create_client(other).await.unwrap().session_id().is_none());
    let nowhere =
        Server::builder(script("tiny.mjs")).transport(Transport::Sse).path("/no").start().await.unwrap();
    assert_eq!(nowhere.client().connect().await.unwrap_err().status(), Some(404));
}

#[tokio::test]
async fn stdio() {
    let server = everything().arg("--stdio").transport(Transport::Stdio).start().await.unwrap();
    let mcp = server.create_client(ClientOptions::default()).await.unwrap();
    uses_everything(&mcp).await;
    assert!(server.info().pid > 0);
    let second = server.create_client(ClientOptions::default()).await.unwrap();
    assert_eq!(second.tools().call("echo", json!({"text": "2"})).await.unwrap().text(), "2");
    mcp.disconnect().await;
    assert!(mcp.tools().list().await.is_err());
}

#[tokio::test]
async fn a_session_lost_by_a_restart_is_started_again() {
    let server = everything().start().await.unwrap();
    let mcp = server.client().connect().await.unwrap();
    let (session, before) = (mcp.session_id(), server.info());
    server.restart().await.unwrap();
    assert_eq!(server.info().port, before.port);
    assert_ne!(server.info().pid, before.pid);
    expect(&mcp.tools().list().await.unwrap()).to_contain_tool("echo");
    assert_ne!(mcp.session_id(), session);
}

#[tokio::test]
async fn a_tool_that_never_ends_times_out_and_the_client_continues() {
    let server = everything().start().await.unwrap();
    let mcp = server.client().connect().await.unwrap();
    mcp.on_elicitation(|_| std::future::pending());
    mcp.set_timeout(Duration::from_millis(100));
    let error = mcp.tools().call("ask", json!({})).await.unwrap_err();
    assert!(error.to_string().starts_with("`tools/call` was not answered within 100ms"), "{error}");
    mcp.set_timeout(Duration::from_secs(10));
    assert!(mcp.tools().list().await.is_ok());
}

#[tokio::test]
async fn a_pending_call_is_answered_later_or_cancelled() {
    let server = everything().start().await.unwrap();
    let stdio = everything().arg("--stdio").transport(Transport::Stdio).start().await.unwrap();
    for mcp in [
        crate::support::memory().await,
        server.client().connect().await.unwrap(),
        stdio.client().connect().await.unwrap(),
    ] {
        let go_on = std::sync::Arc::new(tokio::sync::Notify::new());
        let waiting = go_on.clone();
        mcp.on_elicitation(move |_| {
            let waiting = waiting.clone();
            async move {
                waiting.notified().await;
                ElicitResult::Accept(json!({"name": "Ada"}))
            }
        });
        let open = mcp.tools().call("ask", json!({})).begin().await.unwrap();
        while mcp.server_requests().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(mcp.server_requests()[0].method, "elicitation/create");
        go_on.notify_one();
        expect(&open.result().await.unwrap()).to_have_text_content("Ada");
        assert_eq!(mcp.trace().last().unwrap().method, "tools/call");

        let open = mcp.tools().call("ask", json!({})).begin().await.unwrap();
        while mcp.server_requests().len() < 2 {
            tokio::task::yield_now().await;
        }
        open.cancel().await;
        assert!(mcp.tools().list().await.is_ok());
    }
    // Without sessions closing the stream cancels the call.
    let mcp = server.client().protocol_version("2026-07-28").connect().await.unwrap();
    mcp.tools().call("work", json!({})).begin().await.unwrap().cancel().await;
    let open = mcp.tools().call("echo", json!({"text": "hi"})).begin().await.unwrap();
    assert_eq!(open.result().await.unwrap().text(), "hi");
}

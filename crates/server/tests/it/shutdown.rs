//! The end of a server, with streams open.

use std::time::{Duration, Instant};

use gatewright_testing::expect;
use serde_json::json;

use crate::support::{PATIENCE, refused, start};

#[tokio::test]
async fn open_streams_that_wait_do_not_delay_the_end() {
    let mut rig = start(json!({})).await;
    let id = rig.open("x").await;
    let get = rig.http.get(&rig.url).header("accept", "text/event-stream").header("mcp-session-id", &id);
    let standalone = get.send().await.unwrap();
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let listening = rig.modern("subscriptions/listen", filter).send().await.unwrap();
    assert_eq!(listening.status(), 200);
    let started = Instant::now();
    rig.shutdown.cancel();
    tokio::time::timeout(PATIENCE, rig.served.take().unwrap()).await.unwrap().unwrap();
    assert!(started.elapsed() < Duration::from_secs(9), "the drain timeout of 10 s was used up");
    standalone.bytes().await.unwrap();
    // The stream ends as the protocol says: with the result of the request.
    let text = listening.text().await.unwrap();
    assert!(text.contains(r#""result""#), "{text}");
}

#[tokio::test]
async fn a_call_in_flight_is_answered_before_the_end_and_nobody_new_is_let_in() {
    let mut rig = start(json!({})).await;
    let mcp = rig.client().protocol_version("2026-07-28").connect().await.unwrap();
    let call = mcp.tools().call("app:wait", json!({})).begin().await.unwrap();
    rig.tools.started.notified().await;
    rig.shutdown.cancel();
    while rig.http.get(format!("{}/healthz", rig.base)).send().await.is_ok() {
        tokio::task::yield_now().await;
    }
    rig.tools.go_on.notify_one();
    expect(&call.result().await.unwrap()).to_have_text_content("done");
    rig.end().await;
}

#[tokio::test]
async fn a_call_that_never_ends_is_cut_off_at_the_drain_timeout() {
    let mut rig = start(json!({"drainTimeout": "300ms"})).await;
    let mcp = rig.client().connect().await.unwrap();
    let call = mcp.tools().call("app:wait", json!({})).begin().await.unwrap();
    rig.tools.started.notified().await;
    rig.end().await;
    assert!(call.result().await.is_err());
}

#[tokio::test]
async fn a_request_that_is_open_when_the_server_ends_is_answered_as_such() {
    let mut rig = start(json!({"drainTimeout": "3s"})).await;
    let call = rig.modern("tools/call", json!({"name": "app:wait", "arguments": {}}));
    let call = tokio::spawn(refused(call));
    rig.tools.started.notified().await;
    rig.end().await;
    let (status, code, message) = call.await.unwrap();
    assert_eq!((status, code), (503, -32000), "{message}");
    assert!(message.contains("was stopped before"), "{message}");
}

//! The HTTP+SSE transport of 2024-11-05.

use std::sync::Arc;

use futures::{Stream, StreamExt};
use gatewright_testing::expect;
use serde_json::json;

use crate::support::{Believing, PATIENCE, Rig, message, refused, start, start_with};

struct Events {
    chunks: std::pin::Pin<Box<dyn Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    text: String,
}

impl Events {
    /// The data of the next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                self.text = rest.to_owned();
                if data.is_some() {
                    return data;
                }
                continue;
            }
            let chunk = tokio::time::timeout(PATIENCE, self.chunks.next()).await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
    }
}

async fn open(rig: &Rig, who: &str) -> (Events, String) {
    let response = rig.http.get(format!("{}/sse", rig.base)).bearer_auth(who).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let mut events = Events { chunks: Box::pin(response.bytes_stream()), text: String::new() };
    let path = events.next().await.unwrap();
    assert!(path.starts_with("/messages?sessionId="), "{path}");
    (events, format!("{}{path}", rig.base))
}

fn say(rig: &Rig, url: &str, who: &str, body: String) -> reqwest::RequestBuilder {
    rig.http.post(url).bearer_auth(who).header("content-type", "application/json").body(body)
}

#[tokio::test]
async fn it_is_off_unless_asked_for() {
    let rig = start(json!({})).await;
    assert_eq!(rig.http.get(format!("{}/sse", rig.base)).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn what_is_posted_is_answered_on_the_stream() {
    let rig = start(json!({"legacySse": true})).await;
    let mcp = rig.sse_client().protocol_version("2024-11-05").connect().await.unwrap();
    assert_eq!(mcp.protocol_version(), "2024-11-05");
    expect(&mcp.tools().call("app:echo", json!({"a": 1})).await.unwrap()).to_have_text_content(r#"{"a":1}"#);
    let (_events, url) = open(&rig, "x").await;
    assert_eq!(refused(say(&rig, &url, "x", "{".to_owned())).await.1, -32700);
}

#[tokio::test]
async fn it_has_the_same_guards_and_caps() {
    let rig = start(json!({"legacySse": true, "maxSessions": 1, "maxBodyBytes": 1000})).await;
    let get = || rig.http.get(format!("{}/sse", rig.base));
    assert_eq!(refused(get().header("origin", "http://evil.example")).await.0, 403);
    assert_eq!(refused(get().header("host", "evil.example")).await.0, 403);
    let (events, url) = open(&rig, "x").await;
    assert_eq!(refused(get()).await.0, 503);
    assert_eq!(refused(say(&rig, &url, "x", "x".repeat(1001))).await.0, 413);
    drop(events);
    while get().send().await.unwrap().status() != 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(refused(say(&rig, &url, "x", "{}".to_owned())).await.0, 404);
}

#[tokio::test]
async fn a_stream_belongs_to_who_opened_it() {
    let set_up = |builder: gatewright_server::ServerBuilder| builder.authenticator(Arc::new(Believing));
    let rig = start_with(json!({"legacySse": true}), set_up).await;
    let (_events, url) = open(&rig, "ann").await;
    assert_eq!(refused(say(&rig, &url, "bob", message(1, "ping", &json!({})))).await.0, 404);
    let mcp = rig.sse_client().token("ann").connect().await.unwrap();
    expect(&mcp.tools().call("app:whoami", json!({})).await.unwrap()).to_have_text_content("ann");
}

#[tokio::test]
async fn at_the_end_of_the_server_open_requests_are_answered_and_then_the_stream_ends() {
    let mut rig = start(json!({"legacySse": true})).await;
    let (mut idle, _) = open(&rig, "x").await;
    let mcp = rig.sse_client().connect().await.unwrap();
    let call = mcp.tools().call("app:wait", json!({})).begin().await.unwrap();
    rig.tools.started.notified().await;
    rig.shutdown.cancel();
    assert_eq!(idle.next().await, None);
    rig.tools.go_on.notify_one();
    expect(&call.result().await.unwrap()).to_have_text_content("done");
    rig.end().await;
    assert!(!mcp.is_connected());
}

#[tokio::test]
async fn a_call_keeps_its_place_and_room_until_it_is_answered_and_its_id_is_short() {
    let rig = start(json!({"legacySse": true, "maxConcurrency": 1})).await;
    let (mut events, url) = open(&rig, "x").await;
    let params = json!({
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    });
    say(&rig, &url, "x", message(0, "initialize", &params)).send().await.unwrap();
    events.next().await.unwrap();
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned();
    say(&rig, &url, "x", initialized).send().await.unwrap();
    let long = message(1, "ping", &json!({})).replace("1", &format!("\"{}\"", "x".repeat(2_000)));
    let (status, code, text) = refused(say(&rig, &url, "x", long)).await;
    assert!((status, code) == (400, -32600) && text.contains("`id`"), "{status} {code} {text}");
    let wait = json!({"name": "app:wait", "arguments": {"a": "x".repeat(100_000)}});
    assert_eq!(say(&rig, &url, "x", message(1, "tools/call", &wait)).send().await.unwrap().status(), 202);
    rig.tools.started.notified().await;
    let now = rig.occupancy.now();
    assert!(now.requests == 1 && now.request_bytes > 200_000, "{now:?}");
    assert_eq!(refused(say(&rig, &url, "x", message(2, "ping", &json!({})))).await.0, 503);
    rig.tools.go_on.notify_one();
    assert!(events.next().await.unwrap().contains("done"));
    while rig.occupancy.now().request_bytes > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(say(&rig, &url, "x", message(2, "ping", &json!({}))).send().await.unwrap().status(), 202);
}

#[tokio::test]
async fn a_second_request_with_an_id_in_flight_is_refused() {
    let rig = start(json!({"legacySse": true})).await;
    let (mut events, url) = open(&rig, "x").await;
    let params = json!({
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    });
    say(&rig, &url, "x", message(0, "initialize", &params)).send().await.unwrap();
    events.next().await.unwrap();
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned();
    say(&rig, &url, "x", initialized).send().await.unwrap();
    let wait = message(1, "tools/call", &json!({"name": "app:wait"}));
    say(&rig, &url, "x", wait).send().await.unwrap();
    rig.tools.started.notified().await;
    let (status, code, _) = refused(say(&rig, &url, "x", message(1, "ping", &json!({})))).await;
    assert_eq!((status, code), (400, -32600));
    rig.tools.go_on.notify_one();
    assert!(events.next().await.unwrap().contains("done"));
    assert_eq!(say(&rig, &url, "x", message(1, "ping", &json!({}))).send().await.unwrap().status(), 202);
}

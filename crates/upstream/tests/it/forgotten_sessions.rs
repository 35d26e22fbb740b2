//! A server over Streamable HTTP that forgets its sessions.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use gatewright_testing::RpcRequest;
use gatewright_upstream::UpstreamConfig;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::{Bench, eventually, quick, text};

/// The number of the session that is known, and what came in each, as `1 logging/setLevel`.
#[derive(Default)]
struct Known {
    session: u32,
    heard: Vec<String>,
}

type Shared = Arc<Mutex<Known>>;

async fn message(State(known): State<Shared>, headers: HeaderMap, Json(message): Json<Value>) -> Response {
    let mut known = known.lock().unwrap();
    let method = message["method"].as_str().unwrap_or_default();
    if method == "initialize" {
        known.session += 1;
    } else if headers.get("mcp-session-id").is_none_or(|id| *id != known.session.to_string()) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let session = known.session.to_string();
    known.heard.push(format!("{session} {method}"));
    let result = match method {
        "initialize" => json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "f", "version": "1"},
            "capabilities": {"tools": {}, "logging": {}, "resources": {"subscribe": true}}}),
        "tools/list" => json!({"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]}),
        "resources/list" => json!({"resources": [{"uri": "test://a", "name": "a"}]}),
        "resources/templates/list" => json!({"resourceTemplates": []}),
        "tools/call" => json!({"content": [{"type": "text", "text": "hello"}]}),
        _ if message.get("id").is_none() => return StatusCode::ACCEPTED.into_response(),
        _ => json!({}),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    ([("mcp-session-id", session)], Json(answer)).into_response()
}

#[tokio::test]
async fn level_and_subscriptions_are_repeated_in_the_session_that_follows_a_forgotten_one() {
    let known = Shared::default();
    let router = Router::new().route("/mcp", post(message)).with_state(known.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let bench = Bench::new();
    bench.add("a", quick(UpstreamConfig::url(url))).await;
    let client = bench.client().await;
    client.resources().subscribe("test://a").await.unwrap();
    let level = RpcRequest::new("logging/setLevel", json!({"level": "debug"}));
    client.raw().request(level).await.unwrap();
    let heard = |line: &str| known.lock().unwrap().heard.iter().any(|heard| heard == line);
    eventually("the server hears of both", || heard("1 logging/setLevel") && heard("1 resources/subscribe"))
        .await;
    // Nobody knows this session: the next request gets 404.
    known.lock().unwrap().session = 10;
    assert_eq!(text(&client, "a:hello").await, "hello");
    eventually("both come again", || heard("11 logging/setLevel") && heard("11 resources/subscribe")).await;
    bench.registry.shutdown().await;
}

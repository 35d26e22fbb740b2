//! Requests of the gateway itself while calls have all places of a server over HTTP.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
    routing::post,
};
use futures::{StreamExt as _, stream};
use gatewright_upstream::UpstreamConfig;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify};

use crate::support::{Bench, eventually, quick};

/// A server whose one tool does not answer, and has another one beside it once that is called.
#[derive(Default)]
struct Server {
    is_called: AtomicBool,
    called: Notify,
}

type Shared = Arc<Server>;

async fn message(State(server): State<Shared>, Json(message): Json<Value>) -> Response {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "f", "version": "1"},
            "capabilities": {"tools": {"listChanged": true}}}),
        "tools/list" => match server.is_called.load(Ordering::SeqCst) {
            true => json!({"tools": [tool("hang"), tool("more")]}),
            false => json!({"tools": [tool("hang")]}),
        },
        "tools/call" => {
            server.is_called.store(true, Ordering::SeqCst);
            server.called.notify_one();
            std::future::pending().await
        }
        _ if message.get("id").is_none() => return StatusCode::ACCEPTED.into_response(),
        _ => json!({}),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    ([("mcp-session-id", "one")], Json(answer)).into_response()
}

async fn events(State(server): State<Shared>) -> impl IntoResponse {
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}).to_string();
    let told = stream::once(async move {
        server.called.notified().await;
        Ok::<_, Infallible>(Event::default().data(changed))
    });
    Sse::new(told.chain(stream::pending()))
}

#[tokio::test]
async fn lists_are_read_again_although_calls_have_all_places() {
    let router = Router::new().route("/mcp", post(message).get(events)).with_state(Shared::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let bench = Bench::new();
    bench.add("a", quick(UpstreamConfig { max_concurrency: 1, ..UpstreamConfig::url(url) })).await;
    let client = bench.connect(|client| client).await;
    let caller = client.clone();
    tokio::spawn(async move { caller.tools().call("a:hang", json!({})).await });
    let registry = bench.registry.clone();
    eventually("the other tool is known", || registry.operator_snapshot().tool("a:more").is_some()).await;
}

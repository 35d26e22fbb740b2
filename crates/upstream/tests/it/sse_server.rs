//! Servers over the older HTTP+SSE transport.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    extract::State,
    response::{IntoResponse, Sse, sse::Event},
    routing::{get, post},
};
use futures::{Stream, StreamExt as _};
use gatewright_core::{App as _, AppHealth};
use gatewright_upstream::{TransportType, UpstreamApp, UpstreamConfig};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};

use crate::support::{Bench, LONG, environment, error, quick, text, until};

type Out = Arc<Mutex<Option<mpsc::UnboundedSender<Event>>>>;

async fn stream(State(out): State<(Out, String)>) -> Sse<impl Stream<Item = Result<Event, std::io::Error>>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    sender.send(Event::default().event("endpoint").data(&out.1)).unwrap();
    *out.0.lock().unwrap() = Some(sender);
    let events = futures::stream::unfold(receiver, |mut receiver| async {
        let event = receiver.recv().await?;
        Some((event, receiver))
    });
    Sse::new(events.map(Ok))
}

async fn message(State(out): State<(Out, String)>, Json(message): Json<Value>) -> impl IntoResponse {
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "hello", "inputSchema": {"type": "object"}},
            {"name": "many", "inputSchema": {"type": "object"}},
            {"name": "hang-up", "inputSchema": {"type": "object"}}]}),
        "tools/call" if message["params"]["name"] == "hang-up" => {
            *out.0.lock().unwrap() = None;
            return axum::http::StatusCode::ACCEPTED;
        }
        "tools/call" if message["params"]["name"] == "many" => {
            json!({"content": [], "structuredContent": {"a": vec![json!({}); 20_000]}})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "hello"}]}),
        _ => return axum::http::StatusCode::ACCEPTED,
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    let event = Event::default().event("message").data(answer);
    if let Some(out) = &*out.0.lock().unwrap() {
        let _ = out.send(event);
    }
    axum::http::StatusCode::ACCEPTED
}

async fn server(endpoint: &str) -> UpstreamConfig {
    let state: (Out, String) = (Out::default(), endpoint.to_owned());
    let router = Router::new().route("/sse", get(stream)).route("/messages", post(message)).with_state(state);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let mut config = quick(UpstreamConfig::url(format!("http://{address}/sse")));
    config.transport = Some(TransportType::Sse);
    config
}

#[tokio::test]
async fn a_server_of_the_older_transport_is_called_and_reconnected_when_it_hangs_up() {
    let config = server("/messages?session=1").await;
    let bench = Bench::new();
    let app = bench.add("a", config).await;
    let client = bench.client().await;
    assert_eq!(text(&client, "a:hello").await, "hello");
    let error = error(&client, "a:hang-up", json!({})).await;
    assert_eq!(error.data.unwrap()["code"], "UPSTREAM_ENDED");
    until(&app, |health| *health == AppHealth::Up).await;
    crate::support::eventually("its tools are back", || {
        bench.registry.operator_snapshot().tool("a:hello").is_some()
    })
    .await;
    assert_eq!(text(&client, "a:hello").await, "hello");
}

#[tokio::test]
async fn an_endpoint_on_another_host_is_refused() {
    let app = UpstreamApp::start("a", server("http://example.com/messages").await, environment());
    let AppHealth::Down(why) = app.wait_ready(LONG).await else { panic!("it is up") };
    assert!(why.to_string().contains("another host"), "{why}");
    assert!(app.catalog().tools.is_empty());
}

#[tokio::test]
async fn an_answer_of_too_many_values_is_an_error_of_its_call() {
    let mut config = server("/messages").await;
    config.max_message_bytes = 1_000_000;
    let bench = Bench::new();
    bench.add("a", config).await;
    let client = bench.client().await;
    let error = error(&client, "a:many", json!({})).await;
    assert!(error.message.contains("31250 keys and values"), "{}", error.message);
    assert_eq!(text(&client, "a:hello").await, "hello");
}

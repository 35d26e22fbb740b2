//! Servers over HTTP that ask without end and leave the POSTs of the gateway open.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response, Sse, sse::Event},
    routing::{get, post},
};
use futures::StreamExt as _;
use gatewright_upstream::{TransportType, UpstreamConfig};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
};

use crate::support::{Bench, LONG, eventually, quick, text};

/// Requests of the server during one call of `flood`.
const FLOOD: usize = 2_000;
/// POSTs of one kind that may be open: eight, and those that ended but are not closed here yet.
const MOST_POSTS: usize = 16;
/// Well before a POST ends by itself.
const SOON: Duration = Duration::from_secs(20);

/// POSTs that were left open.
#[derive(Default)]
struct Open {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Open {
    fn enter(self: &Arc<Self>) -> Left {
        let now = self.now.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(now, SeqCst);
        Left(self.clone())
    }
}

/// A POST that was left open, until its connection is closed.
struct Left(Arc<Open>);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, SeqCst);
    }
}

struct Server {
    is_sse: bool,
    /// The event stream of HTTP+SSE.
    out: Mutex<Option<mpsc::UnboundedSender<Event>>>,
    /// Answers and notifications are accepted.
    accepts: watch::Sender<bool>,
    /// Ids of the requests of the server that were answered.
    answered: Mutex<Vec<String>>,
    answers: Arc<Open>,
    cancellations: Arc<Open>,
    calls: Arc<Open>,
    /// Calls of `late` that were answered.
    late: AtomicUsize,
    /// An answer is answered with an event stream.
    streams: AtomicBool,
}

type Shared = Arc<Server>;

fn answer(message: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string()
}

fn ping(id: &str) -> Event {
    Event::default().data(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string())
}

/// Sends events to the client: on the stream of HTTP+SSE, or as the response to a request.
fn respond(server: &Server, events: Vec<Event>) -> Response {
    if !server.is_sse {
        let events = futures::stream::iter(events).map(Ok::<_, std::io::Error>);
        return Sse::new(events).into_response();
    }
    if let Some(out) = &*server.out.lock().unwrap() {
        for event in events {
            let _ = out.send(event);
        }
    }
    StatusCode::ACCEPTED.into_response()
}

/// Accepts a message once the server does.
async fn accept(server: &Server, open: &Arc<Open>) -> Response {
    let left = open.enter();
    let mut accepts = server.accepts.subscribe();
    let _ = accepts.wait_for(|accepts| *accepts).await;
    if server.streams.load(SeqCst) {
        let endless = futures::stream::once(async move {
            let _left = left;
            std::future::pending::<Result<Event, std::io::Error>>().await
        });
        return Sse::new(endless).into_response();
    }
    StatusCode::ACCEPTED.into_response()
}

async fn message(State(server): State<Shared>, Json(message): Json<Value>) -> Response {
    let result = match message["method"].as_str() {
        None => {
            let response = accept(&server, &server.answers).await;
            let id = message["id"].as_str().unwrap_or_default().to_owned();
            server.answered.lock().unwrap().push(id);
            return response;
        }
        Some("initialize") => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}}),
        Some("tools/list") => {
            let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
            json!({"tools": (["hello", "flood", "last", "long", "late", "stuck"].map(tool))})
        }
        Some("notifications/cancelled") => return accept(&server, &server.cancellations).await,
        Some("tools/call") => json!({"content": [{"type": "text", "text": "hello"}]}),
        _ if message.get("id").is_none() => return StatusCode::ACCEPTED.into_response(),
        _ => json!({}),
    };
    let answered = Event::default().data(answer(&message, &result));
    let mut events: Vec<Event> = match message["params"]["name"].as_str() {
        Some("flood") => (0..FLOOD).map(|number| ping(&format!("flood {number}"))).collect(),
        Some("last") => vec![ping("last")],
        Some("long") => vec![ping(&"l".repeat(100_000)), ping("last")],
        Some(name @ ("late" | "stuck")) => {
            let _left = server.calls.enter();
            if name == "late" {
                let _ = respond(&server, vec![answered]);
                server.late.fetch_add(1, SeqCst);
            }
            return std::future::pending().await;
        }
        _ => Vec::new(),
    };
    events.push(answered);
    respond(&server, events)
}

async fn stream(State(server): State<Shared>) -> Response {
    if !server.is_sse {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let (sender, receiver) = mpsc::unbounded_channel();
    sender.send(Event::default().event("endpoint").data("/mcp")).unwrap();
    *server.out.lock().unwrap() = Some(sender);
    let events = futures::stream::unfold(receiver, |mut receiver| async {
        let event = receiver.recv().await?;
        Some((Ok::<_, std::io::Error>(event), receiver))
    });
    Sse::new(events).into_response()
}

/// A bench with such a server as the app `a`.
async fn start(is_sse: bool) -> (Bench, Shared) {
    let server = Arc::new(Server {
        is_sse,
        out: Mutex::default(),
        accepts: watch::Sender::new(false),
        answered: Mutex::default(),
        answers: Arc::default(),
        cancellations: Arc::default(),
        calls: Arc::default(),
        late: AtomicUsize::new(0),
        streams: AtomicBool::new(false),
    });
    let router = Router::new()
        .route("/mcp", post(message).get(stream))
        .route("/sse", get(stream))
        .with_state(server.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let path = if is_sse { "sse" } else { "mcp" };
    let mut config = quick(UpstreamConfig::url(format!("http://{address}/{path}")));
    config.transport = Some(if is_sse { TransportType::Sse } else { TransportType::Http });
    let bench = Bench::new();
    bench.add("a", config).await;
    (bench, server)
}

/// Floods the gateway, lets it send its answers, and returns how many came.
async fn answers_after_a_flood(is_sse: bool) -> (usize, Shared) {
    let (bench, server) = start(is_sse).await;
    let client = bench.client().await;
    assert_eq!(text(&client, "a:flood").await, "hello");
    eventually("answers are sent", || server.answers.now.load(SeqCst) > 0).await;
    assert_eq!(text(&client, "a:hello").await, "hello");
    server.accepts.send_replace(true);
    let until_last = async {
        while !server.answered.lock().unwrap().iter().any(|id| id == "last") {
            assert_eq!(text(&client, "a:last").await, "hello");
        }
    };
    tokio::time::timeout(LONG, until_last).await.expect("answers go on once they are accepted");
    let flood = server.answered.lock().unwrap().iter().filter(|id| id.starts_with("flood")).count();
    (flood, server)
}

#[tokio::test]
async fn answers_that_a_server_over_http_does_not_accept_are_bounded_in_number() {
    let (flood, server) = answers_after_a_flood(false).await;
    assert!((1..FLOOD / 2).contains(&flood), "{flood} answers were kept");
    assert!(server.answers.most.load(SeqCst) <= MOST_POSTS);
}

#[tokio::test]
async fn answers_that_a_server_over_sse_does_not_accept_are_bounded_in_number_and_connections() {
    let (flood, server) = answers_after_a_flood(true).await;
    assert!((1..FLOOD / 2).contains(&flood), "{flood} answers were kept");
    assert!(server.answers.most.load(SeqCst) <= MOST_POSTS, "{} POSTs", server.answers.most.load(SeqCst));
}

#[tokio::test]
async fn a_request_of_a_server_with_a_very_long_id_is_not_answered() {
    for is_sse in [false, true] {
        let (bench, server) = start(is_sse).await;
        server.accepts.send_replace(true);
        let client = bench.client().await;
        assert_eq!(text(&client, "a:long").await, "hello");
        eventually("the other request is answered", || !server.answered.lock().unwrap().is_empty()).await;
        assert_eq!(*server.answered.lock().unwrap(), ["last"]);
    }
}

#[tokio::test]
async fn event_streams_in_response_to_answers_are_closed() {
    let (bench, server) = start(false).await;
    server.streams.store(true, SeqCst);
    server.accepts.send_replace(true);
    let client = bench.client().await;
    assert_eq!(text(&client, "a:last").await, "hello");
    eventually("the stream is closed and the answer counts", || {
        !server.answered.lock().unwrap().is_empty() && server.answers.now.load(SeqCst) == 0
    })
    .await;
    assert_eq!(text(&client, "a:last").await, "hello");
    eventually("the next answer is sent", || server.answered.lock().unwrap().len() == 2).await;
}

#[tokio::test]
async fn posts_of_calls_that_were_cancelled_over_sse_are_closed_and_their_cancellations_are_few() {
    let (bench, server) = start(true).await;
    let client = bench.client().await;
    let cancelling = async {
        for _ in 0..20 {
            let call = client.tools().call("a:stuck", json!({})).begin().await.unwrap();
            eventually("the call is posted", || server.calls.now.load(SeqCst) > 0).await;
            call.cancel().await;
            eventually("its POST is closed", || server.calls.now.load(SeqCst) == 0).await;
        }
    };
    tokio::time::timeout(SOON, cancelling).await.expect("the POSTs are closed before their time is over");
    eventually("cancellations are sent", || server.cancellations.now.load(SeqCst) > 0).await;
    assert_eq!(text(&client, "a:hello").await, "hello");
    assert!(server.cancellations.most.load(SeqCst) <= MOST_POSTS);
}

#[tokio::test]
async fn posts_of_calls_that_were_answered_over_sse_are_few() {
    let (bench, server) = start(true).await;
    let client = bench.client().await;
    for _ in 0..40 {
        assert_eq!(text(&client, "a:late").await, "hello");
    }
    assert_eq!(server.late.load(SeqCst), 40);
    let few = eventually("most POSTs are closed", || server.calls.now.load(SeqCst) <= MOST_POSTS);
    tokio::time::timeout(SOON, few).await.expect("the POSTs are closed before their time is over");
}

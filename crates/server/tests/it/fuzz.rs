//! Body of the fuzz target `edge`: requests of strangers, and what they get whatever they say.

use std::{net::SocketAddr, time::Duration};

use futures::{StreamExt as _, future::BoxFuture};
use gatewright_core::{AuthRefusal, Authenticator, Principal};
use gatewright_server::{Bound, HttpConfig, Server, axum::body::Body};
use http::{HeaderMap, HeaderValue, Method, Request, Response, header, request::Parts};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::time::timeout;
use url::Url;

use crate::support::{Believing, Tools, gateway, message};

#[path = "../../../../fuzz/src/requests.rs"]
mod requests;

#[cfg(test)]
#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;

/// `http.maxBodyBytes`.
const MOST: usize = 2048;
/// Time on the paused clock after which a stream says nothing more, and a tool that waits goes on waiting.
const QUIET: Duration = Duration::from_secs(1);
const PROTO: &str = "x-forwarded-proto";
const OWN_ORIGINS: [&str; 2] = ["https://mcp.example", "https://page.example"];

/// Sends the requests that `bytes` hold, one after the other, to a server of their own.
///
/// In the text, `$session` is a session of `alice`, `$sse` one of hers of the older transport.
pub(crate) fn check(bytes: &[u8]) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(send_all(&String::from_utf8_lossy(bytes)));
}

#[cfg(test)]
thread_local! {
    /// Every method, path and status, for the test to see that what is checked does happen.
    static SEEN: std::cell::RefCell<std::collections::HashSet<String>> = std::cell::RefCell::default();
}

/// Checks on its way in that a request names no host and no origin but the server's own, as another parser reads them.
struct Admitted;

impl Authenticator for Admitted {
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> BoxFuture<'a, Result<Principal, AuthRefusal>> {
        assert!(!texts(&parts.headers, PROTO).any(|proto| proto == "http"), "admitted over plain HTTP");
        let hosts = texts(&parts.headers, header::HOST).chain(parts.uri.authority().map(|a| a.as_str()));
        for host in hosts {
            let url = Url::parse(&format!("http://{host}/")).unwrap_or_else(|_| panic!("a host: {host:?}"));
            assert!(is_loopback(&url) || url.host_str() == Some("mcp.example"), "admitted from {host:?}");
        }
        for origin in texts(&parts.headers, header::ORIGIN) {
            let url = Url::parse(origin).unwrap_or_else(|_| panic!("an origin: {origin:?}"));
            let own = url.origin().ascii_serialization();
            assert!(is_loopback(&url) || OWN_ORIGINS.contains(&&*own), "admitted from {origin:?}");
        }
        Believing.authenticate(parts)
    }

    fn insufficient_scope(&self, principal: &Principal, missing: &[String]) -> AuthRefusal {
        Believing.insufficient_scope(principal, missing)
    }
}

fn texts(headers: &HeaderMap, name: impl header::AsHeaderName) -> impl Iterator<Item = &str> {
    headers.get_all(name).into_iter().map(|value| value.to_str().unwrap_or("no text"))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    ["localhost", "127.0.0.1", "[::1]"].contains(&host)
}

async fn server() -> Bound {
    let config = json!({
        "port": 0, "maxBodyBytes": MOST, "legacySse": true, "sessionIdle": "24h",
        "publicUrl": OWN_ORIGINS[0], "allowedOrigins": [OWN_ORIGINS[1]], "trustedProxies": [peer().ip()],
    });
    let config: HttpConfig = serde_json::from_value(config).unwrap();
    let server =
        Server::builder(gateway(Tools::default()).await, config).authenticator(std::sync::Arc::new(Admitted));
    server.bind().await.unwrap()
}

/// A proxy that ends HTTPS: what is not said to have come over it gets no further.
fn peer() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 7], 1000))
}

async fn send_all(text: &str) {
    let server = server().await;
    let session = if text.contains("$session") { open(&server).await } else { String::new() };
    let (stream, sse) = if text.contains("$sse") { open_sse(&server).await } else { (None, String::new()) };
    let mut ended = false;
    for piece in requests::pieces(text) {
        let piece = piece.replace("$session", &session).replace("$sse", &sse);
        let Some(request) = requests::parse(&piece) else { continue };
        let (mut parts, body) = request.into_parts();
        parts.headers.entry(PROTO).or_insert(HeaderValue::from_static("https"));
        ended |= parts.method == Method::DELETE && is_alices(&parts);
        let chunks: Vec<Result<_, std::io::Error>> =
            body.as_bytes().chunks(100).map(|chunk| Ok(chunk.to_vec())).collect();
        let length = body.len();
        let body = Body::from_stream(futures::stream::iter(chunks));
        let request = Request::from_parts(parts.clone(), body);
        // Only a tool that waits does not answer.
        let Ok(response) = timeout(QUIET, server.answer(request, peer())).await else { continue };
        answered(&parts, length, &session, response).await;
    }
    if let Some(stream) = stream {
        events(&said(stream).await);
    }
    if !session.is_empty() && !ended {
        let response = server.answer(in_session(&session, &message(99, "ping", &json!({}))), peer()).await;
        assert_eq!(response.status(), 200, "somebody else ended the session: {text:?}");
    }
}

fn is_alices(parts: &Parts) -> bool {
    texts(&parts.headers, header::AUTHORIZATION).next() == Some("Bearer alice")
}

fn of_alice(method: &str, path: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header(PROTO, "https")
        .header("authorization", "Bearer alice")
        .header("content-type", "application/json")
}

fn in_session(session: &str, message: &str) -> Request<Body> {
    let request = of_alice("POST", "/mcp").header("mcp-protocol-version", "2025-11-25");
    request.header("mcp-session-id", session).body(Body::from(message.to_owned())).unwrap()
}

async fn open(server: &Bound) -> String {
    let info = json!({"name": "fuzz", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    let initialize = message(0, "initialize", &params);
    let request = of_alice("POST", "/mcp").body(Body::from(initialize)).unwrap();
    let response = server.answer(request, peer()).await;
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    said(response.into_body()).await;
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(server.answer(in_session(&session, initialized), peer()).await.status(), 202);
    session
}

async fn open_sse(server: &Bound) -> (Option<Body>, String) {
    let response = server.answer(of_alice("GET", "/sse").body(Body::empty()).unwrap(), peer()).await;
    let mut stream = response.into_body().into_data_stream();
    let first = stream.next().await.unwrap().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    let id = first.split("sessionId=").nth(1).unwrap().trim().to_owned();
    (
        Some(Body::new(http_body_util::StreamBody::new(stream.map(|data| data.map(http_body::Frame::data))))),
        id,
    )
}

/// The body as far as it is sent before the server has nothing more to say.
async fn said(mut body: Body) -> String {
    let mut bytes = Vec::new();
    while let Ok(Some(Ok(frame))) = timeout(QUIET, body.frame()).await {
        bytes.extend(frame.into_data().unwrap_or_default());
    }
    String::from_utf8(bytes).expect("answers are text")
}

/// Checks one answer.
async fn answered(request: &Parts, length: usize, session: &str, response: Response<Body>) {
    let (parts, body) = response.into_parts();
    let (status, headers) = (parts.status.as_u16(), &parts.headers);
    #[cfg(test)]
    SEEN.with_borrow_mut(|seen| seen.insert(format!("{} {} {status}", request.method, request.uri.path())));
    let is_busy = status == 503 && headers.contains_key(header::RETRY_AFTER);
    assert!(status < 500 || is_busy, "{status} for {request:?}");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    if let Some(reader) = headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN) {
        let origin = Url::parse(reader.to_str().unwrap()).unwrap().origin().ascii_serialization();
        assert!(OWN_ORIGINS.contains(&&*origin), "{reader:?} may read the answer");
    }
    let is_endpoint = request.uri.path() == "/mcp";
    if is_endpoint && request.method == Method::POST && length > MOST {
        assert!(status >= 400, "{status} for a body longer than the limit: {request:?}");
    }
    let names_session =
        request.headers.get("mcp-session-id").is_some_and(|id| id.as_bytes() == session.as_bytes());
    if is_endpoint && names_session && !session.is_empty() && !is_alices(request) {
        let modern = texts(&request.headers, "mcp-protocol-version").any(|version| version >= "2026");
        assert!(
            modern || status >= 400 || request.method == Method::OPTIONS,
            "{status} in another's session: {request:?}"
        );
    }
    let kind =
        headers.get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap().to_owned()).unwrap_or_default();
    let text = said(body).await;
    if kind.starts_with("text/event-stream") {
        events(&text);
    }
    if is_endpoint && status >= 400 && !headers.contains_key(header::WWW_AUTHENTICATE) {
        let error: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status} with {text:?}"));
        assert!(error["jsonrpc"] == "2.0" && error["error"]["code"].is_i64(), "{status} with {text:?}");
    }
}

/// Checks that a stream is one of server-sent events whose data are messages.
fn events(text: &str) {
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (field, value) = line.split_once(':').unwrap_or_else(|| panic!("{line:?} in {text:?}"));
        assert!(["", "event", "data", "id", "retry"].contains(&field), "{line:?} in {text:?}");
        if field == "data" && !value.trim().is_empty() && !value.contains("/messages?") {
            serde_json::from_str::<Value>(value).unwrap_or_else(|_| panic!("{line:?} in {text:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_request_of_the_corpus_gets_what_it_is_owed() {
        for (name, bytes) in super::corpus::of("edge") {
            println!("{name}");
            super::check(&bytes);
        }
        super::SEEN.with_borrow(|seen| {
            for wanted in [
                "POST /mcp 200",
                "POST /mcp 202",
                "POST /mcp 403",
                "POST /mcp 404",
                "POST /mcp 413",
                "GET /mcp 200",
                "DELETE /mcp 204",
                "OPTIONS /mcp 204",
                "GET /sse 200",
                "POST /messages 202",
            ] {
                assert!(seen.contains(wanted), "no {wanted}: {seen:?}");
            }
        });
    }
}

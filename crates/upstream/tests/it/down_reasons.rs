//! What callers and operators learn about a server that fails: callers nothing that the server or its configuration says.

use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};

use gatewright_core::{App as _, AppHealth, AppOptions, DownReason, Registry, ToolNames};
use gatewright_upstream::{UpstreamApp, UpstreamConfig};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::support::{Bench, LONG, environment, is_down, quick, server, until};

const SECRETS: [&str; 4] = ["s3cretInThePath", "k=qz", "hunter2-user", "hunter2-password"];

/// A response to every request that is misbehaved at.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Close,
    Redirect,
    NotFound,
    ContentType,
    NotJson,
    Silent,
}

const FAULTS: [Fault; 6] =
    [Fault::Close, Fault::Redirect, Fault::NotFound, Fault::ContentType, Fault::NotJson, Fault::Silent];

impl Fault {
    /// The response, which repeats the path of the request.
    fn response(self, path: &str) -> Option<String> {
        let (head, body) = match self {
            Self::Close => return Some(String::new()),
            Self::Silent => return None,
            Self::Redirect => (format!("302 Found\r\nlocation: {path}"), path.to_owned()),
            Self::NotFound => (
                "404 Not Found\r\ncontent-type: text/plain".to_owned(),
                format!("Cannot POST {path}; of ada"),
            ),
            Self::ContentType => ("200 OK\r\ncontent-type: text/ada".to_owned(), path.to_owned()),
            Self::NotJson => {
                ("200 OK\r\ncontent-type: application/json".to_owned(), format!("of ada: {path}"))
            }
        };
        Some(http(&head, &body))
    }
}

fn http(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

/// Answers one request: with `fault` to those of `method`, or to all.
async fn answer(stream: TcpStream, method: Option<&str>, fault: Fault) {
    let mut stream = BufReader::new(stream);
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        if path.is_empty() {
            path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        }
        if let Some(number) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = number.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    let _ = stream.read_exact(&mut body).await;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match message["method"].as_str() {
        name if method.is_none_or(|method| name == Some(method)) => {
            match fault.response(&path) {
                Some(response) => drop(stream.write_all(response.as_bytes()).await),
                None => std::future::pending().await,
            }
            return;
        }
        Some("initialize") => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "test", "version": "1"}}),
        Some("tools/list") => json!({"tools": [{"name": "x", "inputSchema": {"type": "object"}}]}),
        Some("ping") => json!({}),
        None => return drop(stream.write_all(http("405 Method Not Allowed", "").as_bytes()).await),
        Some(_) => return drop(stream.write_all(http("202 Accepted", "").as_bytes()).await),
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    let _ = stream.write_all(http("200 OK\r\ncontent-type: application/json", &body).as_bytes()).await;
}

/// A server with secrets in its address, which misbehaves at requests of `method`, or at all.
async fn faulty(method: Option<&'static str>, fault: Fault) -> UpstreamConfig {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = secret(&listener.local_addr().unwrap().to_string());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, method, fault));
        }
    });
    config
}

fn secret(address: &str) -> UpstreamConfig {
    let [path, query, user, password] = SECRETS;
    let mut config =
        quick(UpstreamConfig::url(format!("http://{user}:{password}@{address}/s/{path}/mcp?{query}")));
    config.connect_timeout = Duration::from_millis(300);
    config
}

/// Collects the log of this thread.
fn log() -> (Arc<Mutex<Vec<u8>>>, impl Drop) {
    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let lines = Arc::<Mutex<Vec<u8>>>::default();
    let writer = lines.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || Shared(writer.clone())).finish();
    (lines, tracing::subscriber::set_default(subscriber))
}

fn no_secrets(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

async fn down(config: UpstreamConfig) -> DownReason {
    let app = UpstreamApp::start("a", config, environment());
    let AppHealth::Down(why) = app.wait_ready(LONG).await else { panic!("it is up") };
    app.shutdown().await;
    why
}

#[tokio::test]
async fn an_address_with_secrets_is_told_to_nobody_when_a_server_cannot_be_connected_to() {
    let (log, _guard) = log();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let refused = down(secret(&address)).await;
    no_secrets(&refused.in_full());
    let expected = "it cannot be reached: connection refused; is it running, and is `url` right?";
    assert_eq!(refused.to_string(), expected);
    for (fault, summary) in FAULTS.into_iter().zip([
        "the connection broke",
        "it answered with HTTP 302",
        "it answered with HTTP 404 Not Found",
        "its answer is neither JSON nor an event stream",
        "its answer is not a message of MCP",
        "it did not answer the handshake within 300 ms",
    ]) {
        let why = down(faulty(None, fault).await).await;
        no_secrets(&why.in_full());
        assert!(why.to_string().starts_with(summary) && !why.to_string().contains("ada"), "{why:?}");
        let has_words = matches!(fault, Fault::NotFound | Fault::NotJson | Fault::ContentType);
        assert_eq!(why.in_full().contains("ada"), has_words, "{why:?}");
    }
    no_secrets(&String::from_utf8_lossy(&log.lock().unwrap()));
}

#[tokio::test]
async fn an_address_with_secrets_is_told_to_nobody_when_a_call_fails() {
    let (log, _guard) = log();
    for fault in FAULTS {
        let bench = Bench::new();
        let mut config = faulty(Some("tools/call"), fault).await;
        config.timeout = Duration::from_millis(300);
        bench.add("a", config).await;
        let result = bench.client().await.tools().call("a:x", json!({})).await.unwrap();
        let told = format!("{:?} {}", result.error, result.raw);
        no_secrets(&told);
        assert!(!told.contains("ada"), "{told}");
        let code = if matches!(fault, Fault::Silent) { "TIMEOUT" } else { "UPSTREAM_UNREACHABLE" };
        assert!(told.contains(code), "{fault:?}: {told}");
        bench.registry.shutdown().await;
    }
    let log = String::from_utf8_lossy(&log.lock().unwrap()).into_owned();
    no_secrets(&log);
    assert!(log.contains("of ada") && log.contains("a request to an app failed"), "{log}");
}

#[tokio::test]
async fn an_app_that_is_down_because_the_gateway_stops_is_not_logged() {
    for stops in [true, false] {
        let (log, _guard) = log();
        let registry = Registry::new(ToolNames::Colon);
        let app = UpstreamApp::start("a", server(&["--exit-at-once"]), environment());
        assert!(is_down(&app.wait_ready(LONG).await));
        registry.add("a", app, AppOptions::default());
        // Stopped before anybody followed the app, or after.
        while !stops && !String::from_utf8_lossy(&log.lock().unwrap()).contains("app is down") {
            tokio::task::yield_now().await;
        }
        registry.shutdown().await;
        let log = String::from_utf8_lossy(&log.lock().unwrap()).into_owned();
        assert_eq!(log.contains("app is down"), !stops, "{log}");
    }
}

#[tokio::test]
async fn callers_do_not_get_the_standard_error_of_a_server_and_operators_do() {
    let (log, _guard) = log();
    let bench = Bench::new();
    let ended = UpstreamApp::start("a", server(&["--exit-at-once"]), environment());
    let AppHealth::Down(why) = until(&ended, is_down).await else { unreachable!("it is down") };
    // One that is down already is logged on this thread.
    bench.registry.add("a", ended, AppOptions::default());
    assert!(
        why.to_string().ends_with(" (exit status: 3)") && !why.to_string().contains("database"),
        "{why:?}"
    );
    assert!(why.in_full().contains("cannot open the database"), "{why:?}");
    let told = bench.client().await.tools().call("a:echo", json!({})).await.unwrap().raw.to_string();
    assert!(told.contains("UPSTREAM_DOWN") && told.contains("exit status: 3"), "{told}");
    assert!(!told.contains("database"), "{told}");
    bench.registry.shutdown().await;
    let log = String::from_utf8_lossy(&log.lock().unwrap()).into_owned();
    assert!(log.contains("app is down") && log.contains("cannot open the database"), "{log}");
}

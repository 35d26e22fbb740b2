//! HTTP calls that pass through to the network, and calls that cannot.

use gatewright_testing::http_mock;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::support::written;

#[tokio::test]
async fn a_stream_without_an_end_passes_through_as_it_arrives() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/events", listener.local_addr().unwrap());
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: first\n\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    });
    let http = http_mock::interceptor().unwrap();
    http.allow_passthrough(true);
    let mut answer = http.client().unwrap().get(&url).send().await.unwrap();
    let mut stream = upstream.await.unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "data: first\n\n");
    stream.write_all(b"data: second\n\n").await.unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "data: second\n\n");
}

#[tokio::test]
async fn a_call_that_reaches_no_server_is_reported_and_not_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("api.json");
    // A free port that nobody listens on.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    {
        let http = http_mock::interceptor().unwrap();
        http.record(&file).unwrap();
        let client = http.client().unwrap();
        let answer = client.get(format!("http://127.0.0.1:{port}/x")).send().await.unwrap();
        assert_eq!(answer.status(), 502);
        let problem = http.unreachable().join("\n");
        assert!(
            problem.contains(&format!("GET http://127.0.0.1:{port}/x was let through and cannot")),
            "{problem}"
        );
        assert!(problem.contains("refused"), "the cause in the end: {problem}");
    }
    let cassette = written(&file).await;
    assert!(cassette.contains("\"entries\": []"), "{cassette}");
}

#[tokio::test]
async fn a_websocket_is_rejected_and_reported() {
    let http = http_mock::interceptor().unwrap();
    http.any("https://live.example/", gatewright_testing::http_response::text("no socket"));
    let request = http.client().unwrap().get("https://live.example/feed");
    let request = request.header("connection", "Upgrade").header("upgrade", "websocket");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 501);
    assert!(answer.text().await.unwrap().contains("does not speak WebSocket"));
    let problem = http.check_done().unwrap_err().to_string();
    assert!(problem.contains("GET https://live.example/feed (a WebSocket"), "{problem}");
}

#[tokio::test]
async fn hop_by_hop_headers_are_not_passed_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut request, mut chunk) = (String::new(), [0; 4096]);
        while !request.contains("\r\n\r\n") {
            let read = stream.read(&mut chunk).await.unwrap();
            assert!(read > 0, "{request}");
            request.push_str(&String::from_utf8_lossy(&chunk[..read]));
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nkeep-alive: timeout=5\r\nproxy-connection: keep-alive\r\n\
            te: trailers\r\nx-kept: 1\r\n\r\nhi";
        stream.write_all(head.as_bytes()).await.unwrap();
        request
    });
    let http = http_mock::interceptor().unwrap();
    http.allow_passthrough(true);
    let request = http.client().unwrap().get(format!("http://{address}/"));
    let request = request.header("te", "trailers").header("proxy-connection", "close").header("x-kept", "1");
    let answer = request.send().await.unwrap();
    for name in ["keep-alive", "proxy-connection", "te"] {
        assert!(!answer.headers().contains_key(name), "{name}: {answer:?}");
    }
    assert_eq!(answer.headers()["x-kept"], "1");
    assert_eq!(answer.text().await.unwrap(), "hi");
    let asked = upstream.await.unwrap().to_lowercase();
    assert!(
        asked.contains("x-kept: 1") && !asked.contains("\nte:") && !asked.contains("proxy-connection"),
        "{asked}"
    );
}

//! What HTTP mocks let through, and what they cannot carry.

use gatewright_testing::http_mock;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

#[tokio::test]
async fn a_stream_that_never_ends_is_passed_on_as_it_comes() {
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
async fn a_call_that_reaches_nobody_is_named_and_not_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("api.json");
    // A port that was free and that nobody listens on.
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
    let written = async {
        loop {
            match std::fs::read_to_string(&file) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => tokio::task::yield_now().await,
            }
        }
    };
    let cassette = tokio::time::timeout(std::time::Duration::from_secs(10), written).await.unwrap();
    assert!(cassette.contains("\"entries\": []"), "{cassette}");
}

#[tokio::test]
async fn a_websocket_is_refused_and_named() {
    let http = http_mock::interceptor().unwrap();
    http.any("https://live.example/", gatewright_testing::http_response::text("no socket"));
    let request = http.client().unwrap().get("https://live.example/feed");
    let request = request.header("connection", "Upgrade").header("upgrade", "websocket");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 501);
    assert!(answer.text().await.unwrap().contains("does not speak WebSocket"));
    let problem = http.assert_done().unwrap_err().to_string();
    assert!(problem.contains("GET https://live.example/feed (a WebSocket"), "{problem}");
}

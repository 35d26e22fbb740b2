//! Connections that wait for their next request. What happens when is in the unit tests of `idle`, where time is simulated.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::support::{PATIENCE, Rig, start, start_with};

async fn connect(rig: &Rig) -> TcpStream {
    TcpStream::connect(rig.base.strip_prefix("http://").unwrap()).await.unwrap()
}

/// The head of the answer to a request with these headers.
async fn ask(stream: &mut TcpStream, headers: &str) -> String {
    let request = format!("GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") {
        assert_ne!(timeout(PATIENCE, stream.read_buf(&mut answer)).await.unwrap().unwrap(), 0, "closed");
    }
    let text = String::from_utf8(answer).unwrap().to_lowercase();
    assert!(text.starts_with("http/1.1 200"), "{text}");
    text.split_once("\r\n\r\n").unwrap().0.to_owned()
}

async fn ends(stream: &mut TcpStream) {
    timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_is_told_how_long_it_may_use_its_connection_again() {
    let rig = start(json!({"connectionIdle": "2m"})).await;
    let mut stream = connect(&rig).await;
    let head = ask(&mut stream, "").await;
    assert!(
        head.contains("\r\nconnection: keep-alive") && head.contains("\r\nkeep-alive: timeout=120"),
        "{head}"
    );
    let head = ask(&mut stream, "connection: close\r\n").await;
    assert!(head.contains("\r\nconnection: close") && !head.contains("timeout="), "{head}");
    ends(&mut stream).await;
}

#[tokio::test]
async fn a_head_of_a_hundred_kilobytes_is_refused_and_one_of_thirty_is_not() {
    let rig = start(json!({})).await;
    let filler = |bytes: usize| format!("x-filler: {}\r\n", "x".repeat(bytes));
    ask(&mut connect(&rig).await, &filler(30_000)).await;
    let mut stream = connect(&rig).await;
    let request = format!("GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n{}\r\n", filler(100_000));
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = [0; 12];
    // It is closed while more of the head arrives, which may take the answer with it.
    let read = timeout(PATIENCE, stream.read_exact(&mut answer)).await.unwrap();
    assert!(read.is_err() || &answer == b"HTTP/1.1 431", "{answer:?}");
}

// The runtime has one thread.
#[tokio::test]
async fn other_work_gets_its_turn_between_requests_that_a_client_sends_at_once() {
    const REQUESTS: usize = 400;
    let rig = start(json!({})).await;
    let mut stream = connect(&rig).await;
    ask(&mut stream, "").await;
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = turns.clone();
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, SeqCst);
            tokio::task::yield_now().await;
        }
    });
    let all = "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".repeat(REQUESTS);
    stream.write_all(all.as_bytes()).await.unwrap();
    let before = turns.load(SeqCst);
    let mut answers = Vec::new();
    while String::from_utf8_lossy(&answers).matches("HTTP/1.1 200").count() < REQUESTS {
        assert_ne!(timeout(PATIENCE, stream.read_buf(&mut answers)).await.unwrap().unwrap(), 0, "closed");
    }
    assert!(turns.load(SeqCst) - before >= REQUESTS, "{} turns", turns.load(SeqCst) - before);
    other.abort();
}

#[tokio::test]
async fn an_idle_connection_outlives_the_time_for_headers_and_ends_after_its_own() {
    let rig = start(json!({"headerReadTimeout": "1s", "connectionIdle": "2s"})).await;
    let mut stream = connect(&rig).await;
    ask(&mut stream, "").await;
    let idle = Instant::now();
    ends(&mut stream).await;
    assert!(idle.elapsed() >= Duration::from_secs(2), "{:?}", idle.elapsed());
}

#[tokio::test]
async fn a_request_that_is_begun_and_not_ended_ends_a_connection_that_would_be_kept_for_long() {
    let rig = start(json!({"headerReadTimeout": "2s", "connectionIdle": "1h"})).await;
    for pause in ["", "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: "] {
        let mut stream = connect(&rig).await;
        if !pause.is_empty() {
            ask(&mut stream, "").await;
            stream.write_all(pause.as_bytes()).await.unwrap();
        }
        ends(&mut stream).await;
    }
}

#[tokio::test]
async fn idle_connections_end_at_once_when_the_server_does() {
    let mut rig = start(json!({"connectionIdle": "1h", "drainTimeout": "10m"})).await;
    let (mut used, mut fresh) = (connect(&rig).await, connect(&rig).await);
    ask(&mut used, "").await;
    rig.shutdown.cancel();
    timeout(PATIENCE, rig.served.take().unwrap()).await.unwrap().unwrap();
    ends(&mut used).await;
    // One whose request never came is reset or ended.
    let _ = timeout(PATIENCE, fresh.read_to_end(&mut Vec::new())).await.unwrap();
}

/// All that the server sends until it closes the connection.
async fn all(stream: &mut TcpStream) -> String {
    let mut received = Vec::new();
    // Bytes that the server did not read make the close a reset.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut received)).await.unwrap();
    String::from_utf8(received).unwrap().to_lowercase()
}

/// A POST to the endpoint up to the end of its headers.
fn post(kind: &str, length: &str) -> String {
    format!("POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {kind}\r\n{length}\r\n\r\n")
}

#[tokio::test]
async fn a_declared_length_over_the_limit_is_refused_before_the_body_comes() {
    let rig = start(json!({"maxBodyBytes": 2000, "bodyReadTimeout": "10m"})).await;
    let mut stream = connect(&rig).await;
    stream.write_all(post("application/json", "content-length: 2001").as_bytes()).await.unwrap();
    let answer = all(&mut stream).await;
    assert!(answer.starts_with("http/1.1 413") && answer.contains("\r\nconnection: close"), "{answer}");
}

#[tokio::test]
async fn a_client_that_sends_its_whole_long_body_still_receives_the_refusal() {
    let rig = start(json!({"maxBodyBytes": 3 << 20})).await;
    let mut stream = connect(&rig).await;
    stream
        .write_all(post("application/json", &format!("content-length: {}", 4 << 20)).as_bytes())
        .await
        .unwrap();
    // Much more than the buffers of both sides take: not read, it would never be sent.
    stream.write_all(&vec![b'x'; 3 << 20]).await.unwrap();
    assert!(all(&mut stream).await.starts_with("http/1.1 413"));
}

#[tokio::test]
async fn an_unread_body_closes_the_connection_and_is_not_taken_for_the_next_request() {
    let rig = start(json!({})).await;
    for length in ["content-length: 1000", "transfer-encoding: chunked"] {
        let mut stream = connect(&rig).await;
        stream.write_all(post("text/plain", length).as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"}") {
            assert_ne!(timeout(PATIENCE, stream.read_buf(&mut answer)).await.unwrap().unwrap(), 0, "closed");
        }
        // The server may have closed the connection by now.
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").await;
        let answer = String::from_utf8(answer).unwrap().to_lowercase() + &all(&mut stream).await;
        assert!(answer.starts_with("http/1.1 415") && answer.contains("\r\nconnection: close"), "{answer}");
        assert!(!answer.contains("keep-alive") && answer.matches("http/1.1").count() == 1, "{answer}");
    }
}

#[tokio::test]
async fn a_transfer_coding_that_two_recipients_could_read_differently_closes_the_connection() {
    let rig = start(json!({})).await;
    let chunked = "transfer-encoding: chunked";
    for (coding, status) in [
        (format!("{chunked}\r\n{chunked}"), 400),
        (format!("{chunked}, chunked"), 501),
        ("transfer-encoding: gzip, chunked".to_owned(), 501),
    ] {
        let mut stream = connect(&rig).await;
        let next = "0\r\n\r\nGET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
        stream.write_all((post("application/json", &coding) + next).as_bytes()).await.unwrap();
        let answer = all(&mut stream).await;
        assert!(answer.starts_with(&format!("http/1.1 {status}")), "{coding}: {answer}");
        assert!(
            answer.contains("\r\nconnection: close") && answer.matches("http/1.1").count() == 1,
            "{answer}"
        );
    }
}

#[tokio::test]
async fn other_routes_know_the_longest_wait_for_a_body() {
    use gatewright_core::BodyTimeout;
    use gatewright_server::axum::{Extension, Router, routing::post};

    let route = post(async |Extension(BodyTimeout(time)): Extension<BodyTimeout>| format!("{time:?}"));
    let rig = start_with(json!({"bodyReadTimeout": "7s"}), |server| {
        server.merge(Router::new().route("/form", route))
    })
    .await;
    let answer = rig.http.post(format!("{}/form", rig.base)).send().await.unwrap().text().await.unwrap();
    assert_eq!(answer, "7s");
}

#[tokio::test]
async fn idle_connections_take_no_place_of_requests() {
    let rig = start(json!({"maxConcurrency": 1, "connectionIdle": "1h"})).await;
    let mut kept = Vec::new();
    for _ in 0..20 {
        let mut stream = connect(&rig).await;
        ask(&mut stream, "").await;
        kept.push(stream);
    }
    let mcp = rig.client().connect().await.unwrap();
    mcp.tools().call("app:echo", json!({})).await.unwrap();
    for stream in &mut kept {
        ask(stream, "").await;
    }
}

/// The head of an answer of 16 MiB: much more than the buffers of both sides take.
async fn long_answer(rig: &Rig) -> reqwest::Response {
    let arguments = json!({"text": "x".repeat(16 << 20)});
    let call = rig.modern("tools/call", json!({"name": "app:echo", "arguments": arguments}));
    let answer = call.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer
}

async fn until_requests(rig: &Rig, open: usize) {
    timeout(PATIENCE, async {
        while rig.occupancy.now().requests != open {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_request_counts_until_its_client_has_taken_the_whole_answer() {
    let rig = start(json!({"maxConcurrency": 1, "maxBodyBytes": 32 << 20})).await;
    let answer = long_answer(&rig).await;
    let refused = rig.modern("server/discover", json!({})).send().await.unwrap();
    assert!(matches!(refused.status().as_u16(), 429 | 503), "{}", refused.status());
    assert_eq!(rig.occupancy.now().requests, 1);
    assert!(answer.bytes().await.unwrap().len() > 16 << 20);
    until_requests(&rig, 0).await;
}

#[tokio::test]
async fn a_client_that_does_not_take_its_answer_loses_its_connection() {
    let rig = start(json!({"writeTimeout": "1s", "maxBodyBytes": 32 << 20})).await;
    let answer = long_answer(&rig).await;
    until_requests(&rig, 0).await;
    assert!(answer.bytes().await.is_err());
}

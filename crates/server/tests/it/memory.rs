//! Memory that requests take while they are worked on: their bytes are bounded, in all and for each caller.

use std::sync::Arc;

use gatewright_server::ServerBuilder;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::support::{Believing, PATIENCE, Rig, answer, message, refused, start_with};

async fn start(mib: usize) -> Rig {
    let set_up = |builder: ServerBuilder| builder.authenticator(Arc::new(Believing));
    start_with(json!({"maxRequestMib": mib}), set_up).await
}

/// Arguments of 680 KB whose values take some 40 MiB.
fn heavy() -> Value {
    json!({"x": vec![json!({"a": 0}); 85_000]})
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("not in time: {what}"));
}

#[tokio::test]
async fn the_values_of_a_call_take_a_share_until_it_ends_and_others_get_theirs() {
    let rig = start(140).await;
    let wait = |who: &str| {
        rig.modern("tools/call", json!({"name": "app:wait", "arguments": heavy()})).bearer_auth(who)
    };
    let held = || rig.occupancy.now().request_bytes;
    let first = tokio::spawn(wait("greedy").send());
    rig.tools.started.notified().await;
    assert!((50 << 20..65 << 20).contains(&held()), "{}", held());
    let response = wait("greedy").send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
    assert!(answer(response).await["error"]["message"].as_str().unwrap().contains("http.maxRequestMib"));
    let small = rig.modern("tools/call", json!({"name": "app:echo", "arguments": {}})).bearer_auth("greedy");
    assert_eq!(small.send().await.unwrap().status(), 200);

    let second = tokio::spawn(wait("ann").send());
    rig.tools.started.notified().await;
    let (status, _, text) = refused(wait("bob")).await;
    assert!(status == 503 && text.contains("http.maxRequestMib"), "{status} {text}");
    for call in [first, second] {
        rig.tools.go_on.notify_one();
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    until("calls that ended take nothing", || held() == 0).await;
    rig.tools.go_on.notify_one();
    assert_eq!(wait("bob").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_message_of_a_batch_keeps_the_room_of_its_batch() {
    let rig = start_with(json!({"sessions": false}), |builder| builder).await;
    let call = |id, name: &str, bytes| {
        message(id, "tools/call", &json!({"name": name, "arguments": {"a": "x".repeat(bytes)}}))
    };
    let batch = format!("[{},{}]", call(1, "app:wait", 10), call(2, "app:echo", 100_000));
    let waiting = tokio::spawn(rig.post(batch).header("mcp-protocol-version", "2025-03-26").send());
    rig.tools.started.notified().await;
    assert!(rig.occupancy.now().request_bytes > 200_000);
    rig.tools.go_on.notify_one();
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
}

/// Begins a POST of 3.5 MiB as `who`, and sends the first `bytes` of its body.
async fn begin(rig: &Rig, who: &str, bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(rig.base.strip_prefix("http://").unwrap()).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {who}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        7 << 19
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; bytes]).await.unwrap();
    stream
}

#[tokio::test]
async fn bodies_that_do_not_end_are_counted_as_they_arrive() {
    let rig = start(16).await;
    let held = || rig.occupancy.now().request_bytes;
    let first = begin(&rig, "slow", 3 << 20).await;
    until("the first body is counted", || held() >= 3 << 20).await;
    let mut second = begin(&rig, "slow", 3 << 20).await;
    let mut head = [0; 12];
    tokio::time::timeout(PATIENCE, second.read_exact(&mut head)).await.unwrap().unwrap();
    assert_eq!(&head, b"HTTP/1.1 429");
    let other = begin(&rig, "ann", 3 << 20).await;
    until("the other body is counted", || held() >= 6 << 20).await;
    assert!(held() <= 8 << 20, "{}", held());
    drop((first, second, other));
    until("bodies that broke off take nothing", || held() == 0).await;
}

#[tokio::test]
async fn a_request_whose_client_leaves_its_session_keeps_place_and_room_until_it_is_answered() {
    let rig = start(100).await;
    let id = rig.open("ann").await;
    let before = rig.occupancy.now().connections;
    let arguments = json!({"a": "x".repeat(100_000)});
    let call = rig.in_session(&id, "tools/call", json!({"name": "app:wait", "arguments": arguments}));
    let client = reqwest::Client::new();
    let response = client.execute(call.bearer_auth("ann").build().unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    rig.tools.started.notified().await;
    drop((response, client));
    until("its connection is gone", || rig.occupancy.now().connections == before).await;
    let now = rig.occupancy.now();
    assert!(now.requests == 1 && now.request_bytes > 200_000, "{now:?}");
    rig.tools.go_on.notify_one();
    until("its place is free", || rig.occupancy.now().requests == 0).await;
    until("its room is free", || rig.occupancy.now().request_bytes == 0).await;
}

#[tokio::test]
async fn unfinished_requests_to_other_routes_take_a_share_of_the_same_memory_and_small_ones_are_answered() {
    let read = async |body: axum::body::Bytes| body.len().to_string();
    let routes = axum::Router::new().route("/token", axum::routing::post(read));
    let rig = start_with(json!({"maxRequestMib": 16, "trustedProxies": ["127.0.0.1"]}), |builder| {
        builder.merge(routes)
    })
    .await;
    let held = || rig.occupancy.now().request_bytes;
    let begin = async |bytes: usize, from: &str| {
        let mut stream = TcpStream::connect(rig.base.strip_prefix("http://").unwrap()).await.unwrap();
        let head = format!(
            "POST /token HTTP/1.1\r\nhost: 127.0.0.1\r\nx-forwarded-for: {from}\r\ncontent-length: {bytes}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&vec![b'x'; bytes - 1]).await.unwrap();
        stream
    };
    let status = async |stream: &mut TcpStream| {
        let mut line = [0; 12];
        tokio::time::timeout(PATIENCE, stream.read_exact(&mut line)).await.unwrap().unwrap();
        String::from_utf8(line.to_vec()).unwrap()
    };
    let mut open = Vec::new();
    // A fifth of 16 MiB.
    for count in 1..=55 {
        open.push(begin(60_000, "203.0.113.7").await);
        until("it is counted", || held() >= count * 60_000).await;
    }
    assert_eq!(status(&mut begin(60_000, "203.0.113.7").await).await, "HTTP/1.1 429");
    for (bytes, from) in [(1_000, "203.0.113.7"), (60_000, "198.51.100.1")] {
        let mut other = begin(bytes, from).await;
        other.write_all(b"x").await.unwrap();
        assert_eq!(status(&mut other).await, "HTTP/1.1 200", "{bytes} bytes of {from}");
    }
    drop(open);
    until("connections that are gone take nothing", || held() == 0).await;
}

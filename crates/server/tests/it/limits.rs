//! Sessions, streams and requests are capped.

use std::sync::Arc;

use futures::future::BoxFuture;
use gatewright_core::{AuthRefusal, Authenticator, Principal};
use gatewright_testing::expect;
use http::request::Parts;
use serde_json::json;
use tokio::sync::Notify;

use crate::{
    hub::Hub,
    support::{Believing, PATIENCE, answer, message, refused, start, start_with},
};

#[tokio::test]
async fn a_session_over_the_cap_is_refused_until_another_ends() {
    let rig = start(json!({"maxSessions": 2})).await;
    let (first, _second) = (rig.open("x").await, rig.open("x").await);
    let response = rig.initialize().send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    let body = answer(response).await;
    assert!(body["error"]["message"].as_str().unwrap().contains("http.maxSessions"), "{body}");
    assert_eq!(rig.modern("tools/list", json!({})).send().await.unwrap().status(), 200);

    rig.http.delete(&rig.url).header("mcp-session-id", first).send().await.unwrap();
    rig.open("x").await;
}

#[tokio::test]
async fn a_request_over_the_cap_is_refused_until_another_is_answered() {
    let rig = start(json!({"maxConcurrency": 1})).await;
    let mcp = rig.client().protocol_version("2026-07-28").connect().await.unwrap();
    let waiting = mcp.tools().call("app:wait", json!({})).begin().await.unwrap();
    rig.tools.started.notified().await;
    let (status, _, text) = refused(rig.modern("tools/list", json!({}))).await;
    assert_eq!(status, 503);
    assert!(text.contains("http.maxConcurrency"), "{text}");
    assert_eq!(rig.http.get(format!("{}/healthz", rig.base)).send().await.unwrap().status(), 200);

    rig.tools.go_on.notify_one();
    expect(&waiting.result().await.unwrap()).to_have_text_content("done");
    assert_eq!(mcp.tools().list().await.unwrap().len(), 4);
}

#[tokio::test]
async fn streams_that_wait_have_a_cap_of_their_own() {
    let rig = start(json!({"maxStreams": 1})).await;
    let id = rig.open("x").await;
    let listen =
        || rig.http.get(&rig.url).header("accept", "text/event-stream").header("mcp-session-id", &id);
    let open = tokio::time::timeout(PATIENCE, listen().send()).await.unwrap().unwrap();
    assert_eq!(open.status(), 200);
    assert_eq!(refused(listen()).await.0, 503);
    assert_eq!(rig.in_session(&id, "ping", json!({})).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_session_that_nobody_uses_ends_and_gives_its_place_back() {
    for cluster in [json!(null), json!({"key": "k".repeat(32)})] {
        let config = json!({"maxSessions": 1, "sessionIdle": "1s", "cluster": cluster});
        let rig = start_with(config, |builder| builder.peers(std::sync::Arc::new(Hub::default()))).await;
        let first = rig.open("x").await;
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            let asked = rig.initialize().send().await.unwrap();
            if asked.status() == 200 {
                break;
            }
            assert_eq!(asked.status(), 503);
            assert_eq!(asked.headers()["retry-after"], "1");
            assert!(std::time::Instant::now() < deadline, "its place was not given back");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        let gone = rig.in_session(&first, "tools/list", json!({})).send().await.unwrap();
        assert_eq!(gone.status(), 404);
    }
}

#[tokio::test]
async fn a_session_with_an_open_call_is_in_use_until_the_call_ends() {
    let rig = start(json!({"sessionIdle": "1s"})).await;
    let busy = rig.open("x").await;
    let call = tokio::spawn(rig.in_session(&busy, "tools/call", json!({"name": "app:wait"})).send());
    rig.tools.started.notified().await;
    // Each of them is used for the last time after the call was made.
    for _ in 0..2 {
        rig.open("x").await;
        let deadline = std::time::Instant::now() + PATIENCE;
        while rig.occupancy.now().sessions > 1 {
            assert!(std::time::Instant::now() < deadline, "an unused session goes on");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }
    rig.tools.go_on.notify_one();
    let answer = call.await.unwrap().unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.text().await.unwrap().contains("done"));
}

/// Takes its time with one caller, until the other side of `asked` has heard and told it to go on.
struct Slow {
    asked: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl Authenticator for Slow {
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> BoxFuture<'a, Result<Principal, AuthRefusal>> {
        Box::pin(async move {
            if parts.headers["authorization"] == "Bearer slow" {
                self.asked.notify_one();
                self.go_on.notified().await;
            }
            Believing.authenticate(parts).await
        })
    }

    fn insufficient_scope(&self, principal: &Principal, missing: &[String]) -> AuthRefusal {
        Believing.insufficient_scope(principal, missing)
    }
}

#[tokio::test]
async fn a_caller_whose_token_is_still_looked_up_takes_no_place_of_others() {
    let (asked, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = Slow { asked: asked.clone(), go_on: go_on.clone() };
    let rig = start_with(json!({"maxConcurrency": 1}), |server| server.authenticator(Arc::new(slow))).await;
    let list = |who: &str| rig.modern("tools/list", json!({})).bearer_auth(who).send();
    let waiting = tokio::spawn(list("slow"));
    asked.notified().await;
    assert_eq!(list("ada").await.unwrap().status(), 200);
    go_on.notify_one();
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn one_caller_cannot_take_the_sessions_of_the_others() {
    let rig =
        start_with(json!({"maxSessions": 10}), |builder| builder.authenticator(Arc::new(Believing))).await;
    let (first, _second) = (rig.open("bob").await, rig.open("bob").await);
    let response = rig.initialize().bearer_auth("bob").send().await.unwrap();
    assert_eq!(response.status(), 429);
    assert!(response.headers().contains_key("retry-after"));
    let body = answer(response).await;
    assert!(body["error"]["message"].as_str().unwrap().contains("http.maxSessionsPerCaller"), "{body}");
    let alices = rig.open("alice").await;
    for (who, id) in [("alice", alices), ("bob", first)] {
        rig.http.delete(&rig.url).bearer_auth(who).header("mcp-session-id", id).send().await.unwrap();
    }
    rig.open("bob").await;
}

#[tokio::test]
async fn one_caller_cannot_take_every_place_for_requests() {
    let rig =
        start_with(json!({"maxConcurrency": 4}), |builder| builder.authenticator(Arc::new(Believing))).await;
    let wait =
        || tokio::spawn(rig.modern("tools/call", json!({"name": "app:wait"})).bearer_auth("bob").send());
    let mut waiting = Vec::new();
    for _ in 0..2 {
        waiting.push(wait());
        rig.tools.started.notified().await;
    }
    let list = |who: &str| rig.modern("tools/list", json!({})).bearer_auth(who);
    let response = list("bob").send().await.unwrap();
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "1");
    let body = answer(response).await;
    assert!(body["error"]["message"].as_str().unwrap().contains("http.maxConcurrency"), "{body}");
    assert_eq!(list("alice").send().await.unwrap().status(), 200);
    for answered in waiting {
        rig.tools.go_on.notify_one();
        assert_eq!(answered.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!(list("bob").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn one_caller_cannot_take_every_stream() {
    let rig =
        start_with(json!({"maxStreams": 10}), |builder| builder.authenticator(Arc::new(Believing))).await;
    let listen = |who: &str| {
        rig.modern("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}))
            .bearer_auth(who)
    };
    let mut open = Vec::new();
    for _ in 0..2 {
        open.push(listen("bob").send().await.unwrap());
        assert_eq!(open.last().unwrap().status(), 200);
    }
    let (status, _, text) = refused(listen("bob")).await;
    assert!(status == 429 && text.contains("http.maxStreams"), "{status} {text}");
    assert_eq!(listen("alice").send().await.unwrap().status(), 200);
    drop(open);
}

/// Bytes of this process in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn sessions_do_not_keep_what_nothing_reads_of_a_client() {
    let rig = start(json!({})).await;
    let experiments: serde_json::Map<_, _> = (0..3_000).map(|n| (format!("k{n}"), json!({}))).collect();
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"experimental": experiments},
        "clientInfo": {"name": "c", "version": "1"}});
    let initialize = message(0, "initialize", &params);
    let before = resident();
    for _ in 0..100 {
        let response = rig.post(initialize.clone()).send().await.unwrap();
        assert!(response.headers().contains_key("mcp-session-id"));
        assert_eq!(answer(response).await["result"]["protocolVersion"], "2025-11-25");
    }
    let grown = resident().saturating_sub(before);
    assert_eq!(rig.occupancy.now().sessions, 100);
    println!("100 sessions: {grown} bytes");
    assert!(grown < 40 << 20, "{grown}");
}

#[tokio::test]
async fn a_client_that_describes_itself_at_length_gets_an_error_and_no_session() {
    let rig = start(json!({})).await;
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "c", "version": "1".repeat(3_000_000)}});
    let response = rig.post(message(0, "initialize", &params)).send().await.unwrap();
    let id = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
    let body = answer(response).await;
    assert_eq!(body["error"]["code"], -32602, "{body}");
    assert!(body["error"]["message"].as_str().unwrap().contains("clientInfo"), "{body}");
    if let Some(id) = id {
        let used = rig.in_session(&id, "tools/list", json!({})).send().await.unwrap();
        assert_ne!(used.status(), 200);
    }
}

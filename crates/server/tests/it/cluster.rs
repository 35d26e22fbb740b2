//! Two servers that serve each other's sessions.

use std::sync::Arc;

use gatewright_server::ServerBuilder;
use serde_json::{Value, json};

use crate::support::{Believing, Rig, answer, refused, start_with};

fn believing(builder: ServerBuilder) -> ServerBuilder {
    builder.authenticator(Arc::new(Believing))
}

async fn instance(key: &str) -> Rig {
    start_with(json!({"cluster": {"key": key.repeat(32)}}), believing).await
}

async fn two() -> (Rig, Rig) {
    (instance("a").await, instance("a").await)
}

fn whoami(rig: &Rig, session: &str, who: &str) -> reqwest::RequestBuilder {
    rig.in_session(session, "tools/call", json!({"name": "app:whoami", "arguments": {}})).bearer_auth(who)
}

async fn ended(mut rig: Rig) {
    rig.shutdown.cancel();
    rig.served.take().unwrap().await.unwrap();
}

#[tokio::test]
async fn a_session_of_one_instance_is_served_by_the_other() {
    let (a, b) = two().await;
    let id = a.open("ann").await;
    assert!(!id.contains("127.0.0.1"));
    for rig in [&b, &a, &b] {
        let called = whoami(rig, &id, "ann").send().await.unwrap();
        assert_eq!(answer(called).await["result"]["content"][0]["text"], "ann");
    }
    let ended = b.http.delete(&b.url).bearer_auth("ann").header("mcp-session-id", &id).send().await.unwrap();
    assert_eq!(ended.status(), 204);
    assert_eq!(refused(whoami(&a, &id, "ann")).await.0, 404);
}

#[tokio::test]
async fn a_stream_opened_at_the_other_instance_hears_of_changes() {
    let (a, b) = two().await;
    let id = a.open("ann").await;
    let stream = b.http.get(&b.url).bearer_auth("ann").header("accept", "text/event-stream");
    let mut stream = stream.header("mcp-session-id", &id).send().await.unwrap();
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    a.gateway.registry().remove("app");
    let mut text = String::new();
    while !text.contains("notifications/tools/list_changed") {
        let next = tokio::time::timeout(crate::support::PATIENCE, stream.chunk()).await.unwrap().unwrap();
        text.push_str(&String::from_utf8_lossy(&next.expect("the stream goes on")));
    }
}

#[tokio::test]
async fn a_session_is_its_owners_at_every_instance() {
    let (a, b) = two().await;
    let id = a.open("ann").await;
    assert_eq!(refused(whoami(&b, &id, "bob")).await.0, 404);
    let delete = b.http.delete(&b.url).bearer_auth("bob").header("mcp-session-id", &id);
    assert_eq!(refused(delete).await.0, 404);
    let nobody = b.in_session(&id, "tools/list", json!({})).send().await.unwrap();
    assert_eq!(nobody.status(), 401);
    assert_eq!(whoami(&b, &id, "ann").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_session_of_an_instance_that_is_gone_is_not_found() {
    let (a, b) = two().await;
    let id = a.open("ann").await;
    ended(a).await;
    let (status, code, message) = refused(whoami(&b, &id, "ann")).await;
    assert_eq!((status, code), (404, -32000));
    assert!(message.contains("initialize"), "{message}");
    assert_eq!(whoami(&b, &b.open("ann").await, "ann").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_call_whose_instance_breaks_off_is_answered_once_and_not_repeated() {
    let (a, b) = two().await;
    let id = a.open("ann").await;
    let wait =
        b.in_session(&id, "tools/call", json!({"name": "app:wait", "arguments": {}})).bearer_auth("ann");
    let call = tokio::spawn(wait.send());
    a.tools.started.notified().await;
    let started_again = a.tools.started.clone();
    ended(a).await;
    let response = call.await.unwrap().unwrap();
    let text = response.text().await.unwrap_or_default();
    assert!(!text.contains("done"), "{text}");
    let again = tokio::time::timeout(std::time::Duration::from_millis(200), started_again.notified()).await;
    assert!(again.is_err(), "the call was run twice");
}

#[tokio::test]
async fn another_key_or_a_forged_id_leads_nowhere() {
    let (a, stranger) = (instance("a").await, instance("b").await);
    let id = a.open("ann").await;
    assert_eq!(refused(whoami(&stranger, &id, "ann")).await.0, 404);
    let own = id.split('.').next().unwrap();
    for forged in
        [own.to_owned(), format!("{own}."), format!("{own}.AAAA"), format!("x{id}"), "..".to_owned()]
    {
        assert_eq!(refused(whoami(&a, &forged, "ann")).await.0, 404, "{forged}");
    }
}

#[tokio::test]
async fn what_was_passed_on_once_is_not_passed_on_again() {
    let (a, b) = two().await;
    let id = a.open("ann").await;
    let marked = whoami(&b, &id, "ann").header("gatewright-forwarded", "1");
    assert_eq!(refused(marked).await.0, 404);
}

#[tokio::test]
async fn the_era_without_sessions_is_served_where_it_arrives() {
    let (a, b) = two().await;
    let id = a.open("ann").await;
    let call = b.modern("tools/call", json!({"name": "app:whoami", "arguments": {}})).bearer_auth("bob");
    let called = call.header("mcp-session-id", &id).send().await.unwrap();
    let body: Value = answer(called).await;
    assert_eq!(body["result"]["content"][0]["text"], "bob");
}

//! Two servers that serve each other's sessions.

use std::sync::{Arc, atomic::Ordering};

use gatewright_server::{FromPeers, HttpConfig, Occupied, Server, ServerBuilder};
use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    hub::{Hub, Then},
    support::{Believing, PATIENCE, Rig, Tools, answer, gateway, refused, start_with},
};

fn believing(builder: ServerBuilder) -> ServerBuilder {
    builder.authenticator(Arc::new(Believing))
}

async fn instance(key: &str, hub: &Hub) -> Rig {
    let config = json!({"cluster": {"key": key.repeat(32)}, "maxBodyBytes": 4 << 20});
    start_with(config, |builder| believing(builder).peers(Arc::new(hub.clone()))).await
}

async fn two() -> (Rig, Rig) {
    let hub = Hub::default();
    (instance("a", &hub).await, instance("a", &hub).await)
}

/// Two instances, the channel between them, and the name of the first.
async fn watched() -> (Rig, Rig, Hub, String) {
    let hub = Hub::default();
    let a = instance("a", &hub).await;
    let name = hub.instances().remove(0);
    (a, instance("a", &hub).await, hub, name)
}

/// Asks until it is so.
async fn becomes(what: &str, mut is_so: impl FnMut() -> bool) {
    let patience = tokio::time::Instant::now() + PATIENCE;
    while !is_so() {
        assert!(tokio::time::Instant::now() < patience, "{what}");
        tokio::task::yield_now().await;
    }
}

fn is_idle(rig: &Rig) -> bool {
    let Occupied { requests, streams, .. } = rig.occupancy.now();
    (requests, streams) == (0, 0)
}

fn call(rig: &Rig, session: &str, tool: &str) -> reqwest::RequestBuilder {
    let params = match tool {
        "headers" | "address" => json!({"name": "app:whoami", "arguments": {"of": tool}}),
        tool => json!({"name": format!("app:{tool}"), "arguments": {}}),
    };
    rig.in_session(session, "tools/call", params).bearer_auth("ann")
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
        let called = answer(whoami(rig, &id, "ann").send().await.unwrap()).await;
        assert_eq!(called["result"]["content"][0]["text"], "ann", "{called}");
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
    let waiting = tokio::spawn(call(&b, &id, "wait").send());
    a.tools.started.notified().await;
    let calls = a.tools.calls.clone();
    ended(a).await;
    let response = waiting.await.unwrap().unwrap();
    let text = response.text().await.unwrap_or_default();
    assert!(!text.contains("done"), "{text}");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn another_key_or_a_forged_id_leads_nowhere() {
    let hub = Hub::default();
    let (a, stranger) = (instance("a", &hub).await, instance("b", &hub).await);
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
async fn the_era_without_sessions_is_served_where_it_arrives() {
    let (a, b) = two().await;
    let id = a.open("ann").await;
    let call = b.modern("tools/call", json!({"name": "app:whoami", "arguments": {}})).bearer_auth("bob");
    let called = call.header("mcp-session-id", &id).send().await.unwrap();
    let body: Value = answer(called).await;
    assert_eq!(body["result"]["content"][0]["text"], "bob");
}

#[tokio::test]
async fn neither_token_nor_anything_said_is_readable_between_the_instances() {
    let (a, b, hub, _) = watched().await;
    let id = a.open("ann").await;
    let secrets = ["proof-of-possession", "crumbs", "the question"];
    let arguments = json!({"name": "app:echo", "arguments": {"text": secrets[2]}});
    let asked = b.in_session(&id, "tools/call", arguments).bearer_auth("ann-and-her-secret");
    let asked = asked.header("dpop", secrets[0]).header("cookie", secrets[1]);
    assert_eq!(asked.send().await.unwrap().status(), 404);
    let arguments = json!({"name": "app:echo", "arguments": {"text": secrets[2]}});
    let asked = b.in_session(&id, "tools/call", arguments).bearer_auth("ann").header("dpop", secrets[0]);
    assert!(answer(asked.send().await.unwrap()).await.to_string().contains(secrets[2]));
    let passed = hub.sent();
    assert!(passed.len() > 2);
    for text in secrets.into_iter().chain(["ann", "Bearer", "echo", "tools/call", "authorization", &id]) {
        let read = |(_, message): &(String, bytes::Bytes)| {
            message.windows(text.len()).any(|bytes| bytes.eq_ignore_ascii_case(text.as_bytes()))
        };
        // Three letters may come up by chance in some kilobytes that look random.
        assert!(text.len() <= 4 || !passed.iter().any(read), "{text}");
    }
}

#[tokio::test]
async fn a_credential_is_not_passed_on_even_sealed() {
    let (a, b, _, _) = watched().await;
    let id = a.open("ann").await;
    let asked =
        call(&b, &id, "headers").header("dpop", "proof").header("cookie", "crumbs").header("x-own", "1");
    let seen = answer(asked.send().await.unwrap()).await["result"]["content"][0]["text"].to_string();
    assert!(seen.contains("mcp-session-id"), "{seen}");
    for name in ["authorization", "cookie", "dpop", "x-own", "x-forwarded-for"] {
        assert!(!seen.contains(name), "{name}: {seen}");
    }
}

#[tokio::test]
async fn a_replayed_request_runs_nothing() {
    let (a, b, hub, _) = watched().await;
    let id = a.open("ann").await;
    answer(call(&b, &id, "whoami").send().await.unwrap()).await;
    for (to, message) in hub.sent() {
        hub.inject(&to, FromPeers::Message(message));
    }
    // What follows on the same channel is answered after the replayed messages were read.
    answer(call(&b, &id, "whoami").send().await.unwrap()).await;
    becomes("nothing is under way", || is_idle(&a)).await;
    assert_eq!(a.tools.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_message_that_comes_twice_counts_once() {
    let (a, b, hub, _) = watched().await;
    let id = a.open("ann").await;
    hub.fate(|_| Then::Twice);
    let called = answer(call(&b, &id, "whoami").send().await.unwrap()).await;
    assert_eq!(called["result"]["content"][0]["text"], "ann");
    assert_eq!(a.tools.calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn whoever_may_write_to_the_channel_but_lacks_the_key_achieves_nothing() {
    let (a, b, hub, home) = watched().await;
    let id = a.open("ann").await;
    answer(call(&b, &id, "whoami").send().await.unwrap()).await;
    let genuine = hub.sent();
    for (_, message) in &genuine {
        for at in [0, 1, 20, 40, 44, 46, message.len() - 1] {
            let mut changed = message.to_vec();
            changed[at] ^= 1;
            hub.inject(&home, FromPeers::Message(changed.into()));
        }
    }
    // Cut, empty, made up, and meant for another instance.
    for message in [&b""[..], &[1; 44], &[1; 45], &[1; 4096]] {
        hub.inject(&home, FromPeers::Message(message.to_vec().into()));
    }
    for (to, message) in genuine.iter().filter(|(to, _)| *to != home) {
        assert_ne!(*to, home);
        hub.inject(&home, FromPeers::Message(message.clone()));
    }
    assert_eq!(call(&b, &id, "whoami").send().await.unwrap().status(), 200);
    assert_eq!(a.tools.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_header_cannot_say_where_a_caller_is_nor_that_a_request_was_passed_on() {
    let (a, b) = two().await;
    let id = a.open("ann").await;
    for (name, value) in
        [("gatewright-forwarded", "1"), ("gatewright-forwarded", &*id), ("x-forwarded-for", "203.0.113.7")]
    {
        let called = call(&b, &id, "address").header(name, value).send().await.unwrap();
        assert_eq!(answer(called).await["result"]["content"][0]["text"], "127.0.0.1", "{name}");
    }
}

#[tokio::test]
async fn the_address_that_a_trusted_proxy_tells_is_the_callers_at_the_other_instance() {
    let hub = Hub::default();
    let config = |proxies: Value| json!({"cluster": {"key": "a".repeat(32)}, "trustedProxies": proxies});
    let with_hub = |builder: ServerBuilder| believing(builder).peers(Arc::new(hub.clone()));
    let (a, b) = (
        start_with(config(json!([])), with_hub).await,
        start_with(config(json!(["127.0.0.1"])), with_hub).await,
    );
    let id = a.open("ann").await;
    let called = call(&b, &id, "address").header("x-forwarded-for", "203.0.113.7").send().await.unwrap();
    assert_eq!(answer(called).await["result"]["content"][0]["text"], "203.0.113.7");
}

#[tokio::test]
async fn the_authenticator_is_asked_once_and_by_the_instance_that_was_called() {
    let hub = Hub::default();
    let seen = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counting = |builder: ServerBuilder| {
        builder.authenticator(Arc::new(crate::support::Counting(seen.clone()))).peers(Arc::new(hub.clone()))
    };
    let config = json!({"cluster": {"key": "a".repeat(32)}});
    let (a, b) = (start_with(config.clone(), counting).await, start_with(config, counting).await);
    let id = a.open("ann").await;
    let before = seen.load(Ordering::SeqCst);
    // Proofs of possession are good for one use in all (RFC 9449 §11.1).
    assert_eq!(whoami(&b, &id, "ann").send().await.unwrap().status(), 200);
    assert_eq!(seen.load(Ordering::SeqCst), before + 1);
}

#[tokio::test]
async fn bodies_of_megabytes_pass_whole_in_both_directions() {
    let (a, b) = two().await;
    let id = a.open("ann").await;
    let text: String = (0..300_000).map(|number| format!("{number:x},")).collect();
    let arguments = json!({"name": "app:echo", "arguments": {"text": text}});
    let called = b.in_session(&id, "tools/call", arguments).bearer_auth("ann").send().await.unwrap();
    let echoed = answer(called).await["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(serde_json::from_str::<Value>(&echoed).unwrap()["text"], text);
}

#[tokio::test]
async fn a_refusal_for_a_long_body_reaches_the_client() {
    let hub = Hub::default();
    let config = |most: usize| json!({"cluster": {"key": "a".repeat(32)}, "maxBodyBytes": most});
    let with_hub = |builder: ServerBuilder| believing(builder).peers(Arc::new(hub.clone()));
    let a = start_with(config(500_000), with_hub).await;
    let b = start_with(config(4 << 20), with_hub).await;
    let id = a.open("ann").await;
    let arguments = json!({"name": "app:echo", "arguments": {"text": "x".repeat(3 << 20)}});
    let asked = b.in_session(&id, "tools/call", arguments).bearer_auth("ann");
    assert_eq!(refused(asked).await.0, 413);
    assert_eq!(a.tools.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_instance_that_authenticates_serves_nobody_whom_another_did_not() {
    let hub = Hub::default();
    let config = json!({"cluster": {"key": "a".repeat(32)}});
    let a = start_with(config.clone(), |builder| believing(builder).peers(Arc::new(hub.clone()))).await;
    let b = start_with(config, |builder| builder.peers(Arc::new(hub.clone()))).await;
    let id = a.open("ann").await;
    assert_eq!(refused(b.in_session(&id, "tools/list", json!({}))).await.0, 404);
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_request_at_the_other_instance() {
    let (a, b) = two().await;
    let id = a.open("ann").await;
    let stream = b.http.get(&b.url).bearer_auth("ann").header("accept", "text/event-stream");
    let stream = stream.header("mcp-session-id", &id).send().await.unwrap();
    let waiting = call(&b, &id, "wait").send().await.unwrap();
    a.tools.started.notified().await;
    assert!(a.occupancy.now().streams == 1 && a.occupancy.now().requests == 1);
    drop((stream, waiting));
    becomes("nothing is under way at either", || is_idle(&a) && is_idle(&b)).await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_run_of_its_call_at_the_other_instance() {
    let (a, b) = two().await;
    let id = a.open("ann").await;
    let waiting = call(&b, &id, "wait").send().await.unwrap();
    a.tools.started.notified().await;
    drop(waiting);
    tokio::time::timeout(PATIENCE, a.tools.ended.notified()).await.expect("the tool's work is dropped");
    assert_eq!(call(&b, &id, "whoami").send().await.unwrap().status(), 200, "the session goes on");
}

#[tokio::test]
async fn a_killed_instance_ends_what_it_worked_on_and_its_sessions_are_not_found() {
    let (a, b, hub, home) = watched().await;
    let id = a.open("ann").await;
    let mut waiting = call(&b, &id, "wait").send().await.unwrap();
    a.tools.started.notified().await;
    hub.kill(&home);
    assert_eq!(refused(call(&b, &id, "whoami")).await.0, 404);
    let end = async {
        while waiting.chunk().await?.is_some() {}
        Ok::<(), reqwest::Error>(())
    };
    assert!(
        tokio::time::timeout(PATIENCE, end).await.unwrap().is_err(),
        "the client sees that the answer is not whole"
    );
    becomes("nothing is under way", || is_idle(&b)).await;
}

#[tokio::test]
async fn a_lost_part_of_an_answer_breaks_it_off() {
    let (a, b, hub, _) = watched().await;
    let id = a.open("ann").await;
    // The request, the head of the answer, and then what is lost.
    hub.fate(|number| if number == 2 { Then::Lost } else { Then::Delivered });
    let text = "x".repeat(1 << 20);
    let arguments = json!({"name": "app:echo", "arguments": {"text": text}});
    let asked = b.in_session(&id, "tools/call", arguments).bearer_auth("ann");
    let read = async { asked.send().await?.error_for_status()?.text().await };
    assert!(read.await.is_err());
    becomes("nothing is under way", || is_idle(&a) && is_idle(&b)).await;
}

#[tokio::test]
async fn a_channel_that_fails_gives_503_when_nothing_was_sent_and_502_when_something_may_have_been() {
    let (a, b, hub, _) = watched().await;
    let id = a.open("ann").await;
    hub.fate(|_| Then::Refused);
    let response = call(&b, &id, "whoami").send().await.unwrap();
    assert_eq!(
        (response.status(), response.headers()["retry-after"].to_str().unwrap()),
        (StatusCode::SERVICE_UNAVAILABLE, "1")
    );
    assert!(answer(response).await["error"]["message"].as_str().unwrap().contains("Redis"));
    hub.fate(|_| Then::Unclear);
    assert_eq!(refused(call(&b, &id, "whoami")).await.0, 502);
    hub.fate(|_| Then::Delivered);
    for name in hub.instances() {
        hub.inject(&name, FromPeers::Lost);
    }
    let patience = tokio::time::Instant::now() + PATIENCE;
    while call(&b, &id, "whoami").send().await.unwrap().status() != StatusCode::SERVICE_UNAVAILABLE {
        assert!(tokio::time::Instant::now() < patience);
    }
    for name in hub.instances() {
        hub.inject(&name, FromPeers::Listening);
    }
    while call(&b, &id, "whoami").send().await.unwrap().status() != StatusCode::OK {
        assert!(tokio::time::Instant::now() < patience);
    }
}

#[tokio::test]
async fn an_instance_that_ends_lets_requests_of_others_end() {
    let (mut a, b) = two().await;
    let id = a.open("ann").await;
    let waiting = tokio::spawn(call(&b, &id, "wait").send());
    a.tools.started.notified().await;
    a.shutdown.cancel();
    let patience = tokio::time::Instant::now() + PATIENCE;
    // No new ones are taken.
    while call(&b, &id, "whoami").send().await.unwrap().status() != StatusCode::NOT_FOUND {
        assert!(tokio::time::Instant::now() < patience);
    }
    a.tools.go_on.notify_one();
    let answered = answer(waiting.await.unwrap().unwrap()).await;
    assert_eq!(answered["result"]["content"][0]["text"], "done");
    a.served.take().unwrap().await.unwrap();
}

#[tokio::test]
async fn instances_without_a_channel_between_them_do_not_start() {
    let config: HttpConfig =
        serde_json::from_value(json!({"port": 0, "cluster": {"key": "a".repeat(32)}})).unwrap();
    let refused = Server::builder(gateway(Tools::default()).await, config).bind().await.unwrap_err();
    assert!(refused.to_string().starts_with("http.cluster:"), "{refused}");
}

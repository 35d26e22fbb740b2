//! Corners of the protocol that clients of single revisions meet.

use serde_json::{Value, json};

use crate::support::{PATIENCE, Rig, answer, message, refused, start};

/// Opens a session of this revision; its id.
async fn open(rig: &Rig, revision: &str) -> String {
    let params = json!({
        "protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    });
    let opened = rig.post(message(0, "initialize", &params)).send().await.unwrap();
    let id = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let text = opened.text().await.unwrap();
    assert!(text.contains(revision), "{text}");
    assert!(!has_empty_data(&text), "{text}");
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    rig.post(initialized).header("mcp-session-id", &id).send().await.unwrap();
    id
}

fn has_empty_data(events: &str) -> bool {
    events.lines().any(|line| line.strip_prefix("data:").is_some_and(|data| data.trim().is_empty()))
}

fn call(rig: &Rig, session: &str, id: u32, tool: &str) -> reqwest::RequestBuilder {
    let params = json!({"name": tool, "arguments": {"a": id}});
    rig.post(message(id, "tools/call", &params)).header("mcp-session-id", session)
}

/// The first event of a stream.
async fn first_event(stream: &mut reqwest::Response) -> String {
    let mut text = String::new();
    while !text.contains("\n\n") {
        text.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap());
    }
    text
}

fn id_of(event: &str) -> &str {
    event.lines().find_map(|line| line.strip_prefix("id:")).unwrap().trim()
}

fn get(rig: &Rig, session: &str) -> reqwest::RequestBuilder {
    rig.http.get(&rig.url).header("accept", "text/event-stream").header("mcp-session-id", session)
}

#[tokio::test]
async fn streams_begin_with_an_event_without_data_from_2025_11_25_on_only() {
    let rig = start(json!({"keepAlive": "1s"})).await;
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let session = open(&rig, revision).await;
        let text = call(&rig, &session, 1, "app:echo").send().await.unwrap().text().await.unwrap();
        assert!(text.contains("result") && !has_empty_data(&text), "{revision}: {text}");
        let first = first_event(&mut get(&rig, &session).send().await.unwrap()).await;
        assert!(first.starts_with(':'), "{revision}: a comment keeps it open: {first}");
    }
    let session = open(&rig, "2025-11-25").await;
    let text = call(&rig, &session, 1, "app:echo").send().await.unwrap().text().await.unwrap();
    assert!(has_empty_data(&text), "{text}");
    let first = first_event(&mut get(&rig, &session).send().await.unwrap()).await;
    assert!(has_empty_data(&first) && id_of(&first) == "0", "{first}");
}

#[tokio::test]
async fn a_resumed_stream_has_what_came_after_the_event_that_its_client_names() {
    let rig = start(json!({})).await;
    let session = open(&rig, "2025-11-25").await;
    let mut begun = call(&rig, &session, 1, "app:wait").send().await.unwrap();
    let first = first_event(&mut begun).await;
    rig.tools.started.notified().await;
    let resumed = get(&rig, &session).header("last-event-id", id_of(&first)).send().await.unwrap();
    rig.tools.go_on.notify_one();
    let text = resumed.text().await.unwrap();
    assert!(text.contains("done") && text.matches("data:").count() == 1, "{text}");
    assert_ne!(id_of(&text), id_of(&first));
}

/// Returns once the request with this id is answered: only then is the id free.
async fn until_answered(rig: &Rig, session: &str, id: u32) {
    let answered = async {
        loop {
            let again = rig.post(message(id, "ping", &json!({}))).header("mcp-session-id", session);
            if answer(again.send().await.unwrap()).await["result"].is_object() {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("it is answered");
}

#[tokio::test]
async fn an_answer_that_is_ready_before_its_client_comes_back_is_on_the_resumed_stream() {
    let rig = start(json!({})).await;
    let session = open(&rig, "2025-11-25").await;
    let mut begun = call(&rig, &session, 1, "app:wait").send().await.unwrap();
    let first = first_event(&mut begun).await;
    assert!(first.contains("retry: 1000") || first.contains("retry:1000"), "{first}");
    rig.tools.started.notified().await;
    drop(begun);
    rig.tools.go_on.notify_one();
    until_answered(&rig, &session, 1).await;
    for _ in 0..2 {
        let resumed = get(&rig, &session).header("last-event-id", id_of(&first)).send().await.unwrap();
        let text = resumed.text().await.unwrap();
        assert!(text.contains("done"), "{text}");
    }
}

#[tokio::test]
async fn an_answer_that_was_sent_and_did_not_arrive_is_on_the_resumed_stream() {
    let rig = start(json!({})).await;
    let session = open(&rig, "2025-11-25").await;
    let whole = call(&rig, &session, 1, "app:echo").send().await.unwrap().text().await.unwrap();
    let ids: Vec<&str> = whole.lines().filter_map(|line| line.strip_prefix("id:")).map(str::trim).collect();
    let resumed = async |last: &str| {
        get(&rig, &session).header("last-event-id", last).send().await.unwrap().text().await.unwrap()
    };
    assert!(resumed(ids[0]).await.contains("result"));
    assert!(!resumed(ids.last().unwrap()).await.contains("result"), "its client has it");
}

#[tokio::test]
async fn a_client_that_comes_back_and_leaves_again_ends_the_run_of_its_call() {
    let rig = start(json!({})).await;
    let session = open(&rig, "2025-11-25").await;
    let mut begun = call(&rig, &session, 1, "app:wait").send().await.unwrap();
    let first = first_event(&mut begun).await;
    rig.tools.started.notified().await;
    drop(begun);
    let resumed = get(&rig, &session).header("last-event-id", id_of(&first)).send().await.unwrap();
    drop(resumed);
    tokio::time::timeout(PATIENCE, rig.tools.ended.notified()).await.expect("the tool's work is dropped");
}

#[tokio::test]
async fn a_second_request_with_an_id_in_flight_is_refused_and_the_first_is_answered() {
    let rig = start(json!({})).await;
    let session = open(&rig, "2025-11-25").await;
    let first = call(&rig, &session, 7, "app:wait").send().await.unwrap();
    rig.tools.started.notified().await;
    let (status, code, text) = refused(call(&rig, &session, 7, "app:echo")).await;
    assert_eq!((status, code), (200, -32600));
    assert!(text.contains("id 7 is not answered yet"), "{text}");
    rig.tools.go_on.notify_one();
    assert_eq!(answer(first).await["result"]["content"][0]["text"], "done");
    let again = answer(call(&rig, &session, 7, "app:echo").send().await.unwrap()).await;
    assert_eq!(again["result"]["content"][0]["text"], r#"{"a":7}"#, "an answered one's id is free");
}

#[tokio::test]
async fn an_id_is_in_flight_in_its_own_session_only() {
    let rig = start(json!({})).await;
    let (one, other) = (open(&rig, "2025-11-25").await, open(&rig, "2025-11-25").await);
    let first = call(&rig, &one, 7, "app:wait").send().await.unwrap();
    rig.tools.started.notified().await;
    let second = answer(call(&rig, &other, 7, "app:echo").send().await.unwrap()).await;
    assert_eq!(second["id"], 7);
    assert!(second["result"].is_object(), "{second}");
    rig.tools.go_on.notify_one();
    assert!(answer(first).await["result"].is_object());
}

fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[tokio::test]
async fn a_session_of_2025_03_26_may_send_batches() {
    let rig = start(json!({"maxConcurrency": 8})).await;
    let session = open(&rig, "2025-03-26").await;
    let request = |id: u32| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "app:echo", "arguments": {"a": id}}})
    };
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let send = async |batch: Value| {
        let sent = rig.post(batch.to_string()).header("mcp-session-id", &session).send().await.unwrap();
        (sent.status().as_u16(), sent.text().await.unwrap())
    };
    let (status, text) = send(json!([request(1), note, request(2), {"jsonrpc": "2.0"}])).await;
    assert_eq!(status, 200, "{text}");
    let mut ids: Vec<(String, bool)> =
        events(&text).iter().map(|event| (event["id"].to_string(), event["result"].is_object())).collect();
    ids.sort();
    assert_eq!(ids, [("1".to_owned(), true), ("2".to_owned(), true), ("null".to_owned(), false)]);

    assert_eq!(send(json!([note, note])).await, (202, String::new()));
    for (batch, problem) in [(json!([]), "empty"), (json!(vec![note; 101]), "100 messages")] {
        let (status, text) = send(batch).await;
        assert!(status == 400 && text.contains(problem) && text.contains("-32600"), "{text}");
    }
    let many: Vec<Value> = (10..30).map(request).collect();
    assert_eq!(send(json!(many)).await.0, 503, "each message takes the place of a request");
}

#[tokio::test]
async fn a_batch_in_a_session_of_another_revision_is_refused() {
    let rig = start(json!({})).await;
    let session = open(&rig, "2025-06-18").await;
    let batch = json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]);
    let (status, code, text) = refused(rig.post(batch.to_string()).header("mcp-session-id", &session)).await;
    assert_eq!((status, code), (400, -32600));
    assert!(text.contains("2025-03-26"), "{text}");
}

#[tokio::test]
async fn the_log_level_of_a_session_is_unknown_where_there_are_none() {
    let rig = start(json!({})).await;
    for (method, params) in [("ping", json!({})), ("logging/setLevel", json!({"level": "info"}))] {
        let (status, code, _) = refused(rig.modern(method, params)).await;
        assert_eq!((status, code), (404, -32601), "{method}");
    }
}

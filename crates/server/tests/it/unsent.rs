//! Answers that clients ask for and do not read: their bytes are bounded, in all and for each caller.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, future::join_all};
use gatewright_server::ServerBuilder;
use serde_json::{Value, json};

use crate::support::{Believing, PATIENCE, Rig, answer, message, start_with};

/// Length of a long answer: much more than the buffers of both sides take.
const LONG: usize = 16 << 20;
/// Longest life of a request, whose answer is not read for a while.
const UNREAD: Duration = Duration::from_secs(600);

async fn start(mib: usize) -> Rig {
    let set_up = |builder: ServerBuilder| builder.authenticator(Arc::new(Believing));
    start_with(json!({"maxUnsentMib": mib, "legacySse": true}), set_up).await
}

/// A request of `who` for an answer of `bytes` bytes.
fn ask(rig: &Rig, who: &str, bytes: usize) -> reqwest::RequestBuilder {
    let arguments = json!({"repeat": bytes});
    let call = rig.modern("tools/call", json!({"name": "app:echo", "arguments": arguments}));
    call.bearer_auth(who).timeout(UNREAD)
}

/// The error in place of an answer.
fn assert_dropped(answer: &Value, id: u64) {
    let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer:.200}"));
    assert!(message.contains("was dropped") && message.contains("http.maxUnsentMib"), "{message}");
    assert_eq!(answer["id"], id);
}

async fn until_unsent(rig: &Rig, bytes: usize) {
    let all_sent = async {
        while rig.occupancy.now().unsent_bytes != bytes {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, all_sent).await.expect("everything is sent in time");
}

#[tokio::test]
async fn answers_that_a_caller_does_not_read_take_a_share_and_others_get_theirs() {
    let rig = start(128).await;
    let mut unread = Vec::new();
    for _ in 0..4 {
        let answer = ask(&rig, "greedy", LONG).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        unread.push(answer);
        let unsent = rig.occupancy.now().unsent_bytes;
        assert!((LONG..LONG + 1000).contains(&unsent), "{unsent}");
    }
    let other = answer(ask(&rig, "ann", LONG).send().await.unwrap()).await;
    assert!(other["result"].to_string().len() > LONG, "{other:.200}");
    let small = answer(ask(&rig, "greedy", 1000).send().await.unwrap()).await;
    assert!(small["result"].is_object(), "{small}");

    let first = answer(unread.remove(0)).await;
    assert!(first["result"].to_string().len() > LONG, "{first:.200}");
    for response in unread {
        assert_dropped(&answer(response).await, 7);
    }
    until_unsent(&rig, 0).await;
    let again = answer(ask(&rig, "greedy", LONG).send().await.unwrap()).await;
    assert!(again["result"].is_object(), "{again:.200}");
}

#[tokio::test]
async fn the_answers_of_a_batch_that_is_not_read_take_one_share() {
    for json_response in [true, false] {
        let settings = json!({"maxUnsentMib": 128, "sessions": false, "jsonResponse": json_response});
        let rig = start_with(settings, |builder| builder.authenticator(Arc::new(Believing))).await;
        let params = json!({"name": "app:echo", "arguments": {"repeat": LONG}});
        let batch: Vec<_> = (1..=4).map(|id| message(id, "tools/call", &params)).collect();
        let request = rig.post(format!("[{}]", batch.join(","))).header("mcp-protocol-version", "2025-03-26");
        let response = request.bearer_auth("greedy").timeout(UNREAD).send().await.unwrap();
        // What is counted later was dropped, too.
        while rig.tools.calls.load(std::sync::atomic::Ordering::SeqCst) < 4 {
            tokio::task::yield_now().await;
        }
        let unsent = rig.occupancy.now().unsent_bytes;
        assert!(unsent < LONG + 2000, "{unsent}");
        let text = response.text().await.unwrap();
        let answers: Vec<Value> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        let (read, dropped): (Vec<_>, Vec<_>) =
            answers.iter().partition(|answer| answer["result"].is_object());
        assert_eq!((read.len(), dropped.len()), (1, 3), "{json_response}");
    }
}

#[tokio::test]
async fn many_callers_who_do_not_read_leave_the_budget_as_it_is() {
    let rig = start(64).await;
    let callers = (0..8).map(|n| {
        let request = ask(&rig, &format!("caller{n}"), LONG);
        async { request.send().await.unwrap() }
    });
    let unread = join_all(callers).await;
    let unsent = rig.occupancy.now().unsent_bytes;
    assert!((3 * LONG..=64 << 20).contains(&unsent), "{unsent}");
    let answers = join_all(unread.into_iter().map(answer)).await;
    let (read, dropped): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer["result"].is_object());
    assert_eq!((read.len(), dropped.len()), (3, 5));
    dropped.iter().for_each(|answer| assert_dropped(answer, 7));
    until_unsent(&rig, 0).await;
}

#[tokio::test]
async fn a_caller_that_has_more_to_read_than_its_share_gets_no_further_requests_served() {
    let rig = start(20).await;
    let unread = ask(&rig, "slow", LONG).send().await.unwrap();
    let before = rig.tools.calls.load(std::sync::atomic::Ordering::SeqCst);
    let refused = ask(&rig, "slow", 1).send().await.unwrap();
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    assert_eq!(rig.tools.calls.load(std::sync::atomic::Ordering::SeqCst), before);
    assert_eq!(ask(&rig, "ann", 1).send().await.unwrap().status(), 200);
    // However slowly it reads: what it was promised it gets.
    assert!(answer(unread).await["result"].to_string().len() > LONG);
    until_unsent(&rig, 0).await;
    assert_eq!(ask(&rig, "slow", 1).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn answers_on_the_streams_of_a_session_are_counted() {
    let rig = start(128).await;
    let id = rig.open("greedy").await;
    let mut unread = Vec::new();
    for number in 1..=3 {
        let params = json!({"name": "app:echo", "arguments": {"repeat": LONG}});
        let call =
            rig.in_session(&id, "tools/call", Value::Null).body(message(number, "tools/call", &params));
        unread.push(call.bearer_auth("greedy").timeout(UNREAD).send().await.unwrap());
    }
    let unsent = async {
        while rig.occupancy.now().unsent_bytes < LONG {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, unsent).await.unwrap();
    // The others were asked for by now, or are when the first is read: one of the three was first.
    let answers = join_all(unread.into_iter().map(answer)).await;
    assert!(answers.iter().any(|answer| answer["result"].is_object()));
    for (answer, id) in answers.iter().zip(1..) {
        assert_eq!(answer["id"], id);
        if answer["result"].is_null() {
            assert_dropped(answer, id);
        }
    }
    until_unsent(&rig, 0).await;
}

#[tokio::test]
async fn answers_on_the_one_stream_of_http_sse_are_counted_while_they_wait_for_it() {
    let rig = start(64).await;
    let stream = rig.http.get(format!("{}/sse", rig.base)).bearer_auth("greedy").send().await.unwrap();
    let mut chunks = stream.bytes_stream();
    let mut text = String::new();
    while !text.contains("\n\n") {
        text.push_str(std::str::from_utf8(&chunks.next().await.unwrap().unwrap()).unwrap());
    }
    let url = format!("{}{}", rig.base, text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap());
    let say = |body: String| {
        let post = rig.http.post(&url).bearer_auth("greedy").header("content-type", "application/json");
        async { post.body(body).send().await.unwrap().status().as_u16() }
    };
    let opening = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    assert_eq!(say(message(0, "initialize", &opening)).await, 202);
    assert_eq!(say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()).await, 202);
    let params = json!({"name": "app:echo", "arguments": {"repeat": 10 << 20}});
    let mut asked = 0;
    for number in 1..=8 {
        match say(message(number, "tools/call", &params)).await {
            202 => asked += 1,
            status => assert_eq!(status, 429),
        }
        let unsent = rig.occupancy.now().unsent_bytes;
        assert!(unsent <= 64 << 20, "{unsent} after {number} calls");
    }
    assert!(asked >= 2);
    // Every request is answered, with its answer or an error.
    let (mut results, mut dropped) = (0, 0);
    let mut text = String::new();
    while results + dropped < asked {
        let chunk = tokio::time::timeout(PATIENCE, chunks.next()).await.unwrap().unwrap().unwrap();
        text.push_str(std::str::from_utf8(&chunk).unwrap());
        while let Some((event, rest)) = text.split_once("\n\n") {
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            let message: Value = data.map_or(Value::Null, |data| serde_json::from_str(data).unwrap());
            match (message["id"].as_u64(), message["result"].is_object()) {
                (Some(0) | None, _) => {}
                (Some(_), true) => results += 1,
                (Some(id), false) => {
                    assert_dropped(&message, id);
                    dropped += 1;
                }
            }
            text = rest.to_owned();
        }
    }
    assert!(results >= 1);
    until_unsent(&rig, 0).await;
}

#[tokio::test]
async fn answers_that_are_read_have_a_share_of_the_memory_until_their_calls_end() {
    let rig = start(64).await;
    let call = |who: &str, mib: u64| {
        let arguments = json!({"memory": mib << 20});
        rig.modern("tools/call", json!({"name": "app:wait", "arguments": arguments}))
            .bearer_auth(who)
            .timeout(UNREAD)
    };
    let first = tokio::spawn(call("greedy", 40).send());
    rig.tools.started.notified().await;
    let refused = answer(call("greedy", 1).send().await.unwrap()).await;
    assert_dropped(&refused, 7);
    let refused = answer(call("ann", 40).send().await.unwrap()).await;
    assert_dropped(&refused, 7);
    let other = tokio::spawn(call("ann", 20).send());
    rig.tools.started.notified().await;
    for _ in 0..2 {
        rig.tools.go_on.notify_one();
        rig.tools.ended.notified().await;
    }
    for waited in [first, other] {
        let done = answer(waited.await.unwrap().unwrap()).await;
        assert_eq!(done["result"]["content"][0]["text"], "done");
    }
    rig.tools.go_on.notify_one();
    let again = answer(call("greedy", 40).send().await.unwrap()).await;
    assert!(again["result"].is_object(), "{again}");
}

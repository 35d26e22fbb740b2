//! Requests that their client cancels.

use serde_json::{Value, json};

use crate::support::{PATIENCE, Rig, answer, message, start};

async fn cancel(rig: &Rig, session: &str, request: Value) {
    let params = json!({"requestId": request, "reason": "no longer needed"});
    let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    let told = rig.post(note.to_string()).header("mcp-session-id", session).send().await.unwrap();
    assert_eq!(told.status(), 202);
}

#[tokio::test]
async fn a_post_that_still_waits_for_a_cancelled_request_gets_the_error_32800() {
    let rig = start(json!({})).await;
    let session = rig.open("x").await;
    // With a progress token too: the stream then has more than one purpose.
    for meta in [json!({}), json!({"progressToken": "p"})] {
        let call = json!({"name": "app:wait", "arguments": {}, "_meta": meta});
        let waiting = rig.in_session(&session, "tools/call", call).send().await.unwrap();
        rig.tools.started.notified().await;
        cancel(&rig, &session, json!(99)).await;
        cancel(&rig, &session, json!(7)).await;
        let ended = tokio::time::timeout(PATIENCE, answer(waiting)).await.unwrap();
        assert_eq!((&ended["id"], &ended["error"]["code"]), (&json!(7), &json!(-32800)), "{ended}");
    }
    let next = rig.in_session(&session, "ping", json!({})).send().await.unwrap();
    assert_eq!(answer(next).await["result"], json!({}), "the session goes on");
}

#[tokio::test]
async fn a_cancellation_that_comes_after_the_answer_changes_nothing() {
    let rig = start(json!({})).await;
    let session = rig.open("x").await;
    let call = json!({"name": "app:echo", "arguments": {"a": 1}});
    let answered = rig.in_session(&session, "tools/call", call).send().await.unwrap();
    let text = answered.text().await.unwrap();
    cancel(&rig, &session, json!(7)).await;
    assert!(text.contains(r#""result""#) && !text.contains("32800"), "{text}");
}

#[tokio::test]
async fn another_session_cannot_cancel_a_request() {
    let rig = start(json!({})).await;
    let (own, other) = (rig.open("x").await, rig.open("y").await);
    let call = json!({"name": "app:wait", "arguments": {}});
    let waiting = rig.in_session(&own, "tools/call", call).send().await.unwrap();
    rig.tools.started.notified().await;
    cancel(&rig, &other, json!(7)).await;
    let next =
        rig.post(message(8, "ping", &json!({}))).header("mcp-session-id", &other).send().await.unwrap();
    assert_eq!(next.status(), 200);
    rig.tools.go_on.notify_one();
    let answered = answer(waiting).await;
    assert_eq!(answered["result"]["content"][0]["text"], "done", "{answered}");
}

#[tokio::test]
async fn the_requests_of_a_session_that_is_deleted_end() {
    let rig = start(json!({})).await;
    let session = rig.open("x").await;
    let call = json!({"name": "app:wait", "arguments": {}});
    let _waiting = rig.in_session(&session, "tools/call", call).send().await.unwrap();
    rig.tools.started.notified().await;
    let deleted = rig.http.delete(&rig.url).header("mcp-session-id", &session).send().await.unwrap();
    assert_eq!(deleted.status(), 204);
    tokio::time::timeout(PATIENCE, rig.tools.ended.notified()).await.expect("the call ends");
}

//! Who calls, and what is theirs.

use serde_json::json;

use crate::support::{Believing, Rig, answer, message, refused, start_with};

async fn believing() -> Rig {
    start_with(json!({}), |builder| builder.authenticator(std::sync::Arc::new(Believing))).await
}

#[tokio::test]
async fn a_request_without_a_caller_gets_the_challenge_of_the_authenticator() {
    let rig = believing().await;
    let response = rig.initialize().send().await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(response.headers()["www-authenticate"], "Bearer");
}

#[tokio::test]
async fn tools_hear_who_calls_in_both_eras() {
    let rig = believing().await;
    let params = json!({"name": "app:whoami", "arguments": {}});
    let modern = rig.modern("tools/call", params.clone()).bearer_auth("ann").send().await.unwrap();
    assert_eq!(answer(modern).await["result"]["content"][0]["text"], "ann");
    let id = rig.open("bob").await;
    let called = rig.in_session(&id, "tools/call", params).bearer_auth("bob").send().await.unwrap();
    assert_eq!(answer(called).await["result"]["content"][0]["text"], "bob");
}

#[tokio::test]
async fn a_session_is_unknown_to_everybody_but_its_owner() {
    let rig = believing().await;
    let id = rig.open("ann").await;
    let by_bob = |request: reqwest::RequestBuilder| request.bearer_auth("bob");
    assert_eq!(refused(by_bob(rig.in_session(&id, "tools/list", json!({})))).await.0, 404);
    let get = rig.http.get(&rig.url).header("accept", "text/event-stream").header("mcp-session-id", &id);
    assert_eq!(refused(by_bob(get)).await.0, 404);
    assert_eq!(refused(by_bob(rig.http.delete(&rig.url).header("mcp-session-id", &id))).await.0, 404);
    // Nor does an `initialize` inside it, whatever era it claims to be of.
    for version in ["2025-11-25", "2026-07-28"] {
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}});
        let inside = rig.post(message(1, "initialize", &params)).header("mcp-session-id", &id);
        assert_eq!(refused(by_bob(inside.header("mcp-protocol-version", version))).await.0, 404);
    }
    let own = rig.in_session(&id, "tools/list", json!({})).bearer_auth("ann").send().await.unwrap();
    assert_eq!(own.status(), 200);
}

#[tokio::test]
async fn a_call_without_its_scopes_is_forbidden_before_it_is_dispatched() {
    let rig = believing().await;
    let call = rig.modern("tools/call", json!({"name": "app:guarded", "arguments": {}}));
    let response = call.bearer_auth("ann").send().await.unwrap();
    assert_eq!(response.status(), 403);
    let challenge = response.headers()["www-authenticate"].to_str().unwrap();
    assert_eq!(challenge, r#"Bearer error="insufficient_scope", scope="crm:write""#);
}

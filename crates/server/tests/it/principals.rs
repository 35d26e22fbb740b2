//! Callers and their sessions.

use std::sync::Arc;

use futures::future::BoxFuture;
use gatewright_core::{AuthRefusal, Authenticator, Principal};
use gatewright_testing::{ClientError, expect};
use http::request::Parts;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Believing, PATIENCE, Rig, answer, message, refused, start_with};

/// Believes everybody; tokens end when it is told so.
struct Ending(CancellationToken);

impl Authenticator for Ending {
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> BoxFuture<'a, Result<Principal, AuthRefusal>> {
        Believing.authenticate(parts)
    }

    fn until_ended(&self, _: &Parts) -> BoxFuture<'static, ()> {
        Box::pin(self.0.clone().cancelled_owned())
    }

    fn insufficient_scope(&self, principal: &Principal, missing: &[String]) -> AuthRefusal {
        Believing.insufficient_scope(principal, missing)
    }
}

async fn believing() -> Rig {
    start_with(json!({}), |builder| builder.authenticator(std::sync::Arc::new(Believing))).await
}

#[tokio::test]
async fn a_request_without_a_caller_gets_the_challenge_of_the_authenticator() {
    let rig = believing().await;
    let refused = rig.client().connect().await.unwrap_err();
    assert!(
        matches!(&refused, ClientError::Refused { status: 401, challenge, .. } if challenge.as_deref() == Some("Bearer")),
        "{refused}"
    );
}

#[tokio::test]
async fn a_401_is_a_json_rpc_error_with_the_id_of_the_request_beside_the_challenge() {
    let rig = believing().await;
    let params = json!({"name": "app:whoami", "arguments": {}});
    let response = rig.post(message(41, "tools/call", &params)).send().await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(response.headers()["www-authenticate"], "Bearer");
    assert_eq!(response.headers()["content-type"], "application/json");
    let body = answer(response).await;
    assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!(41)));
    assert_eq!(body["error"]["code"], -32001, "{body}");
    assert!(body["error"]["message"].as_str().unwrap().starts_with("Unauthorized"), "{body}");
    // Bytes of strangers are looked at within bounds, and nobody who is not let in is told what is wrong with them.
    let long = message(42, "tools/call", &json!({"name": "x".repeat(70_000)}));
    for unread in ["", "not JSON", "[1]", r#"{"id": {"an": "object"}}"#, &long] {
        let body = answer(rig.post(unread.to_owned()).send().await.unwrap()).await;
        assert_eq!((&body["id"], &body["error"]["code"]), (&json!(null), &json!(-32001)), "{body}");
    }
    let get = rig.http.get(&rig.url).header("accept", "text/event-stream").send().await.unwrap();
    assert_eq!(get.status(), 401);
    assert_eq!(answer(get).await["error"]["code"], -32001);
}

#[tokio::test]
async fn a_403_for_scopes_is_a_json_rpc_error_with_the_id_of_the_request_beside_the_challenge() {
    let rig = believing().await;
    let call = rig.modern("tools/call", json!({"name": "app:guarded", "arguments": {}}));
    let response = call.bearer_auth("ann").send().await.unwrap();
    assert_eq!(response.status(), 403);
    assert!(response.headers()["www-authenticate"].to_str().unwrap().contains("insufficient_scope"));
    let body = answer(response).await;
    assert_eq!((&body["id"], &body["error"]["code"]), (&json!(7), &json!(-32001)), "{body}");
}

#[tokio::test]
async fn tools_hear_who_calls_in_both_eras() {
    let rig = believing().await;
    for (version, who) in [("2026-07-28", "ann"), ("2025-11-25", "bob")] {
        let mcp = rig.client().protocol_version(version).token(who).connect().await.unwrap();
        let called = mcp.tools().call("app:whoami", json!({})).await.unwrap();
        expect(&called).to_have_text_content(who);
        // Who comes with another token is another caller: with a session of its own where there are sessions.
        let session = mcp.session_id();
        mcp.authenticate("eve").await.unwrap();
        expect(&mcp.tools().call("app:whoami", json!({})).await.unwrap()).to_have_text_content("eve");
        assert!(session.is_none() || mcp.session_id() != session);
    }
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
    for version in ["2026-07-28", "2025-11-25"] {
        let mcp = rig.client().protocol_version(version).token("ann").connect().await.unwrap();
        let refused = mcp.tools().call("app:guarded", json!({})).await.unwrap_err();
        let ClientError::Refused { status: 403, challenge: Some(challenge), .. } = &refused else {
            panic!("{refused}");
        };
        assert_eq!(challenge, r#"Bearer error="insufficient_scope", scope="crm:write""#);
    }
}

#[tokio::test]
async fn streams_that_wait_end_with_the_token_that_opened_them() {
    let ended = CancellationToken::new();
    let authenticator = Arc::new(Ending(ended.clone()));
    let rig = start_with(json!({"legacySse": true}), |builder| builder.authenticator(authenticator)).await;
    let id = rig.open("ann").await;
    let get = rig.http.get(&rig.url).header("accept", "text/event-stream").header("mcp-session-id", &id);
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let requests = [
        get.bearer_auth("ann"),
        rig.modern("subscriptions/listen", filter).bearer_auth("ann"),
        rig.http.get(format!("{}/sse", rig.base)).bearer_auth("ann"),
    ];
    let mut streams = Vec::new();
    for request in requests {
        let stream = request.send().await.unwrap();
        assert_eq!(stream.status(), 200);
        streams.push(stream);
    }
    let mcp = rig.client().protocol_version("2026-07-28").token("ann").connect().await.unwrap();
    let call = mcp.tools().call("app:wait", json!({})).begin().await.unwrap();
    rig.tools.started.notified().await;
    ended.cancel();
    for stream in streams {
        let url = stream.url().clone();
        assert!(tokio::time::timeout(PATIENCE, stream.bytes()).await.is_ok(), "{url} is still open");
    }
    // A call that was let in is answered.
    rig.tools.go_on.notify_one();
    expect(&call.result().await.unwrap()).to_have_text_content("done");
}

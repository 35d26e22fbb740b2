//! Every bad request gets a JSON-RPC error, and the server goes on.

use serde_json::{Value, json};

use crate::support::{answer, message, refused, start};

#[tokio::test]
async fn a_body_that_is_not_json_is_a_parse_error() {
    let rig = start(json!({})).await;
    let response = rig.post("{\"jsonrpc\": ").send().await.unwrap();
    assert_eq!(response.status(), 400);
    let body = answer(response).await;
    assert_eq!(body["jsonrpc"], "2.0");
    assert_eq!(body["id"], Value::Null);
    assert_eq!(body["error"]["code"], -32700);
    assert_eq!(refused(rig.post("")).await.1, -32700);
}

#[tokio::test]
async fn json_that_is_no_message_is_an_invalid_request() {
    let rig = start(json!({})).await;
    for body in ["{}", "5", r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, r#"{"jsonrpc":"2.0","id":1}"#] {
        let (status, code, _) = refused(rig.post(body)).await;
        assert_eq!((status, code), (400, -32600), "{body}");
    }
    let (status, code, text) = refused(rig.post(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#)).await;
    assert_eq!((status, code), (400, -32600));
    assert!(text.contains("batches"), "{text}");
}

#[tokio::test]
async fn an_invalid_request_keeps_the_id_it_can_read() {
    let rig = start(json!({})).await;
    let response = rig.post(r#"{"jsonrpc":"1.0","id":41,"method":"ping"}"#).send().await.unwrap();
    assert_eq!(answer(response).await["id"], 41);
}

#[tokio::test]
async fn a_content_type_that_is_not_json_is_refused_as_json() {
    let rig = start(json!({})).await;
    let request = rig.http.post(&rig.url).header("content-type", "text/plain").body("{}");
    assert_eq!(refused(request).await.0, 415);
    assert_eq!(refused(rig.http.post(&rig.url).body("{}")).await.0, 415);
}

#[tokio::test]
async fn a_body_with_a_content_coding_is_told_to_come_without() {
    let rig = start(json!({})).await;
    for coding in ["gzip", "identity, br"] {
        let response = rig.post("\u{1f}\u{8b}").header("content-encoding", coding).send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["accept-encoding"]),
            (415, &"identity".parse().unwrap())
        );
        let text = answer(response).await["error"]["message"].to_string();
        assert!(text.contains("Content-Encoding"), "{text}");
    }
    let plain =
        rig.post(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#).header("content-encoding", "identity");
    assert_eq!(refused(plain).await.0, 400);
}

#[tokio::test]
async fn a_client_that_takes_anything_is_served_and_one_that_takes_too_little_is_told() {
    let rig = start(json!({})).await;
    let body = message(
        1,
        "initialize",
        &json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "curl", "version": "8"},
        }),
    );
    let plain = || rig.http.post(&rig.url).header("content-type", "application/json").body(body.clone());
    assert_eq!(plain().send().await.unwrap().status(), 200);
    assert_eq!(plain().header("accept", "*/*").send().await.unwrap().status(), 200);
    let (status, _, text) = refused(plain().header("accept", "application/json")).await;
    assert_eq!(status, 406);
    assert!(text.contains("text/event-stream"), "{text}");
}

#[tokio::test]
async fn a_body_over_the_limit_is_too_large_and_the_next_request_is_served() {
    let rig = start(json!({"maxBodyBytes": 2000})).await;
    for bytes in [2001, 3999, 200_000] {
        let (status, _, text) = refused(rig.post("x".repeat(bytes))).await;
        assert_eq!(status, 413);
        assert!(text.contains("http.maxBodyBytes"), "{text}");
    }
    assert_eq!(refused(rig.post("x".repeat(2000))).await.1, -32700);
    assert_eq!(rig.initialize().send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn an_unknown_protocol_version_is_told_which_are_known() {
    let rig = start(json!({})).await;
    let id = rig.open("x").await;
    let request = rig.post(message(3, "ping", &json!({})));
    let response = request
        .header("mcp-session-id", id)
        .header("mcp-protocol-version", "1999-01-01")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 400);
    let body = answer(response).await;
    assert_eq!(body["error"]["code"], -32022);
    assert_eq!(body["error"]["data"]["requested"], "1999-01-01");
    assert!(body["error"]["data"]["supported"].as_array().unwrap().contains(&json!("2025-11-25")));
}

#[tokio::test]
async fn unknown_methods_and_tools_and_wrong_params_get_their_codes_in_both_eras() {
    let rig = start(json!({})).await;
    let id = rig.open("x").await;
    for (method, params, code, modern_status) in [
        ("tools/call", json!({"name": "app:nothing"}), -32602, 200),
        ("tools/list", json!({"cursor": "nonsense"}), -32602, 200),
        ("tasks/get", json!({"taskId": 5}), -32602, 200),
        ("no/such/method", json!({}), -32601, 404),
        ("tools/call", json!({"name": "app:echo", "arguments": 5}), -32602, 200),
    ] {
        let (status, found, text) = refused(rig.in_session(&id, method, params.clone())).await;
        assert_eq!((status, found), (200, code), "{method} {params}: {text}");
        let (status, found, text) = refused(rig.modern(method, params.clone())).await;
        assert_eq!((status, found), (modern_status, code), "{method} {params}: {text}");
    }
}

#[tokio::test]
async fn what_a_client_made_up_is_not_repeated_at_length() {
    let rig = start(json!({})).await;
    let id = rig.open("x").await;
    let long = "x".repeat(200_000);
    for (method, params) in [
        (&*long, json!({})),
        ("prompts/get", json!({"name": long})),
        ("resources/read", json!({"uri": long})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": long}, "argument": {"name": "a", "value": ""}}),
        ),
        ("tasks/get", json!({"taskId": long})),
        ("tools/call", json!({"name": long})),
        ("tools/call", json!({"name": "app:echo", "arguments": long})),
        ("tools/list", json!({"cursor": long})),
    ] {
        let (_, _, text) = refused(rig.in_session(&id, method, params)).await;
        assert!(text.len() < 1_000 && !text.is_empty(), "{}: {} bytes", &method[..10], text.len());
    }
}

#[tokio::test]
async fn methods_the_new_era_took_away_are_unknown_there_whatever_their_params() {
    let rig = start(json!({})).await;
    for method in ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        let (status, code, _) = refused(rig.modern(method, json!({}))).await;
        assert_eq!((status, code), (404, -32601), "{method}");
    }
}

#[tokio::test]
async fn methods_without_a_meaning_are_not_allowed() {
    let rig = start(json!({})).await;
    let response = rig.http.put(&rig.url).body("{}").send().await.unwrap();
    assert_eq!(response.status(), 405);
    assert_eq!(response.headers()["allow"], "GET, POST, DELETE");
    assert_eq!(answer(response).await["jsonrpc"], "2.0");
}

#[tokio::test]
async fn a_request_with_two_values_of_a_header_that_has_one_is_refused() {
    let rig = start(json!({})).await;
    let id = rig.open("x").await;
    let ping = || rig.in_session(&id, "ping", json!({}));
    assert_eq!(ping().send().await.unwrap().status(), 200);
    for (name, value) in [
        ("mcp-protocol-version", "2025-06-18"),
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-session-id", "another"),
        ("content-type", "text/plain"),
    ] {
        let (status, _, text) = refused(ping().header(name, value)).await;
        assert!(status == 400 && text.contains(name), "{name}: {status} {text}");
    }
}

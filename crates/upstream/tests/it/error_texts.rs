//! Errors of servers as callers of `tools/call` get them.

use gatewright_core::Secret;
use serde_json::{Value, json};

use crate::support::{Bench, error, server};

/// A server that knows a token, and a client of the gateway in front of it.
async fn client() -> (Bench, gatewright_testing::Mcp) {
    let bench = Bench::new();
    let mut config = server(&[]);
    config.env.insert("API_TOKEN".to_owned(), Secret::new("hunter2-hunter2"));
    config.env.insert("LOG_LEVEL".to_owned(), Secret::new("warning"));
    bench.add("a", config).await;
    let client = bench.client().await;
    (bench, client)
}

const TEXT: &str =
    "warning: hunter2-hunter2 at postgres://me:pw1@db/x\n  Authorization: Bearer abcdefgh12345";
const SAFE: &str = "warning: [redacted] at postgres://[redacted]@db/x\n  Authorization: Bearer [redacted]";

#[tokio::test]
async fn credentials_are_taken_out_of_protocol_errors_and_of_their_data() {
    let (_bench, client) = client().await;
    let data =
        json!({"code": "DENIED", "headers": [TEXT], "password": "two words", "retry": 3, "nothing": null});
    let found =
        error(&client, "a:answer", json!({"error": {"code": -32055, "message": TEXT, "data": data}})).await;
    let safe =
        json!({"code": "DENIED", "headers": [SAFE], "password": "[redacted]", "retry": 3, "nothing": null});
    assert_eq!((found.code, &*found.message, found.data), (-32055, SAFE, Some(safe)));
}

#[tokio::test]
async fn credentials_are_taken_out_of_failed_calls_and_results_stay_as_they_are() {
    let (_bench, client) = client().await;
    for (is_error, expected) in [(true, SAFE), (false, TEXT)] {
        let content = json!([{"type": "text", "text": TEXT}, {"type": "text", "text": "second"}]);
        let answer = json!({"content": content, "structuredContent": {"why": TEXT}, "isError": is_error});
        let result = client.tools().call("a:answer", json!({"result": answer})).await.unwrap();
        assert_eq!((result.text(), result.is_error), (format!("{expected}\nsecond"), is_error));
        assert_eq!(result.structured(), Some(&json!({"why": expected})));
    }
}

#[tokio::test]
async fn errors_of_any_length_become_short_ones() {
    let (_bench, client) = client().await;
    let long = "password=x ".repeat(100_000);
    let data = json!({"code": "DENIED", "rows": vec![long.clone(); 3]});
    let found =
        error(&client, "a:answer", json!({"error": {"code": -32055, "message": &long, "data": data}})).await;
    assert!(
        found.message.len() < 9_000 && found.message.contains("1100000 bytes in all"),
        "{}",
        found.message.len()
    );
    assert_eq!(found.data, Some(json!({"code": "DENIED"})));
    let content: Vec<Value> = vec![json!({"type": "text", "text": &long}); 3];
    let answer = json!({"content": content, "structuredContent": {"rows": &long}, "isError": true});
    let result = client.tools().call("a:answer", json!({"result": answer})).await.unwrap();
    assert!(result.text().len() < 66_000 && !result.text().contains("=x"), "{}", result.text().len());
    assert_eq!(result.structured(), None);
}

#[tokio::test]
async fn addresses_that_a_user_must_open_stay_whole() {
    let (_bench, client) = client().await;
    let url = "https://auth.example/start?code=abcdefgh12345&token=zyxwvut";
    let data =
        json!({"elicitations": [{"mode": "url", "url": url, "elicitationId": "1", "message": "Sign in"}]});
    let asked = json!({"error": {"code": -32042, "message": "sign in first", "data": &data}});
    assert_eq!(error(&client, "a:answer", asked).await.data, Some(data.clone()));
    let mut more = data.clone();
    for other in ["javascript:alert(1)", "file:///etc/passwd"] {
        let other = json!({"mode": "url", "url": other, "elicitationId": "2", "message": "Sign in"});
        more["elicitations"].as_array_mut().unwrap().push(other);
    }
    let asked = json!({"error": {"code": -32042, "message": "sign in first", "data": more}});
    assert_eq!(error(&client, "a:answer", asked).await.data, Some(data));
}

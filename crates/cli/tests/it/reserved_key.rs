//! Objects whose key has a meaning of its own for the JSON library, nested as texts within texts: whoever sends them, the gateway goes on.

use serde_json::{Value, json};

use crate::{
    runs::{execute, post},
    served::Served,
};

const CONFIG: &str = "http: { sessions: false }\napps:\n  crm: { builtin: crm }\n";
const KEY: &str = "$serde_json::private::RawValue";

/// An object that the library would read as JSON nested a thousand levels deep.
fn nested() -> Value {
    (0..10).fold(json!(1), |inner, _| {
        let deep = format!("{}{inner}{}", "[".repeat(100), "]".repeat(100));
        json!({ KEY: deep })
    })
}

#[tokio::test]
async fn a_request_with_the_reserved_key_anywhere_is_refused_and_the_next_one_answered() {
    let server = Served::start(CONFIG, &[]);
    let invoke = json!({"name": "codecall:invoke", "arguments": nested()});
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": invoke}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": nested()}}),
        json!({"jsonrpc": "2.0", "id": nested(), "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": nested()}),
    ] {
        let answer = post(&server, &[], &message).await;
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        assert!(status == 400 && text.contains("which is reserved"), "{status} {text}");
    }
    assert_eq!(execute(&server, "return 1").await.1["result"], 1);
}

#[tokio::test]
async fn a_script_with_the_reserved_key_fails_or_returns_and_the_next_one_runs() {
    let server = Served::start(CONFIG, &[]);
    let made = format!("const made = JSON.parse({});", json!(nested().to_string()));
    let called = execute(&server, &format!("{made} return await callTool('crm:users_list', made)")).await.1;
    assert_eq!(called["status"], "tool_error", "{called}");
    let prompted = execute(&server, &format!("{made} return await getPrompt('x', made)")).await.1;
    assert_eq!(prompted["status"], "tool_error", "{prompted}");
    assert!(prompted["error"]["message"].as_str().unwrap().contains("which is reserved"), "{prompted}");
    let literal = format!("return await callTool('crm:users_list', {});", nested());
    for ending in [
        "return made",
        "console.log(made); throw made",
        "return [made]",
        "progress(made)",
        "await __safe_parallel([() => getPrompt('x', { a: made })], { settle: true }); return 1",
        "return await readResource('crm://' + JSON.stringify(made))",
        &literal,
    ] {
        let answer = execute(&server, &format!("{made} {ending}")).await.1;
        assert!(answer["status"].is_string(), "{answer}");
    }
    assert_eq!(execute(&server, "return 1").await.1["result"], 1);
}

//! Shapes of a server's messages, as tests in Rust and suites see them.

use gatewright_testing::{
    Mcp, McpBuilder, Rule, Server, Strict, Transport,
    suite::{RunOptions, Suite},
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::support::script;

/// A client of a server that answers with these results, by method, and sends `notification` after the handshake.
fn client(results: Value, notification: Option<Value>) -> McpBuilder {
    let (client_end, server_end) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        let (reader, mut writer) = tokio::io::split(server_end);
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let asked: Value = serde_json::from_str(&line).unwrap();
            let method = asked["method"].as_str().unwrap();
            let answer = match (method, &notification) {
                ("notifications/initialized", Some(notification)) => notification.clone(),
                ("notifications/initialized", None) => continue,
                ("initialize", _) => json!({"jsonrpc": "2.0", "id": asked["id"], "result": {
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "n", "version": "1"}}}),
                _ => json!({"jsonrpc": "2.0", "id": asked["id"], "result": results[method]}),
            };
            if writer.write_all(format!("{answer}\n").as_bytes()).await.is_err() {
                return;
            }
        }
    });
    let (reader, writer) = tokio::io::split(client_end);
    Mcp::lines(reader, writer)
}

fn broken_list() -> Value {
    json!({"tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "string"}}]}})
}

#[tokio::test]
async fn a_list_that_the_typescript_sdk_rejects_fails_the_call() {
    let mcp = client(broken_list(), None).connect().await.unwrap();
    let error = mcp.tools().list().await.unwrap_err();
    assert!(error.to_string().contains("[input-schema] /tools/0/inputSchema/type (`t`)"), "{error}");
    assert_eq!(mcp.violations()[0].rule, Rule::InputSchema);
    assert!(mcp.trace().last().unwrap().response.is_some(), "the trace has the broken answer");
}

#[tokio::test]
async fn exceptions_accept_a_broken_answer() {
    let exception = Strict::except([Rule::InputSchema]);
    let mcp = client(broken_list(), None).strict(exception).connect().await.unwrap();
    assert_eq!(mcp.tools().list().await.unwrap().len(), 1);
    let mcp = client(broken_list(), None).strict(false).connect().await.unwrap();
    assert_eq!(mcp.tools().list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_output_schema_is_asked_for_when_a_result_is_structured() {
    let list = json!({"tools": [{"name": "t", "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}]});
    let called = json!({"content": [], "structuredContent": {"n": "one"}});
    let mcp = client(json!({"tools/list": list, "tools/call": called}), None).connect().await.unwrap();
    let error = mcp.tools().call("t", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("[structured-content] /structuredContent/n (`t`)"), "{error}");
    assert_eq!(mcp.trace().all().len(), 1, "the test did not list the tools");
}

#[tokio::test]
async fn a_result_that_lacks_what_its_output_schema_promises_fails() {
    let list = json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}]});
    let called = json!({"content": [{"type": "text", "text": "{}"}]});
    let mcp = client(json!({"tools/list": list, "tools/call": called}), None).connect().await.unwrap();
    let error = mcp.tools().call("t", json!({})).await.unwrap_err().to_string();
    assert!(error.contains("[structured-content]") && error.contains("no `structuredContent`"), "{error}");
}

#[tokio::test]
async fn a_broken_notification_fails_the_next_call() {
    let notification =
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "loud", "data": 1}});
    let results = json!({"tools/list": {"tools": []}});
    let mcp = client(results, Some(notification)).connect().await.unwrap();
    let error = mcp.tools().list().await.unwrap_err().to_string();
    assert!(error.contains("`notifications/message`: [schema] /params/level"), "{error}");
    assert!(error.contains("`notifications/message`: [capabilities]"), "{error}");
    mcp.tools().list().await.unwrap();
}

#[tokio::test]
async fn the_content_type_of_an_http_answer_is_checked() {
    let server = Server::builder(script("tiny.mjs")).env("BREAK", "content-type").start().await.unwrap();
    let error = server.client().connect().await.unwrap_err().to_string();
    assert!(error.contains("[content-type] the content type of the answer is `text/plain`"), "{error}");
    assert!(error.contains("Unexpected content type"), "{error}");
    server.client().strict(Strict::except([Rule::ContentType])).connect().await.unwrap();
}

#[tokio::test]
async fn a_server_in_a_process_of_its_own_is_checked_over_stdio() {
    let stdio = Server::builder(script("tiny.mjs")).arg("--stdio").transport(Transport::Stdio);
    let server = stdio.env("BREAK", "schema").start().await.unwrap();
    let mcp = server.client().connect().await.unwrap();
    assert!(mcp.tools().list().await.unwrap_err().to_string().contains("[input-schema]"));
}

/// The failures of a suite for `tiny.mjs` with a broken schema.
async fn failures(strict: &str, of_test: &str) -> Vec<bool> {
    let text = format!(
        "server: {{ command: {}, env: {{ BREAK: schema }}{strict} }}\n\
         tests:\n- {{ name: lists, {of_test} steps: [{{ list: tools, expect: [toContainTool: env] }}] }}",
        script("tiny.mjs")
    );
    let report = Suite::parse("suite.yaml", &text).unwrap().run(&RunOptions::default()).await;
    report.tests.iter().map(|test| test.outcome == gatewright_testing::suite::TestOutcome::Passed).collect()
}

#[tokio::test]
async fn suites_are_strict_unless_the_server_or_a_test_says_otherwise() {
    assert_eq!(failures("", "").await, [false]);
    assert_eq!(failures(", strict: false", "").await, [true]);
    assert_eq!(failures(", strict: { except: [input-schema] }", "").await, [true]);
    assert_eq!(failures(", strict: { except: [base64] }", "").await, [false]);
    assert_eq!(failures("", "strict: { except: [input-schema] },").await, [true]);
    assert_eq!(failures(", strict: false", "strict: true,").await, [false]);
}

#[test]
fn a_suite_that_names_an_unknown_rule_is_refused() {
    let text = "server: { command: x, strict: { except: [base65] } }\ntests: [{ name: a, steps: [] }]";
    let error = Suite::parse("suite.yaml", text).unwrap_err().to_string();
    assert!(error.contains("suite.yaml:1: server.strict"), "{error}");
}

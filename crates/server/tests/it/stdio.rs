//! Lines of JSON, as on standard input and output.

use gatewright_testing::{Mcp, expect};
use rmcp::{ServiceExt, model::CallToolRequestParams};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

use crate::support::{PATIENCE, Tools, gateway, message};

struct Line {
    input: tokio::io::DuplexStream,
    output: BufReader<tokio::io::DuplexStream>,
    served: tokio::task::JoinHandle<()>,
    stop: CancellationToken,
    tools: Tools,
}

async fn connect() -> Line {
    let tools = Tools::default();
    let (input, server_input) = tokio::io::duplex(1 << 16);
    let (server_output, output) = tokio::io::duplex(1 << 16);
    let (gateway, stop) = (gateway(tools.clone()).await, CancellationToken::new());
    let serving = gatewright_server::serve_lines(gateway, server_input, server_output, stop.clone());
    let served = tokio::spawn(async move { serving.await.unwrap() });
    Line { input, output: BufReader::new(output), served, stop, tools }
}

impl Line {
    async fn say(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).await.unwrap();
        self.input.write_all(b"\n").await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let mut line = String::new();
        tokio::time::timeout(PATIENCE, self.output.read_line(&mut line)).await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

fn initialize() -> String {
    initialize_as("2025-11-25")
}

fn initialize_as(revision: &str) -> String {
    message(
        1,
        "initialize",
        &json!({
            "protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }),
    )
}

#[tokio::test]
async fn a_line_that_is_not_json_is_answered_and_the_next_one_is_served() {
    let mut line = connect().await;
    line.say("hello?").await;
    assert_eq!(line.hear().await["error"]["code"], -32700);
    line.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    line.say("").await;
    line.say(&initialize()).await;
    assert_eq!(line.hear().await["result"]["serverInfo"]["name"], "test-gateway");
    line.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    line.say("[1,").await;
    let error = line.hear().await;
    assert_eq!((&error["id"], &error["error"]["code"]), (&Value::Null, &json!(-32700)));
    line.say("{}").await;
    assert_eq!(line.hear().await["error"]["code"], -32600);
    line.say(&message(2, "tools/call", &json!({"name": "app:echo", "arguments": {"a": 1}}))).await;
    assert_eq!(line.hear().await["result"]["content"][0]["text"], r#"{"a":1}"#);
}

#[tokio::test]
async fn what_was_asked_before_the_end_of_the_input_is_answered() {
    let mut line = connect().await;
    line.say(&initialize()).await;
    line.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    line.say(&message(2, "tools/list", &json!({}))).await;
    // Without its line end, as of a file that lacks the last one.
    line.input.write_all(message(3, "ping", &json!({})).as_bytes()).await.unwrap();
    let Line { input, mut output, served, .. } = line;
    drop(input);
    let mut all = String::new();
    tokio::time::timeout(PATIENCE, output.read_to_string(&mut all)).await.unwrap().unwrap();
    tokio::time::timeout(PATIENCE, served).await.unwrap().unwrap();
    let mut ids: Vec<i64> = all
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_i64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
}

#[tokio::test]
async fn a_second_request_with_an_id_in_flight_is_refused_and_the_first_is_answered() {
    let mut line = connect().await;
    line.say(&initialize()).await;
    line.hear().await;
    line.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    line.say(&message(2, "tools/call", &json!({"name": "app:wait"}))).await;
    line.tools.started.notified().await;
    line.say(&message(2, "ping", &json!({}))).await;
    let refused = line.hear().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32600)), "{refused}");
    line.tools.go_on.notify_one();
    let answer = line.hear().await;
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(2), &json!("done")));
}

#[tokio::test]
async fn a_client_of_2025_03_26_may_send_batches_and_others_may_not() {
    let batch = r#"[{"jsonrpc":"2.0","id":2,"method":"ping"},[],{"jsonrpc":"2.0","id":3,"method":"ping"}]"#;
    for (revision, ids) in [("2025-03-26", "2 3 null"), ("2025-06-18", "null")] {
        let mut line = connect().await;
        line.say(&initialize_as(revision)).await;
        line.hear().await;
        line.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        line.say(batch).await;
        let mut heard = Vec::new();
        for _ in ids.split(' ') {
            heard.push(line.hear().await["id"].to_string());
        }
        heard.sort();
        assert_eq!(heard.join(" "), ids, "{revision}");
    }
}

#[tokio::test]
async fn a_stop_ends_it_while_the_input_is_open() {
    let Line { input, output, served, stop, .. } = connect().await;
    let mcp = Mcp::lines(output, input).timeout(PATIENCE).connect().await.unwrap();
    let bad = mcp.raw().send_raw("hello?").await.unwrap();
    expect(&bad).to_have_error_code(-32700);
    expect(&mcp.tools().call("app:echo", json!({"a": 1})).await.unwrap()).to_have_text_content(r#"{"a":1}"#);
    stop.cancel();
    tokio::time::timeout(PATIENCE, served).await.unwrap().unwrap();
    let ended = mcp.tools().list().await.unwrap_err();
    assert!(ended.to_string().starts_with("not connected: "), "{ended}");
}

#[tokio::test]
async fn the_rust_client_calls_over_lines() {
    let (client, server) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(server);
    let serving = gatewright_server::serve_lines(
        gateway(Tools::default()).await,
        reader,
        writer,
        CancellationToken::new(),
    );
    let served = tokio::spawn(serving);
    let client = ().serve(client).await.unwrap();
    let result = client.call_tool(CallToolRequestParams::new("app:echo")).await.unwrap();
    assert_eq!(serde_json::to_value(&result).unwrap()["content"][0]["text"], "{}");
    client.cancel().await.unwrap();
    tokio::time::timeout(PATIENCE, served).await.unwrap().unwrap().unwrap();
}

//! The program of the guide for Rust authors, as a user would run it.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use gatewright::{AppOptions, CodeCallConfig, ExecutionsConfig, HttpConfig, UpstreamConfig};
use serde_json::{Value, json};

const PROGRAM: &str = include_str!("../../examples/hello.rs");

#[test]
fn the_guide_shows_the_example_as_it_is() {
    let guide =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/quickstart/library.md"))
            .unwrap();
    let shown = guide.split("```rust,no_run\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(PROGRAM.ends_with(shown), "docs/quickstart/library.md and examples/hello.rs differ");
}

/// The example, which cargo builds with the tests.
fn example() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples/hello")
}

#[tokio::test]
async fn the_program_of_the_guide_serves_a_plan_and_stops_at_ctrl_c() {
    let mut child = Command::new(example()).arg("0").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("serving on ").unwrap().to_owned();
    let script = "return await callTool('greeter:greet', {name: 'Ada'})";
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "codecall:execute", "arguments": {"script": script},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}});
    let answer = reqwest::Client::new()
        .post(&url)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "codecall:execute")
        .json(&call)
        .send()
        .await
        .unwrap();
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer["result"]["structuredContent"]["result"], "Hello, Ada!", "{answer:#}");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn every_configuration_can_be_written_with_the_rest_by_default() {
    let http = HttpConfig { port: 0, ..Default::default() };
    let app = AppOptions { prefix: false, ..Default::default() };
    let code = CodeCallConfig { enabled: false, ..Default::default() };
    let executions = ExecutionsConfig { max_executions: 10, ..Default::default() };
    let upstream = UpstreamConfig { command: Some("server".into()), ..Default::default() };
    assert_eq!((http.port, app.prefix, code.enabled, executions.max_executions), (0, false, false, 10));
    assert!(upstream.problems().is_empty());
}

#[cfg(feature = "guard")]
#[test]
fn every_configuration_of_the_guard_can_be_written_with_the_rest_by_default() {
    use gatewright::{
        AdminConfig, AuditConfig, AuthConfig, GuardConfig,
        auth::config::{ClientConfig, Mode, UserConfig},
    };

    let guard = GuardConfig {
        auth: AuthConfig {
            mode: Mode::Orchestrated,
            clients: vec![ClientConfig { client_id: "app".into(), ..Default::default() }],
            ..Default::default()
        },
        audit: AuditConfig { sync: true, ..Default::default() },
        admin: Some(AdminConfig { port: 0, ..Default::default() }),
        ..Default::default()
    };
    let user = UserConfig { username: "ada".into(), ..Default::default() };
    assert_eq!(
        (&*guard.name, &*guard.auth.clients[0].client_id, &*user.username),
        ("gatewright", "app", "ada")
    );
}

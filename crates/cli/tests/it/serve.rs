//! The binary itself: started, spoken to, stopped.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::gatewright;

/// A running server; killed when dropped.
struct Served {
    child: Child,
    address: SocketAddr,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn demo() -> Served {
    let mut child = Command::new(gatewright())
        .args(["demo", "--port", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.contains("MCP endpoint")).unwrap();
    let url = line.split_whitespace().last().unwrap().to_owned();
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().parse().unwrap();
    Served { child, address }
}

/// One HTTP exchange; status and body.
fn http(address: SocketAddr, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split_whitespace().nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

fn post(address: SocketAddr, method: &str, name: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let name = if name.is_empty() { String::new() } else { format!("mcp-name: {name}\r\n") };
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n\
         {name}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (_, text) = http(address, &request);
    let start = text.find('{').unwrap_or_else(|| panic!("{text}"));
    let end = text.rfind('}').unwrap();
    serde_json::from_str(&text[start..=end]).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_demo_answers_the_four_meta_tools_over_http() {
    let server = demo();
    let listed = post(server.address, "tools/list", "", json!({}));
    let names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|t| t["name"].clone()).collect();
    assert_eq!(
        json!(names),
        json!(["codecall:search", "codecall:describe", "codecall:execute", "codecall:invoke"])
    );
    let call = |tool: &str, input: Value| {
        let answer = post(server.address, "tools/call", tool, json!({"name": tool, "arguments": input}));
        answer["result"]["structuredContent"].clone()
    };
    assert_eq!(call("codecall:search", json!({"query": "list users"}))["tools"][0]["name"], "crm:users_list");
    assert_eq!(
        call("codecall:describe", json!({"toolNames": ["crm:users_get"]}))["tools"][0]["appId"],
        "crm"
    );
    let script = "return (await callTool('crm:users_list', {limit: 1})).items.length";
    let body = call("codecall:execute", json!({"script": script}));
    assert_eq!((&body["status"], &body["result"]), (&json!("ok"), &json!(1)));
    assert_eq!(body["calls"][0]["name"], "crm:users_list");
    assert_eq!(call("codecall:invoke", json!({"tool": "crm:users_list", "input": {}}))["status"], "ok");
}

#[test]
fn health_readiness_and_the_page_answer() {
    let server = demo();
    for path in ["/healthz", "/readyz", "/"] {
        let (status, body) = http(
            server.address,
            &format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", server.address),
        );
        assert_eq!(status, 200, "{path}: {body}");
    }
}

#[test]
fn sigterm_ends_it_within_ten_seconds_while_a_stream_is_open() {
    let mut server = demo();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": true},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    }})
    .to_string();
    let mut stream = TcpStream::connect(server.address).unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    )
    .unwrap();
    let mut first = [0; 1];
    stream.read_exact(&mut first).unwrap();
    let pid = server.child.id().to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    let started = Instant::now();
    let status = server.child.wait().unwrap();
    assert!(status.success(), "{status}");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn stdio_serves_one_client_and_survives_a_line_that_is_not_json() {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(file.path(), "apps:\n  crm: { builtin: crm }\n").unwrap();
    let mut child = Command::new(gatewright())
        .args(["serve", "--stdio", "--config"])
        .arg(file.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    writeln!(
        input,
        "{}",
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
    )
    .unwrap();
    assert_eq!(next()["result"]["serverInfo"]["name"], "gatewright");
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
    writeln!(input, "this is not JSON").unwrap();
    assert_eq!(next()["error"]["code"], -32700);
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).unwrap();
    assert_eq!(next()["result"]["tools"].as_array().unwrap().len(), 4);
    drop(input);
    assert!(child.wait().unwrap().success());
}

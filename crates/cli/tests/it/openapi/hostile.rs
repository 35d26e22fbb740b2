//! Answers of an API that mean harm, which scripts survive.

use gatewright::rmcp::{
    ServiceExt as _, model::CallToolRequestParams, transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::served::Served;

/// Names of the operations, with the outcome of each in a script: the code of an error, or the type of the result.
const CASES: [(&str, &str); 17] = [
    ("array", "object"),
    ("number", "object"),
    ("null", "object"),
    ("html", "string"),
    ("long", "object"),
    ("flood", "UPSTREAM_TOO_LARGE"),
    ("values", "UPSTREAM_BAD_ANSWER"),
    ("deep", "UPSTREAM_BAD_ANSWER"),
    ("slow", "TIMEOUT"),
    ("cut", "UPSTREAM_UNREACHABLE"),
    ("loop", "UPSTREAM_BAD_ANSWER"),
    ("gzip", "UPSTREAM_BAD_ANSWER"),
    ("gone", "string"),
    ("json", "UPSTREAM_BAD_ANSWER"),
    ("utf8", "UPSTREAM_BAD_ANSWER"),
    ("noise", "UPSTREAM_UNREACHABLE"),
    ("error", "HTTP_500"),
];

fn answer(case: &str) -> Vec<u8> {
    let head = |status: &str, kind: &str, more: &str| {
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n{more}\r\n").into_bytes()
    };
    let whole = |kind: &str, body: &[u8]| {
        let head = head("200 OK", kind, &format!("content-length: {}\r\n", body.len()));
        [head.as_slice(), body].concat()
    };
    let json = |body: &str| whole("application/json", body.as_bytes());
    match case {
        "array" => json("[1, 2]"),
        "number" => json("7"),
        "null" => json("null"),
        "html" => whole("text/html", b"<html>not what was asked for</html>"),
        "long" => json(&format!("{{\"text\": \"{}\"}}", "x".repeat(5_000_000))),
        "flood" => [head("200 OK", "application/json", ""), vec![b'['; 11 << 20]].concat(),
        "values" => json(&format!("[{}1]", "1,".repeat(400_000))),
        "deep" => json(&"[".repeat(100_000)),
        "slow" => {
            let start = head("200 OK", "application/json", "content-length: 100\r\n");
            [start.as_slice(), b"{\"a\":"].concat()
        }
        "cut" => head("200 OK", "application/json", "content-length: 100\r\n"),
        "loop" => head("302 Found", "text/plain", "location: /v1/loop\r\ncontent-length: 0\r\n"),
        "gzip" => head("200 OK", "application/json", "content-encoding: gzip\r\ncontent-length: 0\r\n"),
        "gone" => [head("204 No Content", "application/json", "").as_slice(), b"{\"a\": 1}"].concat(),
        "json" => json("{'a': 1}"),
        "utf8" => whole("application/json", b"{\"a\": \"\xff\"}"),
        "noise" => b"NOISE\r\n\r\n".to_vec(),
        "error" => {
            let start = head("500 Broken", "application/json", "");
            [start, format!("{{\"message\": \"{}\"}}", "x".repeat(5_000_000)).into_bytes()].concat()
        }
        other => panic!("{other}"),
    }
}

/// An API at whose paths each answer is one of [`CASES`]. One of them never ends.
async fn api() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut head, mut part) = (String::new(), [0; 4096]);
                while !head.contains("\r\n\r\n") {
                    let count = stream.read(&mut part).await.unwrap_or(0);
                    head.push_str(&String::from_utf8_lossy(&part[..count]));
                    if count == 0 {
                        return;
                    }
                }
                let path = head.split(' ').nth(1).unwrap();
                let case = path.trim_start_matches("/v1/");
                // The gateway may have heard enough.
                let _ = stream.write_all(&answer(case)).await;
                if case == "slow" {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_of_an_api_ends_a_script() {
    let folder = tempfile::tempdir().unwrap();
    let paths: serde_json::Map<String, Value> = CASES
        .iter()
        .map(|(case, _)| {
            let schema =
                json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
            let content =
                json!({"200": {"description": "ok", "content": {"application/json": {"schema": schema}}}});
            (
                format!("/{case}"),
                json!({"get": {"operationId": case, "summary": "Answers", "responses": content}}),
            )
        })
        .collect();
    let document = json!({"openapi": "3.1.0", "info": {"title": "Hostile", "version": "1"}, "paths": paths});
    let path = folder.path().join("hostile.json");
    std::fs::write(&path, document.to_string()).unwrap();
    let app = json!({
        "openapi": path, "baseUrl": api().await, "allowPrivate": true, "timeout": "2s", "maxRetries": 0,
    });
    let served = Served::start(
        &format!("apps: {}\ncodecall: {{ vm: {{ timeoutMs: 120000 }} }}\n", json!({"evil": app})),
        &["--no-watch"],
    );
    let transport = StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", served.address));
    let client = ().serve(transport).await.unwrap();
    let calls: String = CASES
        .iter()
        .map(|(case, _)| format!("await outcome('{case}', () => callTool('evil:{case}', {{}}));\n"))
        .collect();
    let script = format!(
        "const all = {{}};
         async function outcome(name, call) {{
           try {{ all[name] = typeof await call(); }} catch (error) {{ all[name] = error.code; }}
         }}
         {calls}
         return all;"
    );
    let input = json!({"script": script}).as_object().unwrap().clone();
    let params = CallToolRequestParams::new("codecall:execute").with_arguments(input);
    let body = client.peer().call_tool(params).await.unwrap().structured_content.unwrap();
    let expected: Value = CASES.iter().map(|(case, outcome)| (*case, json!(outcome))).collect();
    assert_eq!((&body["status"], &body["result"]), (&json!("ok"), &expected), "{body:#}");
}

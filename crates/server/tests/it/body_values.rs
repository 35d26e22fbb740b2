//! Bodies of many values are refused before anything is built from them, and large tool inputs are not.

use serde_json::{Value, json};

use crate::support::{Rig, answer, message, refused, start};

/// Bytes of the longest body that the default configuration takes.
const LONGEST: usize = 4 * 1024 * 1024;

/// An object as long as a body may be, with some 270,000 members.
fn crowd() -> String {
    let members: Vec<String> = (0..270_000).map(|n| format!("\"k{n}\":{{}}")).collect();
    format!("{{{}}}", members.join(","))
}

fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#)
}

/// Bodies that hold many values in each place that a caller chooses.
fn crowded() -> Vec<(&'static str, String)> {
    let crowd = crowd();
    let empties = format!("[{}[]]", "[],".repeat(1_300_000));
    let initialize = |capabilities: &str| {
        let client = r#""clientInfo":{"name":"c","version":"1"}"#;
        request(
            "initialize",
            &format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},{client}}}"#),
        )
    };
    vec![
        ("extensions", initialize(&format!(r#"{{"extensions":{crowd}}}"#))),
        ("experimental", initialize(&format!(r#"{{"experimental":{crowd}}}"#))),
        ("_meta", request("ping", &format!(r#"{{"_meta":{crowd}}}"#))),
        ("params", request("tools/list", &crowd)),
        ("arrays", request("resources/list", &format!(r#"{{"cursor":{empties}}}"#))),
        ("unknown method", request("made/up", &crowd)),
        ("_meta of a call", request("tools/call", &format!(r#"{{"name":"app:echo","_meta":{crowd}}}"#))),
        ("arguments", request("tools/call", &format!(r#"{{"name":"app:echo","arguments":{crowd}}}"#))),
        (
            "arguments twice",
            request(
                "tools/call",
                &format!(r#"{{"arguments":{{"a":[{}1]}},"arguments":{{}}}}"#, "1,".repeat(20_000)),
            ),
        ),
        ("result", format!(r#"{{"jsonrpc":"2.0","id":1,"result":{crowd}}}"#)),
        (
            "notification",
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{crowd}}}"#),
        ),
        ("batch", format!("[{}]", request("ping", &crowd))),
        ("not an object", crowd.replace(['{', '}'], "").replace(':', ",")),
        ("nothing but commas", ",".repeat(LONGEST - 1)),
    ]
}

/// Processor time of this process so far, in milliseconds.
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // Clock ticks of 10 ms (proc(5): utime and stime).
    fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap() * 10).sum()
}

async fn send(rig: &Rig, body: String) -> (u16, Value) {
    let response = rig.post(body).send().await.unwrap();
    (response.status().as_u16(), answer(response).await)
}

#[tokio::test]
async fn bodies_of_many_values_are_refused_before_anything_is_built_from_them() {
    let rig = start(json!({"sessions": false})).await;
    let mut wrong = Vec::new();
    for (place, body) in crowded() {
        assert!(body.len() < LONGEST, "{place}: {}", body.len());
        let before = cpu_ms();
        let (status, answer) = send(&rig, body).await;
        println!("{place}: {status}, {} ms of processor time", cpu_ms() - before);
        let error = &answer["error"];
        let text = error["message"].as_str().unwrap_or_default();
        if (status, &error["code"]) != (413, &json!(-32600)) || !text.contains("values") {
            wrong.push((place, status, text.chars().take(200).collect::<String>()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn a_stream_keeps_no_long_meta_of_its_request() {
    let rig = start(json!({})).await;
    let listen = |meta: Value| {
        let mut params = json!({"notifications": {"toolsListChanged": true}});
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "example.com/kept": meta,
        });
        let request = rig.post(message(7, "subscriptions/listen", &params));
        request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "subscriptions/listen")
    };
    let open = listen(json!("x".repeat(10_000))).send().await.unwrap();
    assert_eq!(open.status(), 200);
    let (status, code, text) = refused(listen(json!("x".repeat(3_000_000)))).await;
    assert!((status, code) == (413, -32600) && text.contains("`_meta`"), "{status} {code} {text}");
}

#[tokio::test]
async fn no_long_id_or_token_of_a_request_is_kept_or_repeated() {
    let rig = start(json!({"sessions": false})).await;
    let long = format!("\"{}\"", "x".repeat(3_000_000));
    let listen = rig.modern("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let listen = listen.build().unwrap();
    let body = std::str::from_utf8(listen.body().unwrap().as_bytes().unwrap()).unwrap();
    let of_listen = body.replace("\"id\":7", &format!("\"id\":{long}"));
    assert!(of_listen.len() > 3_000_000);
    let with_token =
        request("tools/call", &format!(r#"{{"name":"app:echo","_meta":{{"progressToken":{long}}}}}"#));
    let batch = format!("[{},{with_token}]", request("ping", "{}"));
    for (body, name) in [(of_listen, "`id`"), (with_token, "`progressToken`"), (batch, "`progressToken`")] {
        let mut request = rig.post(body);
        for header in ["mcp-protocol-version", "mcp-method"].into_iter().filter(|_| name == "`id`") {
            request = request.header(header, &listen.headers()[header]);
        }
        let (status, code, text) = refused(request).await;
        assert!((status, code) == (400, -32600) && text.contains(name), "{status} {code} {text:.200}");
    }
}

#[tokio::test]
async fn large_inputs_of_tools_are_passed_on() {
    let rig = start(json!({"sessions": false})).await;
    for (what, input) in [
        ("numbers", json!({"all": (0..50_000).collect::<Vec<_>>()})),
        ("text", json!({"file": "QUJD".repeat(250_000)})),
        ("punctuation", json!({"file": "{[,:\\\"".repeat(300_000)})),
        ("rows", json!({"rows": vec![json!({"id": 1, "name": "n", "tags": ["a", "b"]}); 10_000]})),
    ] {
        let (status, answer) =
            send(&rig, message(7, "tools/call", &json!({"name": "app:echo", "arguments": input}))).await;
        let text = answer["result"]["content"][0]["text"].as_str();
        assert!(status == 200 && text == Some(&input.to_string()), "{what}: {status}");
    }
}

//! Work of the running server on texts that clients, scripts and tools choose: it grows no faster than the text.

use std::fs;

use serde_json::{Value, json};

use crate::{
    runs::{execute, post},
    served::Served,
};

#[path = "../../../../tests/growth/mod.rs"]
#[expect(dead_code, reason = "a server is measured by its process, not by a thread")]
mod work;

/// Lengths that are sent, each twice the one before.
const LENGTHS: [usize; 4] = [1 << 16, 1 << 17, 1 << 18, 1 << 19];

/// Lengths of texts of which nothing is cut: names, messages, queries and lines of the console have limits of up to 8 KiB.
const UNCUT: [usize; 4] = [1 << 10, 1 << 11, 1 << 12, 1 << 13];

/// Nanoseconds of processor time that the threads of a process have used; those of its workers are not counted.
fn spent(pid: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let accounts =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("schedstat")).ok());
    accounts.filter_map(|account| account.split(' ').next()?.parse::<f64>().ok()).sum()
}

/// Each kind of text, and the request that carries it.
fn request(kind: &str, text: &str) -> Value {
    let run = |script: &str| ("codecall:execute", json!({"script": script, "context": {"text": text}}));
    let (tool, input) = match kind {
        "message" => run("throw new Error(codecallContext.text)"),
        "message of several lines" => run("throw new Error(codecallContext.text.split('/').join('\\n/'))"),
        "name for getTool" => run("getTool(codecallContext.text)"),
        "name for callTool" => run("await callTool(codecallContext.text, {})"),
        "name of a meta-tool" => run("await callTool('codecall:' + codecallContext.text, {})"),
        "console" => run("console.log(codecallContext.text); return 1"),
        "keys" => run("return await callTool('crm:users_get', { [codecallContext.text]: 1 })"),
        "a tool's error" => run("await callTool('crm:users_get', { id: codecallContext.text })"),
        "failures of several" => {
            run("await __safe_parallel([() => { throw new Error(codecallContext.text) }])")
        }
        "result" => run("return codecallContext.text"),
        "invoke" => ("codecall:invoke", json!({"tool": "crm:users_get", "input": {"id": text}})),
        "name for invoke" => ("codecall:invoke", json!({"tool": text, "input": {}})),
        "names for describe" => ("codecall:describe", json!({"toolNames": [text]})),
        "search" => ("codecall:search", json!({"query": text})),
        "script" => ("codecall:execute", json!({"script": text})),
        "meta-tool" => (text, json!({})),
        other => panic!("{other}"),
    };
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": input}})
}

const KINDS: [&str; 16] = [
    "message",
    "message of several lines",
    "name for getTool",
    "name for callTool",
    "name of a meta-tool",
    "console",
    "keys",
    "a tool's error",
    "failures of several",
    "result",
    "invoke",
    "name for invoke",
    "names for describe",
    "search",
    "script",
    "meta-tool",
];

/// Requests that name a resource, or complete one. URIs of more than 8 KiB are refused, so that both lengths tell something.
fn uri_request(kind: &str, text: &str) -> Value {
    let text = format!("test://{text}");
    let params = match kind {
        "completion/complete" => json!({"ref": {"type": "ref/resource", "uri": text},
            "argument": {"name": "id", "value": text}}),
        _ => json!({"uri": text}),
    };
    json!({"jsonrpc": "2.0", "id": 1, "method": kind, "params": params})
}

const URI_KINDS: [&str; 4] =
    ["resources/read", "resources/subscribe", "resources/unsubscribe", "completion/complete"];
const URI_LENGTHS: [usize; 4] = [1 << 9, 1 << 10, 1 << 11, 1 << 12];

/// Places of a request outside its body, which have room for less.
const SHORT: [usize; 4] = [1 << 11, 1 << 12, 1 << 13, 1 << 14];
const PLACES: [&str; 13] = [
    "path",
    "query",
    "authorization",
    "mcp-session-id",
    "accept",
    "origin",
    "mcp-name",
    "mcp-method",
    "mcp-protocol-version",
    "cookie",
    "dpop",
    "forwarded",
    "x-forwarded-for",
];

/// A request with `text` at a place outside its body.
async fn ask(client: &reqwest::Client, server: &Served, place: &str, text: &str) {
    let text: String = text.chars().filter(char::is_ascii_graphic).collect();
    let base = format!("http://{}", server.address);
    let request = match place {
        "path" => client.get(format!("{base}/{text}")),
        "query" => client.get(format!("{base}/healthz?{text}")),
        header => {
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"crm:users_list","arguments":{}}}"#;
            let mut request = client.post(format!("{base}/mcp")).header("content-type", "application/json");
            if header != "accept" {
                request = request.header("accept", "application/json, text/event-stream");
            }
            if header == "dpop" {
                request = request.header("authorization", "DPoP made.up.token");
            }
            request.header(header, text).body(body)
        }
    };
    request.send().await.unwrap().bytes().await.unwrap();
}

/// Checks that the work of `server` on `requests`, for which texts of these lengths were repeated, grows no faster than the texts.
async fn assert_in_proportion<T, const N: usize>(
    server: &Served,
    about: &str,
    lengths: [usize; N],
    requests: [T; N],
    send: impl AsyncFn(&T),
) {
    let mut costs = [f64::MAX; N];
    // Other work on the machine may disturb a round.
    for round in 0.. {
        for (cost, request) in costs.iter_mut().zip(&requests) {
            let before = spent(server.child.id());
            send(request).await;
            *cost = cost.min(spent(server.child.id()) - before);
        }
        let grown = work::growth(&costs);
        if grown < work::MOST {
            return;
        }
        assert!(round < 8, "{about}: {costs:.0?} ns for {lengths:?} bytes grow by {grown:.1}");
    }
}

#[tokio::test]
async fn no_address_or_header_makes_the_server_work_more_than_in_proportion() {
    let open = "http: { sessions: false, trustedProxies: [127.0.0.1] }\napps:\n  crm: { builtin: crm }\n";
    let closed = format!("{open}auth: {{ mode: orchestrated }}\n");
    let servers = [Served::start(open, &[]), Served::start(&closed, &[])];
    let client = reqwest::Client::new();
    let all = PLACES.into_iter().flat_map(|place| servers.iter().map(move |server| (place, server)));
    for (place, server) in all {
        for piece in ["a/", ":", "%2F", "'", "=&", "x", "a=b; ", "for=1.1.1.1, ", "1.1.1.1,", "a.", ","] {
            let texts = SHORT.map(|len| work::repeated(piece, len));
            let about = format!("{place} {piece:?}");
            assert_in_proportion(server, &about, SHORT, texts, async |text| {
                ask(&client, server, place, text).await;
            })
            .await;
        }
    }
}

#[tokio::test]
async fn no_uri_of_a_client_makes_the_server_work_more_than_in_proportion() {
    let server = Served::start("http: { sessions: false }\napps:\n  all: { builtin: everything }\n", &[]);
    for kind in URI_KINDS {
        for lengths in [URI_LENGTHS, LENGTHS] {
            for piece in ["a/", "../", "%2F", "%", "*", "{id}", "?", "#", "x", ":", "@", "\u{e9}"] {
                let bodies = lengths.map(|len| uri_request(kind, &work::repeated(piece, len)));
                let about = format!("{kind} {piece:?}");
                assert_in_proportion(&server, &about, lengths, bodies, async |body| {
                    post(&server, &[], body).await;
                })
                .await;
            }
        }
    }
}

#[tokio::test]
async fn no_text_of_a_client_makes_the_server_work_more_than_in_proportion() {
    let server = Served::start(
        "http: { sessions: false }\napps:\n  crm: { builtin: crm }\ncodecall: { vm: { preset: experimental } }\n",
        &[],
    );
    execute(&server, "return 1").await;
    for (number, kind) in KINDS.into_iter().enumerate() {
        // Each kind with another three of the shapes; what they make of text itself is tested with all of them below.
        for shape in 0..3 {
            let piece = work::SHAPES[(3 * number + shape) % work::SHAPES.len()];
            for lengths in [LENGTHS, UNCUT] {
                let bodies = lengths.map(|len| request(kind, &work::repeated(piece, len)));
                let about = format!("{kind} {piece:?}");
                assert_in_proportion(&server, &about, lengths, bodies, async |body| {
                    post(&server, &[], body).await;
                })
                .await;
            }
        }
    }
}

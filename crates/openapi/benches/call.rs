//! CPU time of a call of an operation: the gateway's client against a bare `reqwest` call with the same parsing.
//!
//! `cargo bench -p gatewright-openapi --bench call`. The API is a process of its own, on loopback, so that only the client's CPU time counts:
//! that of all threads of this process (Linux: `/proc/self/task/*/schedstat`). Rounds alternate, and the median of the differences between
//! neighbours is printed. `-- --quick` asks less, to see that it works.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

use std::{
    convert::Infallible,
    fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    time::Duration,
};

use gatewright_core::rmcp::model::JsonObject;
use gatewright_openapi::{
    Called, DocumentOptions, HttpApi, OpenapiConfig, OperationCall, Reporter, Surroundings, read,
};
use http_body_util::Full;
use hyper::{body::Bytes, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime};

/// The argument with which this program serves the API.
const SERVE: &str = "--serve";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // One thread for the calls, so that no two wake each other.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if arguments.iter().any(|argument| argument == SERVE) {
        return runtime.block_on(serve());
    }
    let (calls, rounds) = match arguments.iter().any(|argument| argument == "--quick") {
        true => (100, 3),
        false => (2_000, 15),
    };
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new(program).arg(SERVE).stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    println!("| items | bytes | `reqwest` | gateway | difference |\n|---|---|---|---|---|");
    for items in [1, 30] {
        measure(&runtime, url.trim(), items, calls, rounds);
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn measure(runtime: &Runtime, url: &str, items: usize, calls: u32, rounds: usize) {
    let bytes = answer(items).len();
    let side = Gateway::new(url);
    let bare = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build().unwrap();
    let address = format!("{url}/repos/o/r/issues?state=open&per_page={items}");
    let mut rows = Vec::new();
    // The first round warms up.
    for round in 0..=rounds {
        let of_bare = cpu(|| {
            runtime.block_on(async {
                for _ in 0..calls {
                    let request = bare.get(&address).header("authorization", "Bearer token-of-the-bench");
                    let response = request.header("accept", "application/json").send().await.unwrap();
                    let text = response.bytes().await.unwrap();
                    let value: Value = serde_json::from_slice(&text).unwrap();
                    assert_eq!(value.as_array().unwrap().len(), items);
                }
            });
        });
        let of_gateway = cpu(|| {
            runtime.block_on(async {
                for _ in 0..calls {
                    assert_eq!(side.call(items).await, items);
                }
            });
        });
        if round > 0 {
            rows.push((of_bare / calls, of_gateway / calls));
        }
    }
    let micros = |value: i128| value as f64 / 1_000.0;
    let nanos = |duration: Duration| i128::try_from(duration.as_nanos()).unwrap();
    let bare = median(rows.iter().map(|(bare, _)| nanos(*bare)).collect());
    let gateway = median(rows.iter().map(|(_, gateway)| nanos(*gateway)).collect());
    let more = median(rows.iter().map(|(bare, gateway)| nanos(*gateway) - nanos(*bare)).collect());
    println!(
        "| {items} | {bytes} | {:.1} µs | {:.1} µs | {:.1} µs |",
        micros(bare),
        micros(gateway),
        micros(more)
    );
}

fn median(mut values: Vec<i128>) -> i128 {
    values.sort_unstable();
    values[values.len() / 2]
}

/// CPU time that all threads of this process need for `work`.
fn cpu(work: impl FnOnce()) -> Duration {
    let used = || {
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let nanos = tasks.filter_map(|task| {
            let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    };
    let before = used();
    work();
    used() - before
}

/// An operation of a document, as an app calls it.
struct Gateway {
    api: HttpApi,
    document: gatewright_openapi::Document,
    surroundings: Surroundings,
}

impl Gateway {
    fn new(url: &str) -> Self {
        let parameter = |name: &str, place: &str, kind: &str| json!({"name": name, "in": place, "required": place == "path", "schema": {"type": kind}});
        let document = json!({
            "openapi": "3.1.0", "info": {"title": "Issues", "version": "1"},
            "paths": {"/repos/{owner}/{repo}/issues": {"get": {
                "operationId": "list", "security": [{"token": []}],
                "parameters": [
                    parameter("owner", "path", "string"), parameter("repo", "path", "string"),
                    parameter("state", "query", "string"), parameter("per_page", "query", "integer"),
                ],
                "responses": {"200": {"description": "ok", "content": {"application/json": {"schema": {"type": "array", "items": {"type": "object"}}}}}},
            }}},
            "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        });
        let mut nothing = |url: &str| Err(format!("{url} is not read"));
        let document = read(&document.to_string(), &DocumentOptions::default(), &mut nothing).unwrap();
        let mut config = OpenapiConfig::new("issues.json");
        config.base_url = Some(url.to_owned());
        config.allow_private = true;
        config.auth =
            Some(serde_json::from_value(json!({"type": "bearer", "token": "token-of-the-bench"})).unwrap());
        let operations = document.operations.iter().map(|operation| &**operation);
        let surroundings = Surroundings::new(document.schemes.clone(), None, operations);
        Self { api: HttpApi::new(config).unwrap(), document, surroundings }
    }

    /// Calls the operation, and returns the number of items in the answer.
    async fn call(&self, items: usize) -> usize {
        let Value::Object(arguments) = json!({"owner": "o", "repo": "r", "state": "open", "per_page": items})
        else {
            unreachable!("it is an object")
        };
        let arguments: JsonObject = arguments;
        let call = OperationCall {
            operation: &self.document.operations[0],
            surroundings: &self.surroundings,
            arguments: &arguments,
            user: None,
            paginate: None,
            room: None,
            reporter: Reporter::Nobody,
            trail: None,
        };
        let Called::Done(result) = self.api.call(call).await else { panic!("nobody signs in") };
        assert_eq!(result.is_error, Some(false), "{result:?}");
        result.structured_content.unwrap()["result"].as_array().unwrap().len()
    }
}

fn answer(items: usize) -> Bytes {
    let issue = |number: usize| {
        json!({
            "number": number, "title": format!("Crash when the list is empty ({number})"), "state": "open",
            "user": {"login": "ada", "id": 1, "type": "User", "site_admin": false},
            "labels": [{"id": 1, "name": "bug", "color": "d73a4a", "default": true}], "assignee": null, "comments": 3,
            "created_at": "2026-01-02T03:04:05Z", "body": "It crashes with an empty list. ".repeat(10),
        })
    };
    Value::from((0..items).map(issue).collect::<Vec<_>>()).to_string().into()
}

async fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    let (short, long) = (answer(1), answer(30));
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (short, long) = (short.clone(), long.clone());
        let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
            let is_long = request.uri().query().is_some_and(|query| query.ends_with("per_page=30"));
            assert_eq!(request.headers()["authorization"], "Bearer token-of-the-bench");
            let mut response =
                http::Response::new(Full::new(if is_long { long.clone() } else { short.clone() }));
            let kind = http::HeaderValue::from_static("application/json");
            response.headers_mut().insert("content-type", kind);
            async move { Ok::<_, Infallible>(response) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

//! Traces of the real binary: between a client that names its span, a server behind that hears of its own, and a collector.

mod http_requests;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use gatewright::server::axum::{
    self, Json, Router,
    body::Bytes,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value,
    trace::v1::{Span, span::SpanKind, status::StatusCode as SpanStatus},
};
use prost::Message as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::served::Served;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const ABOVE: &str = "00f067aa0ba902b7";

fn above(flags: &str) -> String {
    format!("00-{TRACE}-{ABOVE}-{flags}")
}

async fn listen(routes: Router) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    url
}

/// An OTLP receiver that answers each time with one status.
struct Collector {
    url: String,
    got: Arc<Mutex<Vec<(HeaderMap, ExportTraceServiceRequest)>>>,
}

impl Collector {
    async fn start(status: u16) -> Self {
        let got = Arc::new(Mutex::new(Vec::new()));
        let kept = got.clone();
        let take = move |headers: HeaderMap, body: Bytes| {
            kept.lock().unwrap().push((headers, ExportTraceServiceRequest::decode(body).unwrap()));
            std::future::ready(StatusCode::from_u16(status).unwrap())
        };
        Self { url: listen(Router::new().route("/v1/traces", post(take))).await, got }
    }

    /// The spans of calls, in the order they came.
    fn calls(&self) -> Vec<Span> {
        self.spans().into_iter().filter(|span| span.name.starts_with("tools/call")).collect()
    }

    /// Everything that came, in its order.
    fn spans(&self) -> Vec<Span> {
        let got = self.got.lock().unwrap();
        let resources = got.iter().flat_map(|(_, request)| request.resource_spans.clone());
        resources.flat_map(|all| all.scope_spans).flat_map(|scope| scope.spans).collect()
    }
}

fn about(span: &Span) -> HashMap<String, String> {
    let text = |value: any_value::Value| match value {
        any_value::Value::StringValue(text) => text,
        any_value::Value::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let all = span.attributes.iter();
    all.map(|one| (one.key.clone(), text(one.value.clone().unwrap().value.unwrap()))).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A server behind that tells what `_meta` it was sent, fails when asked to, and breaks when asked to.
async fn upstream() -> String {
    async fn answer(Json(asked): Json<Value>) -> (StatusCode, Json<Value>) {
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        let params = &asked["params"];
        let result = match (asked["method"].as_str(), params["name"].as_str()) {
            (Some("initialize"), _) => json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
                "serverInfo": {"name": "up", "version": "1"},
            }),
            (Some("tools/list"), _) => json!({"tools": [tool("echo"), tool("fail"), tool("break")]}),
            (Some("resources/list"), _) => json!({"resources": [{"uri": "up://one", "name": "one"}]}),
            (Some("resources/templates/list"), _) => json!({"resourceTemplates": []}),
            (Some("prompts/list"), _) => json!({"prompts": [{"name": "greet"}]}),
            (Some("resources/read"), _) if params["uri"] == "up://one" => {
                json!({"contents": [{"uri": "up://one", "text": params["_meta"].to_string()}]})
            }
            (Some("prompts/get"), _) => {
                let content = json!({"type": "text", "text": params["_meta"].to_string()});
                json!({"messages": [{"role": "user", "content": content}]})
            }
            (Some("tools/call"), Some("echo")) => json!({
                "content": [{"type": "text", "text": "echoed"}], "structuredContent": params["_meta"],
            }),
            (Some("tools/call"), Some("fail")) => {
                json!({"content": [{"type": "text", "text": "no"}], "isError": true})
            }
            _ if asked["id"].is_null() => return (StatusCode::ACCEPTED, Json(Value::Null)),
            _ => {
                let error = json!({"code": -32050, "message": "broken"});
                return (StatusCode::OK, Json(json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})));
            }
        };
        (StatusCode::OK, Json(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})))
    }
    format!("{}/mcp", listen(Router::new().route("/mcp", post(answer))).await)
}

async fn start(collector: &str, more: &str) -> Served {
    let served = Served::start(
        &format!(
            "apps:\n  crm: {{ builtin: crm }}\n  up: {{ url: \"{}\" }}\ntelemetry:\n  otlp: {{ endpoint: \"{collector}\"{more} }}\n",
            upstream().await
        ),
        &[],
    );
    let deadline = Instant::now() + crate::served::LONG;
    while served.readiness().await["apps"]["up"]["tools"] != 3 {
        assert!(Instant::now() < deadline, "the server behind is up");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    served
}

/// A session of the older era.
struct Session {
    http: reqwest::Client,
    url: String,
    id: String,
}

impl Session {
    async fn open(served: &Served) -> Self {
        let (http, url) = (reqwest::Client::new(), format!("http://{}/mcp", served.address));
        let mut session = Self { http, url, id: String::new() };
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
        let answer = session
            .post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}), &[])
            .await;
        session.id = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        session.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), &[]).await;
        session
    }

    async fn post(&self, message: &Value, headers: &[(&str, &str)]) -> reqwest::Response {
        let mut request = self.http.post(&self.url).header("accept", "application/json, text/event-stream");
        if !self.id.is_empty() {
            request = request.header("mcp-session-id", &self.id);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.header("content-type", "application/json").body(message.to_string());
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
        answer
    }

    /// Calls a tool; the answer, result or error.
    async fn call(
        &self,
        id: &str,
        tool: &str,
        arguments: Value,
        meta: Value,
        headers: &[(&str, &str)],
    ) -> Value {
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        self.ask(id, "tools/call", params, headers).await
    }

    /// Sends a request; the answer, result or error.
    async fn ask(&self, id: &str, method: &str, params: Value, headers: &[(&str, &str)]) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let text = self.post(&message, headers).await.text().await.unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut answers = lines.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        answers.find(|answer| answer["id"] == id).unwrap_or_else(|| panic!("{text}"))
    }

    async fn run(&self, script: &str, meta: Value, headers: &[(&str, &str)]) -> Value {
        let answer = self.call("run", "codecall:execute", json!({"script": script}), meta, headers).await;
        answer["result"]["structuredContent"].clone()
    }
}

const SCRIPT: &str = "const first = await callTool('up:echo', {});
    const second = await callTool('up:echo', {});
    await callTool('up:fail', {}, {throwOnError: false});
    await callTool('up:break', {}, {throwOnError: false});
    await callTool('crm:users_list', {limit: 1});
    return [first, second];";

#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_a_span_with_one_below_it_for_each_call_which_the_server_behind_goes_on_from() {
    let collector = Collector::start(200).await;
    let mut served = start(&collector.url, ", headers: { x-api-key: \"let me in\" }").await;
    let session = Session::open(&served).await;
    let meta = json!({"traceparent": above("01"), "tracestate": "vendor=7"});
    let body = session.run(SCRIPT, meta, &[]).await;
    assert_eq!(body["status"], "ok", "{body}");
    // The last spans are sent before the process ends.
    served.terminate();

    let (headers, _) = collector.got.lock().unwrap()[0].clone();
    assert_eq!(headers["x-api-key"], "let me in");
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let spans = collector.calls();
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "tools/call codecall:execute",
            "tools/call up:echo",
            "tools/call up:echo",
            "tools/call up:fail",
            "tools/call up:break",
            "tools/call crm:users_list"
        ]
    );
    let (script, calls) = spans.split_first().unwrap();
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE && span.trace_state == "vendor=7"));
    assert_eq!((hex(&script.parent_span_id).as_str(), script.kind()), (ABOVE, SpanKind::Server));
    assert!(
        calls.iter().all(|span| span.parent_span_id == script.span_id && span.kind() == SpanKind::Client)
    );
    let within = |span: &Span| {
        span.start_time_unix_nano >= script.start_time_unix_nano
            && span.end_time_unix_nano <= script.end_time_unix_nano
    };
    assert!(calls.iter().all(within));

    let of_script = about(script);
    for (key, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "codecall:execute"),
        ("gen_ai.operation.name", "execute_tool"),
        ("jsonrpc.request.id", "run"),
        ("mcp.session.id", session.id.as_str()),
        ("mcp.protocol.version", "2025-06-18"),
        ("network.transport", "tcp"),
        ("network.protocol.name", "http"),
        ("network.protocol.version", "1.1"),
        ("client.address", "127.0.0.1"),
        ("enduser.id", "anonymous"),
    ] {
        assert_eq!(of_script.get(key).map(String::as_str), Some(value), "{key}: {of_script:?}");
    }
    assert!(!of_script.contains_key("error.type") && script.status.is_none());
    assert_eq!(of_script["gatewright.script.size"], SCRIPT.len().to_string());
    let error = |at: usize| {
        let all = about(&calls[at]);
        assert_eq!(calls[at].status.as_ref().unwrap().code(), SpanStatus::Error);
        (all["error.type"].clone(), all.get("rpc.response.status_code").cloned())
    };
    assert_eq!(error(2), ("tool_error".to_owned(), None));
    assert_eq!(error(3), ("-32050".to_owned(), Some("-32050".to_owned())));
    assert_eq!(about(&calls[0])["network.transport"], "tcp");
    assert!(!about(&calls[4]).contains_key("network.transport"), "it is in the process");

    for (told, span) in body["result"].as_array().unwrap().iter().zip(calls) {
        assert_eq!(told["traceparent"], format!("00-{TRACE}-{}-01", hex(&span.span_id)));
        assert_eq!(told["tracestate"], "vendor=7");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_of_the_http_request_goes_on_too_and_is_linked_when_the_message_names_another() {
    let collector = Collector::start(200).await;
    let mut served = start(&collector.url, "").await;
    let session = Session::open(&served).await;
    let of_http = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01";
    let headers = [("traceparent", of_http), ("tracestate", "h=1")];
    let one = session.run("return await callTool('up:echo', {});", json!({}), &headers).await;
    session.run("return 2;", json!({"traceparent": above("01")}), &headers).await;
    session.run("return 3;", json!({"traceparent": "nonsense", "tracestate": "x=1"}), &[]).await;
    let unknown = session.call("4", "up:echoo", json!({}), json!({}), &[]).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    served.terminate();
    let spans = collector.calls();
    assert_eq!(spans.len(), 5, "{spans:?}");
    assert!(
        one["result"]["traceparent"].as_str().unwrap().starts_with("00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-")
    );
    assert_eq!(one["result"]["tracestate"], "h=1");
    assert_eq!(hex(&spans[0].parent_span_id), "bbbbbbbbbbbbbbbb");
    assert!(spans[0].links.is_empty());
    assert_eq!((hex(&spans[2].trace_id).as_str(), hex(&spans[2].parent_span_id).as_str()), (TRACE, ABOVE));
    assert_eq!(hex(&spans[2].links[0].span_id), "bbbbbbbbbbbbbbbb");
    assert!(spans[3].parent_span_id.is_empty() && spans[3].trace_state.is_empty(), "a trace of its own");
    let missed = about(&spans[4]);
    assert_eq!((spans[4].name.as_str(), missed["error.type"].as_str()), ("tools/call", "-32602"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_recorded_says_so_to_the_server_behind_and_is_not_sent() {
    let collector = Collector::start(200).await;
    let mut served = start(&collector.url, ", sampleRatio: 0").await;
    let session = Session::open(&served).await;
    let echo = "return await callTool('up:echo', {});";
    let told = async |meta: Value| {
        let body = session.run(echo, meta, &[]).await;
        body["result"]["traceparent"].as_str().unwrap().to_owned()
    };
    assert!(told(json!({})).await.ends_with("-00"));
    assert!(told(json!({"traceparent": above("00")})).await.ends_with("-00"));
    // The client records it: so it is recorded here, whatever the share of those that begin here.
    assert!(told(json!({"traceparent": above("01")})).await.ends_with("-01"));
    served.terminate();
    let spans = collector.calls();
    assert_eq!(spans.len(), 2);
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_a_span_which_the_server_behind_goes_on_from() {
    let collector = Collector::start(200).await;
    let mut served = start(&collector.url, "").await;
    let session = Session::open(&served).await;
    let listed = session.ask("1", "prompts/list", json!({}), &[]).await;
    let prompt =
        listed["result"]["prompts"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str());
    let prompt = prompt.filter(|name| name.contains("greet")).collect::<String>();
    let meta = json!({"traceparent": above("01"), "tracestate": "vendor=7"});
    let read = session.ask("2", "resources/read", json!({"uri": "up://one", "_meta": meta}), &[]).await;
    let got = session.ask("3", "prompts/get", json!({"name": prompt}), &[]).await;
    let missing = session.ask("4", "resources/read", json!({"uri": "up://none"}), &[]).await;
    assert!(missing["error"]["code"].is_number(), "{missing}");
    session.ask("5", "made/up", json!({}), &[]).await;
    session.ask("6", "ping", json!({}), &[]).await;
    served.terminate();

    let spans = collector.spans();
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    let get = format!("prompts/get {prompt}");
    assert_eq!(
        names,
        ["initialize", "prompts/list", "resources/read", &get, "resources/read", "_OTHER", "ping"]
    );
    assert!(spans.iter().all(|span| span.kind() == SpanKind::Server));
    let of_read = about(&spans[2]);
    assert_eq!(
        (of_read["mcp.resource.uri"].as_str(), of_read["jsonrpc.request.id"].as_str()),
        ("up://one", "2")
    );
    assert_eq!(of_read["mcp.session.id"], session.id);
    assert_eq!((hex(&spans[2].trace_id).as_str(), hex(&spans[2].parent_span_id).as_str()), (TRACE, ABOVE));
    assert_eq!(about(&spans[3])["gen_ai.prompt.name"], prompt);
    for failed in [4, 5] {
        assert_eq!(spans[failed].status.as_ref().unwrap().code(), SpanStatus::Error);
        assert!(about(&spans[failed]).contains_key("rpc.response.status_code"));
    }

    let told = |text: &Value| serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap();
    let of_read = told(&read["result"]["contents"][0]["text"]);
    assert_eq!(of_read["traceparent"], format!("00-{TRACE}-{}-01", hex(&spans[2].span_id)));
    assert_eq!(of_read["tracestate"], "vendor=7");
    let of_get = told(&got["result"]["messages"][0]["content"]["text"]);
    let place = format!("00-{}-{}-01", hex(&spans[3].trace_id), hex(&spans[3].span_id));
    assert_eq!(of_get["traceparent"], place);
}

/// Asks 300 times; the longest answer, and what the log says of traces.
async fn under(collector: &str) -> (Duration, Vec<String>, Duration) {
    let mut served = start(collector, "").await;
    let session = Session::open(&served).await;
    let mut longest = Duration::ZERO;
    for _ in 0..300 {
        let began = Instant::now();
        let answer = session
            .call("1", "codecall:invoke", json!({"tool": "crm:users_list", "input": {}}), json!({}), &[])
            .await;
        assert_ne!(answer["result"]["isError"], true, "{answer}");
        longest = longest.max(began.elapsed());
    }
    let ending = Instant::now();
    let log = served.terminate();
    let ended = ending.elapsed();
    (longest, log.into_iter().filter(|line| line.contains("traces")).collect(), ended)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_refuses_is_down_or_hangs_costs_no_request_and_few_lines() {
    let refusing = Collector::start(500).await;
    let closed = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let down = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let hanging = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let silent = format!("http://{}", hanging.local_addr().unwrap());
    for (what, url) in [("refuses", &refusing.url), ("is down", &down), ("hangs", &silent)] {
        let (longest, lines, ended) = under(url).await;
        assert!(longest < Duration::from_secs(5), "{what}: {longest:?}");
        assert!((1..=3).contains(&lines.len()), "{what}: {lines:?}");
        assert!(ended < Duration::from_secs(20), "{what}: {ended:?}");
    }
}

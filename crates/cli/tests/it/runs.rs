//! Runs of the real binary as strangers try them: clients that leave, and scripts that want the host's memory.

use std::{fs, sync::Arc, time::Duration};

use gatewright::{
    rmcp::{
        ErrorData,
        model::{CallToolResult, ContentBlock},
        transport::streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
    server::axum,
};
use gatewright_testing::ToolServer;
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify, time::timeout};

use crate::served::{LONG, Served};

/// Sends a message to the endpoint of MCP.
pub async fn post(server: &Served, headers: &[(&str, &str)], body: &Value) -> Response {
    let mut request = Client::new().post(format!("http://{}/mcp", server.address));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(body.to_string())
        .send()
        .await
        .unwrap()
}

/// The JSON-RPC message in an answer, or in the events of one.
async fn message(answer: Response) -> Value {
    let text = answer.text().await.unwrap();
    let data = text.lines().rev().find_map(|line| line.strip_prefix("data: ").filter(|data| data.len() > 2));
    serde_json::from_str(data.unwrap_or(&text)).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn call(script: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": "codecall:execute", "arguments": {"script": script}}})
}

/// Runs a script by a request without a session, and gives the reply's length and body.
pub async fn execute(server: &Served, script: &str) -> (usize, Value) {
    let message = message(post(server, &[], &call(script)).await).await;
    (message.to_string().len(), message["result"]["structuredContent"].clone())
}

/// A tool that waits until it is cancelled.
#[derive(Clone, Default)]
struct Waiting {
    started: Arc<Notify>,
    cancelled: Arc<Notify>,
}

impl Waiting {
    /// Serves it over HTTP; gives the address.
    async fn serve(&self) -> String {
        let (own, tools) = (self.clone(), json!([{"name": "wait", "inputSchema": {"type": "object"}}]));
        served_over_http(ToolServer::new(tools, move |_, context| {
            let own = own.clone();
            async move {
                own.started.notify_one();
                context.ct.cancelled().await;
                own.cancelled.notify_one();
                Err(ErrorData::internal_error("cancelled", None))
            }
        }))
        .await
    }
}

/// Serves `server` over HTTP; gives the address.
async fn served_over_http(server: ToolServer) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let router = axum::Router::new().route_service("/mcp", service);
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_run_and_the_calls_of_it() {
    let waiting = Waiting::default();
    let url = waiting.serve().await;
    for sessions in [false, true] {
        let server = Served::start(
            &format!(
                "http: {{ sessions: {sessions} }}\napps:\n  far: {{ url: \"{url}\" }}\n\
                 codecall:\n  vm: {{ timeoutMs: 600000 }}\n  worker: {{ workers: 1, maxWorkers: 1, queueTimeout: 60s }}\n"
            ),
            &[],
        );
        // Its tool is there once the app has connected.
        while server.readiness().await["status"] != "ready" {
            tokio::task::yield_now().await;
        }
        let mut headers = Vec::new();
        let session;
        if sessions {
            let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
            let answer = post(&server, &[], &hello).await;
            session = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
            headers.push(("mcp-session-id", session.as_str()));
            let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            post(&server, &headers, &ready).await;
        }
        let wait = call("await callTool('far:wait', {})");
        let client = async {
            let answer = post(&server, &headers, &wait).await;
            message(answer).await
        };
        tokio::select! {
            answer = client => panic!("it was answered: {answer}"),
            () = waiting.started.notified() => {}
        }
        // The client is gone with its connection.
        timeout(LONG, waiting.cancelled.notified()).await.expect("the call was cancelled");
        let next = message(post(&server, &headers, &call("return 1")).await).await;
        assert_eq!(next["result"]["structuredContent"]["result"], 1, "{next}");
    }
}

/// The most memory a process has had, in bytes.
pub fn peak(server: &Served) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
}

/// Scripts that make the host keep names, inputs, lines, values, keys and messages.
const GREEDY: [&str; 12] = [
    "for (let i = 0; i < 100; i++) { try { await callTool('x'.repeat(1000000) + i, {}) } catch { } } return 1",
    "for (let i = 0; i < 90; i++) { try { getTool('x'.repeat(1000000) + i) } catch { } } return 1",
    "for (let i = 0; i < 60; i++) callTool('crm:users_list', { q: 'x'.repeat(1000000) + i }).catch(() => 0); await callTool('crm:users_list', {})",
    "for (let i = 0; i < 60; i++) callTool('crm:users_list', { ['k'.repeat(1000000) + i]: 1 }).catch(() => 0); await callTool('crm:users_list', {})",
    "const list = []; for (let i = 0; i < 90000; i++) list.push([]); for (let i = 0; i < 60; i++) callTool('crm:users_list', { list }).catch(() => 0); await callTool('crm:users_list', {})",
    "const list = []; for (let i = 0; i < 90000; i++) list.push([]); return list",
    "return 'x'.repeat(1000000)",
    "return '\\\\\"'.repeat(200000)",
    "for (let i = 0; i < 2000; i++) console.log('x'.repeat(250))",
    "throw new Error('+/'.repeat(400000))",
    "await callTool('crm:users_get', { id: 'x'.repeat(5000000) })",
    "await callTool('codecall:' + 'x'.repeat(5000000), {})",
];

#[tokio::test]
async fn greedy_scripts_of_several_callers_leave_the_host_its_memory_and_get_short_replies() {
    const CALLERS: u64 = 6;
    const MIB: u64 = 1024 * 1024;
    let server = Served::start("http: { sessions: false }\napps:\n  crm: { builtin: crm }\n", &[]);
    execute(&server, "return 1").await;
    let before = peak(&server);
    for script in GREEDY {
        let callers = (0..CALLERS).map(|_| execute(&server, script));
        for (length, body) in futures::future::join_all(callers).await {
            // The reply's JSON twice, once as text with its quotes escaped.
            assert!(length < 3 * MIB as usize + 4096, "{length} bytes: {script}");
            assert!(body["status"].is_string(), "{body}: {script}");
        }
    }
    let grown = peak(&server).saturating_sub(before);
    assert!(grown < CALLERS * HELD * MIB, "{} MiB more", grown / MIB);
    let (_, body) =
        execute(&server, "return (await callTool('crm:users_list', { limit: 1 })) !== null").await;
    assert_eq!(body["result"], true, "{body}");
}

/// Requests whose long texts are cleaned or repeated when they fail: each once kept a thread of the server busy for long.
fn stalling() -> Vec<(&'static str, Value)> {
    let long = "'+/'.repeat(400000)";
    let run = |script: String| call(&script);
    let input = json!({"tool": "crm:users_get", "input": {"id": "+/".repeat(400_000)}});
    vec![
        ("message", run(format!("throw new Error({long})"))),
        ("trace", run("throw new Error('    at f (x:1:2)\\n'.repeat(60000))".to_owned())),
        ("getTool", run(format!("return await getTool({long})"))),
        ("meta-tool", run(format!("await callTool('codecall:' + {long}, {{}})"))),
        ("tool", run(format!("await callTool({long}, {{}})"))),
        ("echo in a script", run(format!("await callTool('crm:users_get', {{ id: {long} }})"))),
        (
            "echo of codecall:invoke",
            json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
                "params": {"name": "codecall:invoke", "arguments": input}}),
        ),
    ]
}

#[tokio::test]
async fn whoever_asks_is_answered_while_failures_with_long_texts_are_cleaned() {
    // More than there are threads that serve requests.
    let callers = 2 * std::thread::available_parallelism().map_or(4, usize::from).max(2);
    let server = Served::start(
        "http: { sessions: false }\napps:\n  crm: { builtin: crm }\ncodecall: { worker: { queueTimeout: 60s } }\n",
        &[],
    );
    execute(&server, "return 1").await;
    let client = Client::new();
    let health = format!("http://{}/healthz", server.address);
    for (name, request) in stalling() {
        let mut answered = 0;
        let mut rounds = 0;
        // Runs that end before the first poll is answered say nothing.
        while answered == 0 {
            rounds += 1;
            assert!(rounds < 10, "{name}: nobody was answered before the runs ended");
            let runs = (0..callers).map(|_| async { message(post(&server, &[], &request).await).await });
            let mut runs = std::pin::pin!(futures::future::join_all(runs));
            let replies = loop {
                let poll = timeout(Duration::from_secs(10), client.get(&health).send());
                tokio::select! {
                    replies = &mut runs => break replies,
                    poll = poll => {
                        let poll = poll.unwrap_or_else(|_| panic!("{name}: a poll waits for 10 s"));
                        assert_eq!(poll.unwrap().status(), 200);
                        answered += 1;
                    }
                }
            };
            for reply in replies {
                let body = &reply["result"]["structuredContent"];
                assert!(body["status"].is_string(), "{name}: {reply}");
                assert!(reply.to_string().len() < 64 * 1024, "{name}: a short reply, please: {reply}");
            }
        }
    }
}

#[tokio::test]
async fn one_answer_of_many_small_values_leaves_the_host_its_memory() {
    const MIB: u64 = 1024 * 1024;
    let list = |item: &str, count: usize| format!(r#"{{"rows":[{}]}}"#, vec![item; count].join(","));
    let shapes = [
        list("0", 250_000),
        list(r#"{"a":1}"#, 125_000),
        list("[0]", 125_000),
        list(r#"{"id":1,"name":"ann","ok":true}"#, 60_000),
    ];
    let names =
        (0..2 * shapes.len()).map(|n| json!({"name": format!("t{n}"), "inputSchema": {"type": "object"}}));
    let tools = ToolServer::new(names.collect(), move |call, _| {
        let at: usize = call.name[1..].parse().unwrap();
        let json = shapes[at / 2].clone();
        async move {
            Ok(match at % 2 {
                0 => CallToolResult::structured(serde_json::from_str(&json).unwrap()),
                _ => CallToolResult::success(vec![ContentBlock::text(json)]),
            })
        }
    });
    let url = served_over_http(tools).await;
    for tool in 0..8 {
        let server = Served::start(
            &format!(
                "http: {{ sessions: false }}\ncodecall: {{ vm: {{ timeoutMs: 20000 }} }}\napps:\n  a: {{ url: '{url}' }}\n"
            ),
            &[],
        );
        execute(&server, "return 1").await;
        let before = peak(&server);
        let script = format!(
            "try {{ return (await callTool('a:t{tool}', {{}})).rows.length }} catch (e) {{ return e.message }}"
        );
        let (_, body) = execute(&server, &script).await;
        let grown = peak(&server).saturating_sub(before);
        println!("t{tool}: {} MiB more: {body}", grown / MIB);
        assert!(grown < HELD * MIB, "t{tool}: {} MiB more: {body}", grown / MIB);
        // What is not refused arrives whole.
        let is_refused = body["result"].as_str().is_some_and(|why| why.contains("codecall.vm.hostMemoryMib"));
        assert!(is_refused || body["result"].is_u64() || body["status"] != "ok", "t{tool}: {body}");
    }
}

/// Memory that the host may need for one run of the preset `secure`, in MiB: twice `codecall.vm.hostMemoryMib`, because what is
/// passed on exists twice for a moment.
pub const HELD: u64 = 64;

//! Cost of the gateway: CPU per request and latency, against a bare `rmcp` server with the same handler.
//!
//! `cargo bench -p gatewright-cli --bench gateway` starts both servers as processes of their own, sends the same requests
//! to both in turns over kept-alive connections, and prints a table. CPU time is the servers' own, read from
//! `/proc/PID/schedstat`, so the client's work and other load on the machine do not count. Servers run on the first core and the client on
//! the second (`taskset`): where they may share one, waking the client costs a server 10 µs less, and which of them shares is chance.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, ExitCode, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use gatewright::{
    Builder, CodeCallConfig, HttpConfig, LocalApp,
    rmcp::transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use gatewright_demo::{App as DemoApp, Dataset};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Both servers allocate as the binary does (docs/adr/0007).
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("worker") => return gatewright::worker_main(),
        Some("serve-bare") => runtime(1).block_on(serve_bare()),
        Some("serve-gateway") => runtime(1).block_on(serve_gateway()),
        _ => runtime(2).block_on(measure()),
    }
    ExitCode::SUCCESS
}

fn runtime(threads: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap()
}

/// The floor: `rmcp` alone.
async fn serve_bare() {
    let handler = DemoApp::crm(Dataset::seeded());
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        let service = hyper_util::service::TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let io = hyper_util::rt::TokioIo::new(socket);
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
        });
    }
}

/// The same handler behind the gateway, in code mode and listed directly too.
async fn serve_gateway() {
    let config: CodeCallConfig =
        serde_json::from_value(json!({"mode": "metadata_driven", "worker": {"workers": 1}})).unwrap();
    let dataset = Dataset::seeded();
    let running = Builder::new("bench", "1.0.0")
        .app("crm", Arc::new(LocalApp::start(DemoApp::crm(dataset.clone())).await.unwrap()))
        .app("many", Arc::new(LocalApp::start(Many).await.unwrap()))
        .code_mode(config)
        .build()
        .unwrap();
    let http = HttpConfig { port: 0, ..HttpConfig::default() };
    let bound = running.http(http).bind().await.unwrap();
    println!("{}", bound.local_addr());
    bound.serve(Default::default()).await;
}

/// Enough tools that the index holds about 200.
#[derive(Clone)]
struct Many;

impl gatewright::rmcp::ServerHandler for Many {
    fn get_info(&self) -> gatewright::rmcp::model::ServerConfig {
        use gatewright::rmcp::model::{ServerCapabilities, ServerConfig};
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<gatewright::rmcp::model::PaginatedRequestParams>,
        _: gatewright::rmcp::service::RequestContext<gatewright::rmcp::RoleServer>,
    ) -> Result<gatewright::rmcp::model::ListToolsResult, gatewright::rmcp::ErrorData> {
        const THINGS: [&str; 18] = [
            "invoice", "order", "shipment", "ticket", "user", "account", "report", "budget", "contract",
            "lead", "task", "meeting", "document", "campaign", "device", "server", "alert", "branch",
        ];
        const VERBS: [&str; 10] =
            ["create", "list", "get", "update", "delete", "search", "archive", "export", "share", "count"];
        let schema = json!({"type": "object", "properties": {"id": {"type": "string", "description": "Which one"},
            "limit": {"type": "integer", "description": "Most of them"}}});
        let schema = Arc::new(schema.as_object().unwrap().clone());
        let tools = THINGS.iter().flat_map(|thing| VERBS.iter().map(move |verb| (verb, thing)));
        let tools = tools.map(|(verb, thing)| {
            let description = format!("{verb} a {thing} of the workspace, with its owner and its history");
            gatewright::rmcp::model::Tool::new(format!("{thing}_{verb}"), description, schema.clone())
        });
        Ok(gatewright::rmcp::model::ListToolsResult::with_all_items(tools.collect()))
    }
}

struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(mode: &str) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(program).arg(mode).stdout(Stdio::piped());
        let mut child = command.spawn().expect("taskset starts it");
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }

    /// CPU time of all threads of the server so far.
    fn cpu(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let nanos = tasks.filter_map(|task| {
            let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    fn resident_mib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
    }
}

/// One kind of request.
struct Case {
    name: &'static str,
    bare: bool,
    tool: &'static str,
    arguments: Value,
    requests: usize,
}

fn cases() -> Vec<Case> {
    let case = |name, bare, tool, arguments, requests| Case { name, bare, tool, arguments, requests };
    vec![
        case("tools/call, bare rmcp", true, "users_list", json!({"limit": 3}), 4_000),
        case("tools/call", false, "crm:users_list", json!({"limit": 3}), 4_000),
        case(
            "codecall:invoke",
            false,
            "codecall:invoke",
            json!({"tool": "crm:users_list", "input": {"limit": 3}}),
            4_000,
        ),
        case(
            "codecall:search, 200 tools",
            false,
            "codecall:search",
            json!({"query": "find the users of an account"}),
            4_000,
        ),
        case(
            "codecall:execute, one call",
            false,
            "codecall:execute",
            json!({"script": "return await callTool('crm:users_list', {limit: 3})"}),
            2_000,
        ),
    ]
}

async fn measure() {
    let own = std::process::id().to_string();
    let moved = Command::new("taskset").args(["-a", "-c", "-p", "1", &own]).stdout(Stdio::null()).status();
    assert!(moved.expect("taskset is there").success(), "two cores are needed");
    let servers = [Server::start("serve-bare"), Server::start("serve-gateway")];
    let client = reqwest::Client::builder().tcp_nodelay(true).build().unwrap();
    let cases = cases();
    const ROUNDS: usize = 5;
    let mut cpu = vec![Vec::new(); cases.len()];
    let mut times = vec![Vec::new(); cases.len()];
    for round in 0..=ROUNDS {
        for (at, case) in cases.iter().enumerate() {
            let server = &servers[usize::from(!case.bare)];
            let requests = case.requests / if round == 0 { 10 } else { 1 };
            let before = server.cpu();
            let taken = send(&client, server, case, requests).await;
            let spent = (server.cpu() - before).as_secs_f64() * 1e6 / requests as f64;
            // The first round warms both up.
            if round > 0 {
                cpu[at].push(spent);
                times[at].extend(taken);
            }
        }
    }
    println!("| request, one connection | CPU of the server, µs | against bare | p50, µs | p99, µs |");
    println!("|---|---|---|---|---|");
    let floor = median(&mut cpu[0]);
    for (at, case) in cases.iter().enumerate() {
        let spent = median(&mut cpu[at]);
        times[at].sort_by(f64::total_cmp);
        let quantile = |q: f64| times[at][((times[at].len() - 1) as f64 * q) as usize];
        println!(
            "| {} | {spent:.0} | {:.2}x | {:.0} | {:.0} |",
            case.name,
            spent / floor,
            quantile(0.5),
            quantile(0.99)
        );
    }
    println!(
        "\nCPU of `codecall:execute` leaves out the worker's own process. Resident: bare {:.1} MiB, gateway {:.1} MiB.",
        servers[0].resident_mib(),
        servers[1].resident_mib()
    );
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Sends one request after the other; microseconds each.
async fn send(client: &reqwest::Client, server: &Server, case: &Case, requests: usize) -> Vec<f64> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": case.tool,
        "arguments": case.arguments,
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    }})
    .to_string();
    let url = format!("http://{}/{}", server.address, "mcp");
    let mut times = Vec::with_capacity(requests);
    for _ in 0..requests {
        let started = Instant::now();
        let answer = client
            .post(&url)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", case.tool)
            .body(body.clone())
            .send()
            .await
            .unwrap();
        let text = answer.text().await.unwrap();
        times.push(started.elapsed().as_secs_f64() * 1e6);
        assert!(text.contains("\"result\"") && !text.contains("\"isError\":true"), "{text}");
    }
    times
}

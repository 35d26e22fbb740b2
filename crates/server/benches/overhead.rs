//! CPU time per `tools/call`: this server against a bare `rmcp` service, with the same handler in the same process model.
//!
//! `cargo bench -p gatewright-server --bench overhead`. Each server runs in a process of its own, so that only its CPU time
//! is counted (Linux: `/proc/<pid>/stat`). Rounds alternate, and the median of each side is compared.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use gatewright_core::{AppOptions, Gateway, GatewayConfig, Invoker, LocalApp, Registry, ToolNames};
use gatewright_server::{HttpConfig, Server};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 7;
const CONNECTIONS: usize = 4;
const CALLS: usize = 1500;

#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        (name == "app:echo").then(tool)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![tool()]))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = json!(params.arguments).to_string();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

fn tool() -> Tool {
    let schema =
        json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}});
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new("echo", "Says it again.", Arc::new(schema))
}

async fn ours() {
    let registry = Registry::new(ToolNames::Colon);
    let app = LocalApp::start(Echo).await.expect("the app starts");
    registry.add("app", Arc::new(app), AppOptions::default());
    let gateway =
        Gateway::new(GatewayConfig::new("bench", "1"), Arc::new(Invoker::new(registry)), Vec::new());
    let config = HttpConfig { port: 0, ..HttpConfig::default() };
    let bound = Server::builder(Arc::new(gateway), config).bind().await.expect("a free port");
    println!("{}", bound.local_addr());
    bound.serve(CancellationToken::new()).await;
}

async fn bare() {
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let service = StreamableHttpService::new(|| Ok(Echo), Arc::new(LocalSessionManager::default()), config);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    println!("{}", listener.local_addr().expect("an address"));
    loop {
        let (socket, _) = listener.accept().await.expect("a connection");
        socket.set_nodelay(true).expect("a socket");
        let service = hyper_util::service::TowerToHyperService::new(service.clone());
        tokio::spawn(
            hyper::server::conn::http1::Builder::new()
                .serve_connection(hyper_util::rt::TokioIo::new(socket), service),
        );
    }
}

struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    fn start(side: &str) -> Self {
        let program = std::env::current_exe().expect("the path of this program");
        let mut child =
            Command::new(program).arg(side).stdout(Stdio::piped()).spawn().expect("a child process");
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("an address");
        Self { child, address: line.trim().parse().expect("an address") }
    }

    /// CPU time so far, in clock ticks of 10 ms.
    fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("Linux");
        let after_name = stat.rsplit_once(')').expect("a stat line").1;
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        fields[11].parse::<u64>().expect("utime") + fields[12].parse::<u64>().expect("stime")
    }

    /// Microseconds of CPU time per call, over one round.
    fn round(&self, request: &Arc<str>) -> f64 {
        let before = self.ticks();
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let (address, request) = (self.address, request.clone());
                std::thread::spawn(move || client(address, &request))
            })
            .collect();
        for client in clients {
            client.join().expect("a client that is answered");
        }
        (self.ticks() - before) as f64 * 10_000.0 / (CONNECTIONS * CALLS) as f64
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn client(address: SocketAddr, request: &str) {
    let mut socket = TcpStream::connect(address).expect("a connection");
    socket.set_nodelay(true).expect("a socket");
    let mut reader = BufReader::new(socket.try_clone().expect("a socket"));
    for _ in 0..CALLS {
        socket.write_all(request.as_bytes()).expect("a server that reads");
        let (mut length, mut line) = (None, String::new());
        reader.read_line(&mut line).expect("a status line");
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        loop {
            line.clear();
            reader.read_line(&mut line).expect("a header");
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse::<usize>().ok();
            }
        }
        let mut body = vec![0; length.expect("an answer of known length")];
        reader.read_exact(&mut body).expect("a body");
        assert!(std::str::from_utf8(&body).is_ok_and(|body| body.contains("Zagreb")), "an echo");
    }
}

fn request() -> Arc<str> {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "app:echo",
            "arguments": {"city": "Zagreb", "days": 3},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    })
    .to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: \
         app:echo\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some(side @ ("ours" | "bare")) => {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(async { if side == "ours" { ours().await } else { bare().await } });
        }
        _ => {
            let (bare, ours, request) = (Process::start("bare"), Process::start("ours"), request());
            let (mut of_bare, mut of_ours) = (Vec::new(), Vec::new());
            bare.round(&request);
            ours.round(&request);
            for _ in 0..ROUNDS {
                of_bare.push(bare.round(&request));
                of_ours.push(ours.round(&request));
            }
            let (bare, ours) = (median(of_bare), median(of_ours));
            println!("bare rmcp: {bare:.1} us of CPU per call");
            println!("ours:      {ours:.1} us of CPU per call, {:.2} times", ours / bare);
        }
    }
}

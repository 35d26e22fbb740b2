//! Cost of authentication per call: `gatewright serve` with and without `auth`, with the same `tools/call` to both in turns.
//!
//! `cargo bench -p gatewright-cli --bench login` starts three servers (no authentication, tokens in memory, tokens in a Redis of its
//! own), and prints the processor time of each server per call, latencies and resident memory. A client uses one token for all its
//! calls, as clients do; the server asks its store about it again every five seconds, which is part of the figures.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

const ROUNDS: usize = 7;
const CALLS: usize = 4_000;

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Server {
    name: &'static str,
    child: Ended,
    url: String,
    token: Option<String>,
    cpu_us: Vec<f64>,
    times_us: Vec<f64>,
    _folder: tempfile::TempDir,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn redis() -> (Ended, u16) {
    let port = free_port();
    let mut child = Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("Ready to accept connections")), "redis-server did not start");
    std::thread::spawn(move || lines.for_each(drop));
    (Ended(child), port)
}

fn with_auth(storage: Value) -> Value {
    json!({
        "mode": "orchestrated",
        "tokenStorage": storage,
        "scopes": {"crm:read": "Read the CRM"},
        "clients": [{"clientId": "bench", "clientSecret": "0123456789-0123456789-0123456789-abc", "grantTypes": ["client_credentials"]}],
    })
}

impl Server {
    async fn start(client: &reqwest::Client, name: &'static str, auth: Option<Value>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gatewright.json");
        let mut config = json!({
            "http": {"port": 0},
            "apps": {"crm": {"builtin": "crm"}},
            "codecall": {"mode": "metadata_driven", "worker": {"workers": 1}},
        });
        let logged_in = auth.is_some();
        if let Some(auth) = auth {
            config["auth"] = auth;
        }
        std::fs::write(&file, config.to_string()).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_gatewright"))
            .args(["serve", "--no-watch", "--config"])
            .arg(&file)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("serving MCP on http://")).unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
        let token = if logged_in { Some(token(client, url.trim_end_matches("/mcp")).await) } else { None };
        let (cpu_us, times_us) = Default::default();
        Self { name, child: Ended(child), url, token, cpu_us, times_us, _folder: folder }
    }

    /// CPU time of all threads of the server so far.
    fn cpu(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.0.id())).unwrap();
        let nanos = tasks.filter_map(|task| {
            let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }

    fn resident_mib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.0.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
    }

    /// Calls one tool, one call after the other; microseconds each.
    async fn calls(&self, client: &reqwest::Client, calls: usize) -> Vec<f64> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "crm:users_list",
            "arguments": {"limit": 3},
            "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
        }})
        .to_string();
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let mut request = client
                .post(&self.url)
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", "crm:users_list")
                .body(body.clone());
            if let Some(token) = &self.token {
                request = request.bearer_auth(token);
            }
            let started = Instant::now();
            let text = request.send().await.unwrap().text().await.unwrap();
            times.push(started.elapsed().as_secs_f64() * 1e6);
            assert!(text.contains("\"result\"") && !text.contains("\"isError\":true"), "{text}");
        }
        times
    }
}

async fn token(client: &reqwest::Client, base: &str) -> String {
    let answer = client
        .post(format!("{base}/oauth/token"))
        .basic_auth("bench", Some("0123456789-0123456789-0123456789-abc"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body("grant_type=client_credentials&scope=crm%3Aread")
        .send()
        .await
        .unwrap();
    let body: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    body["access_token"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let client = reqwest::Client::builder().tcp_nodelay(true).build().unwrap();
    let (_redis, port) = redis();
    let shared = json!({"type": "redis", "config": {"host": "127.0.0.1", "port": port}});
    let mut servers = [
        Server::start(&client, "no authentication", None).await,
        Server::start(&client, "tokens in memory", Some(with_auth(json!({"type": "memory"})))).await,
        Server::start(&client, "tokens in Redis", Some(with_auth(shared))).await,
    ];
    for round in 0..=ROUNDS {
        for server in &mut servers {
            let calls = if round == 0 { CALLS / 10 } else { CALLS };
            let before = server.cpu();
            let times = server.calls(&client, calls).await;
            let spent = (server.cpu() - before).as_secs_f64() * 1e6 / calls as f64;
            // The first round warms all up.
            if round > 0 {
                server.cpu_us.push(spent);
                server.times_us.extend(times);
            }
        }
    }
    println!(
        "| `tools/call`, one connection | CPU of the server, µs | more than without | p50, µs | p99, µs | resident, MiB |"
    );
    println!("|---|---|---|---|---|---|");
    let floor = median(&mut servers[0].cpu_us);
    for server in &mut servers {
        let spent = median(&mut server.cpu_us);
        server.times_us.sort_by(f64::total_cmp);
        let quantile = |q: f64| server.times_us[((server.times_us.len() - 1) as f64 * q) as usize];
        println!(
            "| {} | {spent:.1} | {:+.1} | {:.0} | {:.0} | {:.1} |",
            server.name,
            spent - floor,
            quantile(0.5),
            quantile(0.99),
            server.resident_mib()
        );
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

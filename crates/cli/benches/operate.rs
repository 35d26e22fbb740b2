//! Cost of operation: telemetry and audit against none, and two instances against one.
//!
//! `cargo bench -p gatewright-cli --bench operate` starts the real binary in each set-up, sends the same requests to all of them in
//! turns, and prints two tables. CPU time is the servers' own, read from `/proc/PID/task/*/schedstat`, so the client's work
//! and other load on the machine do not count. The second table needs `redis-server`.
//!
//! `-- --quota 0.15` holds each of the two instances to that share of a core by a control group, instead of pinning it to one: on a
//! machine with two cores, client and Redis have the rest. That needs the right to make control groups.
//!
//! `-- --quick` asks less, to see that it works. `-- --against PATH` asks another build of the binary the same in the same rounds, so
//! that both stand side by side. `-- --only telemetry` and `-- --only instances` print one table.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::{SocketAddr, TcpListener as StdListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use gatewright::server::axum::{self, Router, body::Bytes, routing::post};
use serde_json::{Value, json};

/// Load of a measurement.
#[derive(Clone, Copy)]
struct Amount {
    /// Requests of one round to one server.
    requests: usize,
    /// Rounds that count; one before them warms up.
    rounds: usize,
}

/// After this long a server has done what it puts off.
const SETTLE: Duration = Duration::from_millis(1_500);

/// Connections that ask at the same time.
const CONNECTIONS: usize = 4;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cores = std::thread::available_parallelism().unwrap();
    println!("{cores} cores, load average {}", fs::read_to_string("/proc/loadavg").unwrap().trim());
    let amount = match std::env::args().any(|argument| argument == "--quick") {
        true => Amount { requests: 300, rounds: 3 },
        false => Amount { requests: 3_000, rounds: 7 },
    };
    let after = |name: &str| std::env::args().skip_while(|argument| argument != name).nth(1);
    let only = after("--only");
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if wanted("telemetry") {
        let against = after("--against").map(PathBuf::from);
        runtime.block_on(telemetry(folder.path(), amount, against.as_deref()));
    }
    if wanted("instances") {
        let quota = after("--quota").map(|share| share.parse().expect("a share of a core, such as 0.15"));
        runtime.block_on(instances(folder.path(), amount, quota));
    }
}

/// The build that is measured.
const BINARY: &str = env!("CARGO_BIN_EXE_gatewright");

struct Server {
    child: Child,
    address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// On one core of its own when `core` is given.
    fn start(binary: &Path, folder: &Path, name: &str, config: &Value, core: Option<usize>) -> Self {
        let file = folder.join(format!("{name}.json"));
        fs::write(&file, config.to_string()).unwrap();
        let mut command = match core {
            Some(core) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &core.to_string()]).arg(binary);
                command
            }
            None => Command::new(binary),
        };
        command.args(["serve", "--no-watch", "--config"]).arg(file);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (sender, log) = mpsc::channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(sender.send(line))));
        let address = loop {
            let line = log.recv_timeout(Duration::from_secs(30)).expect("it serves");
            if let Some((_, rest)) = line.split_once("serving MCP on http://") {
                break rest.split('/').next().unwrap().parse().unwrap();
            }
        };
        Self { child, address }
    }

    /// CPU time of all threads of the server so far.
    fn cpu(&self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let nanos = tasks.filter_map(|task| {
            let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Call,
    Script,
}

impl Kind {
    const ALL: [(&str, Self); 2] =
        [("`codecall:invoke`", Self::Call), ("`codecall:execute` of two calls", Self::Script)];

    fn params(self) -> Value {
        let (name, arguments) = match self {
            Self::Call => ("codecall:invoke", json!({"tool": "crm:users_list", "input": {"limit": 3}})),
            Self::Script => {
                let script = "const [a, b] = [await callTool('crm:users_list', {limit: 3}), await callTool('crm:users_list', {limit: 1})]; return a.items.length + b.items.length";
                ("codecall:execute", json!({"script": script}))
            }
        };
        json!({"name": name, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}
        }})
    }
}

/// Asks `address` this often over kept-alive connections.
async fn ask(client: &reqwest::Client, address: SocketAddr, kind: Kind, requests: usize) {
    let params = kind.params();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let one = async || {
        for _ in 0..requests / CONNECTIONS {
            let answer = client
                .post(format!("http://{address}/mcp"))
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", params["name"].as_str().unwrap())
                .body(body.clone())
                .send()
                .await
                .unwrap();
            let text = answer.text().await.unwrap();
            assert!(text.contains("\"result\"") && !text.contains("\"isError\":true"), "{text}");
        }
    };
    futures::future::join_all((0..CONNECTIONS).map(|_| one())).await;
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Takes spans and says yes.
async fn collector() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().route("/v1/traces", post(|_: Bytes| async {}));
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    url
}

/// CPU per request with nothing, and with more and more of what tells operators.
async fn telemetry(folder: &Path, amount: Amount, against: Option<&Path>) {
    let collector = collector().await;
    let traces = |ratio: f64| json!({"otlp": {"endpoint": collector, "sampleRatio": ratio}});
    let admin = |console: bool| json!({"port": 0, "console": console});
    let set_ups = |folder: &Path| {
        let audit = |name: &str| json!({"file": folder.join(name)});
        [
            ("nothing", json!({})),
            ("metrics", json!({"admin": admin(false)})),
            ("metrics, console", json!({"admin": admin(true)})),
            ("audit", json!({"audit": audit("a.jsonl")})),
            ("traces, all of them", json!({"telemetry": traces(1.0)})),
            (
                "metrics, audit, traces, one in ten (recommended)",
                json!({"admin": admin(false), "audit": audit("c.jsonl"), "telemetry": traces(0.1)}),
            ),
            (
                "all of it, every trace",
                json!({"admin": admin(true), "audit": audit("b.jsonl"), "telemetry": traces(1.0)}),
            ),
        ]
    };
    let builds = [Some(Path::new(BINARY)), against];
    let mut servers = Vec::new();
    for (build, binary) in builds.into_iter().flatten().enumerate() {
        let folder = folder.join(format!("build-{build}"));
        fs::create_dir(&folder).unwrap();
        for (at, (name, more)) in set_ups(&folder).into_iter().enumerate() {
            let mut config = json!({
                "http": {"port": 0}, "apps": {"crm": {"builtin": "crm"}}, "codecall": {"worker": {"workers": 1}},
            });
            config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let name = if build == 0 { name.to_owned() } else { format!("the other build: {name}") };
            servers.push((name, Server::start(binary, &folder, &format!("set-up-{at}"), &config, None)));
        }
    }
    let per_build = set_ups(folder).len();
    let client = reqwest::Client::builder().tcp_nodelay(true).build().unwrap();
    println!("\n| CPU of the server, µs each | {} | |", Kind::ALL.map(|(name, _)| name).join(" | | "));
    println!("|---|---|---|---|---|");
    let mut spent = vec![[const { Vec::new() }; 2]; servers.len()];
    for round in 0..=amount.rounds {
        for (which, (_, kind)) in Kind::ALL.into_iter().enumerate() {
            let requests = amount.requests / if round == 0 { 5 } else { 1 };
            let before: Vec<Duration> = servers.iter().map(|(_, server)| server.cpu()).collect();
            // Each round begins with another server: none has the warmest moment for itself.
            for turn in 0..servers.len() {
                ask(&client, servers[(turn + round) % servers.len()].1.address, kind, requests).await;
            }
            // Spans leave up to a second later: that work counts too.
            tokio::time::sleep(SETTLE).await;
            for (at, (_, server)) in servers.iter().enumerate() {
                if round > 0 {
                    spent[at][which].push((server.cpu() - before[at]).as_secs_f64() * 1e6 / requests as f64);
                }
            }
        }
    }
    let mut floor = [0.0; 2];
    for (at, (name, _)) in servers.iter().enumerate() {
        print!("| {name} |");
        for which in 0..2 {
            let mid = median(&mut spent[at][which]);
            if at % per_build == 0 {
                floor[which] = mid;
            }
            print!(" {mid:.1} | {:+.1} % |", (mid / floor[which] - 1.0) * 100.0);
        }
        println!();
    }
}

struct Redis(Child);

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A control group that holds a process to a share of a core; it goes when the process has ended.
struct Held {
    folder: PathBuf,
}

impl Held {
    fn hold(server: &Server, share: f64) -> Self {
        const PERIOD: f64 = 10_000.0;
        let name = format!("gatewright-bench-{}", server.child.id());
        let quota = (share * PERIOD).round();
        // Version 1 has a tree for each kind of limit, version 2 one tree.
        let old = Path::new("/sys/fs/cgroup/cpu");
        let folder = if old.exists() { old.join(name) } else { Path::new("/sys/fs/cgroup").join(name) };
        fs::create_dir(&folder).expect("the right to make control groups");
        let write = |file: &str, text: String| fs::write(folder.join(file), text).expect(file);
        if old.exists() {
            write("cpu.cfs_period_us", PERIOD.to_string());
            write("cpu.cfs_quota_us", quota.to_string());
        } else {
            write("cpu.max", format!("{quota} {PERIOD}"));
        }
        write("cgroup.procs", server.child.id().to_string());
        Self { folder }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// One instance alone, and two at once, each on a core of its own or held to `quota` of one, sharing a Redis that counts every
/// request.
async fn instances(folder: &Path, Amount { requests, rounds }: Amount, quota: Option<f64>) {
    let port = StdListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let redis = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"])
        .arg(folder)
        .stdout(Stdio::null())
        .spawn();
    let _redis = Redis(redis.expect("redis-server is installed"));
    let deadline = Instant::now() + Duration::from_secs(20);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "redis-server listens");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let config = json!({
        "http": {"port": 0, "cluster": {"key": "the same thirty-two characters everywhere"}},
        "apps": {"crm": {"builtin": "crm"}}, "codecall": {"worker": {"workers": 1}},
        "rateLimits": [{"tool": "codecall:invoke", "limit": 1_000_000_000, "window": "1h"}],
        "auth": {
            "mode": "orchestrated", "allowDefaultPublic": true, "anonymousScopes": ["*"],
            "tokenStorage": {"type": "redis", "config": {"host": "127.0.0.1", "port": port}},
        },
    });
    let servers = [0, 1].map(|number| {
        let core = quota.is_none().then_some(number);
        Server::start(Path::new(BINARY), folder, &format!("instance-{number}"), &config, core)
    });
    let held = quota.map(|share| servers.each_ref().map(|server| Held::hold(server, share)));
    let client = reqwest::Client::builder().tcp_nodelay(true).build().unwrap();
    let (mut alone, mut both) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    let cpu = || servers.iter().map(Server::cpu).sum::<Duration>();
    for round in 0..=rounds {
        let (began, before) = (Instant::now(), cpu());
        ask(&client, servers[round % 2].address, Kind::Call, 2 * requests).await;
        let (time, spent) = (began.elapsed().as_secs_f64(), (cpu() - before).as_secs_f64());
        let (began, before) = (Instant::now(), cpu());
        tokio::join!(
            ask(&client, servers[0].address, Kind::Call, requests),
            ask(&client, servers[1].address, Kind::Call, requests)
        );
        let (time_both, spent_both) = (began.elapsed().as_secs_f64(), (cpu() - before).as_secs_f64());
        if round > 0 {
            let all = (2 * requests) as f64;
            alone.0.push(all / time);
            alone.1.push(spent * 1e6 / all);
            both.0.push(all / time_both);
            both.1.push(spent_both * 1e6 / all);
        }
    }
    // A control group with a process in it cannot be taken away.
    drop(servers);
    drop(held);
    let (rate, each) = (median(&mut alone.0), median(&mut alone.1));
    let (rate_both, each_both) = (median(&mut both.0), median(&mut both.1));
    println!(
        "\n| `codecall:invoke`, counted in Redis | requests/s | CPU of the servers, µs each | what one core could serve, requests/s |"
    );
    println!("|---|---|---|---|");
    println!("| one instance | {rate:.0} | {each:.1} | {:.0} |", 1e6 / each);
    println!("| two instances | {rate_both:.0} | {each_both:.1} | {:.0} each |", 1e6 / each_both);
    println!(
        "\nTwo serve {:.2}x of one as the clock says, and {:.2}x by the CPU they take; the clock counts only where client and \
         Redis have processors of their own besides what these two may use.",
        rate_both / rate,
        2.0 * each / each_both
    );
}

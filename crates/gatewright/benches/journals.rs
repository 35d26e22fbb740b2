//! CPU time of plans with journals in memory and in Redis, compared with the same plans without journals.
//!
//! `cargo bench -p gatewright --features guard --bench journals [-- PLANS ROUNDS]` runs rounds of plans of five fast calls, one kind after the other, and
//! prints the CPU time (user and system, of this process and its workers) of one plan. Redis is started if `redis-server` is there.

use std::{
    error::Error,
    fs,
    net::TcpListener,
    process::{Child, Command, ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};

use gatewright::{
    Builder, CodeCallConfig, Executions, ExecutionsConfig, LocalApp, Principal, Running,
    auth::{AuthConfig, SystemClock, open_store, store::StoreRecords},
    core::{SealKey, memory_transport},
    rmcp::{
        RoleClient, ServerHandler, ServiceExt as _, handler::server::wrapper::Parameters,
        model::CallToolRequestParams, service::RunningService, tool, tool_handler, tool_router,
    },
};
use serde_json::json;

type Done<T> = Result<T, Box<dyn Error>>;

/// Plans under way at the same time.
const WIDTH: u64 = 4;
const SCRIPT: &str = "
    const all = [];
    for (let n = 0; n < 5; n++) all.push(await callTool('desk:look', { id: codecallContext.plan + n }));
    return all.length;
";

#[derive(Clone)]
struct Desk;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Asked {
    id: String,
}

#[tool_router]
impl Desk {
    #[tool(description = "Looks a customer up.")]
    async fn look(&self, Parameters(Asked { id }): Parameters<Asked>) -> String {
        json!({"id": id, "name": "Ada Lovelace", "tags": ["one", "two"], "open": 3, "notes": "x".repeat(200)})
            .to_string()
    }
}

#[tool_handler]
impl ServerHandler for Desk {}

fn main() -> ExitCode {
    if gatewright::is_worker() {
        return gatewright::worker_main();
    }
    let numbers: Vec<u64> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let (plans, rounds) = (numbers.first().copied().unwrap_or(500), numbers.get(1).copied().unwrap_or(5));
    match measure(plans, rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("journals: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A gateway and a client of it.
struct Scene {
    name: &'static str,
    running: Running,
    client: RunningService<RoleClient, ()>,
    /// CPU time of one plan in each round, in microseconds.
    took: Vec<f64>,
}

#[tokio::main]
async fn measure(plans: u64, rounds: u64) -> Done<()> {
    let memory = Executions::in_memory(ExecutionsConfig::default());
    let mut scenes = vec![
        scene("without journals", Builder::new("bench", "1").without_journals()).await?,
        scene("in memory", Builder::new("bench", "1").executions(memory)).await?,
    ];
    let redis = Redis::start();
    match &redis {
        Some(redis) => {
            let executions = redis.executions().await?;
            scenes.push(scene("in Redis", Builder::new("bench", "1").executions(executions)).await?);
        }
        None => println!("there is no redis-server: its store is left out"),
    }
    for round in 0..=rounds {
        for scene in &mut scenes {
            let took = run(scene, plans).await?;
            // The first round warms up.
            if round > 0 {
                scene.took.push(took);
            }
        }
    }
    println!(
        "{plans} plans of 5 calls in each of {rounds} rounds; CPU time of a plan, median (least, most):"
    );
    let base = spread(&scenes[0].took).1;
    for scene in &scenes {
        let (least, median, most) = spread(&scene.took);
        let more = (median / base - 1.0) * 100.0;
        println!("{:<18} {median:>8.1} µs ({least:.1}, {most:.1})  {more:>+6.1} %", scene.name);
    }
    for scene in scenes {
        let _ = scene.client.cancel().await;
        scene.running.stop().await;
    }
    Ok(())
}

async fn scene(name: &'static str, builder: Builder) -> Done<Scene> {
    let config: CodeCallConfig = serde_json::from_value(json!({"worker": {"workers": 2, "maxWorkers": 4}}))?;
    let running = builder.app("desk", Arc::new(LocalApp::start(Desk).await?)).code_mode(config).build()?;
    let (client_end, server_end) = memory_transport();
    let serving = running.gateway().session_of(Principal::local()).serve(server_end);
    tokio::spawn(async move {
        if let Ok(session) = serving.await {
            let _ = session.waiting().await;
        }
    });
    let client = ().serve(client_end).await?;
    Ok(Scene { name, running, client, took: Vec::new() })
}

/// Runs plans. Returns the CPU time of one, in microseconds.
async fn run(scene: &Scene, plans: u64) -> Done<f64> {
    let before = cpu_ticks()?;
    let of_one = async |first: u64| -> Done<()> {
        for plan in (first..plans).step_by(WIDTH as usize) {
            let input = json!({"script": SCRIPT, "context": {"plan": format!("p{plan}-")}});
            let arguments = input.as_object().cloned().unwrap_or_default();
            let params = CallToolRequestParams::new("codecall:execute").with_arguments(arguments);
            let body = scene.client.peer().call_tool(params).await?.structured_content.unwrap_or_default();
            if body["result"] != 5 {
                return Err(format!("a plan failed: {body}").into());
            }
        }
        Ok(())
    };
    tokio::try_join!(of_one(0), of_one(1), of_one(2), of_one(3))?;
    // What is written behind the plans belongs to them.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let ticks = cpu_ticks()? - before;
    // Linux counts in hundredths of a second.
    Ok(ticks as f64 * 10_000.0 / plans as f64)
}

fn spread(took: &[f64]) -> (f64, f64, f64) {
    let mut took = took.to_vec();
    took.sort_by(f64::total_cmp);
    let at = |at: usize| took.get(at).copied().unwrap_or(f64::NAN);
    (at(0), at(took.len() / 2), at(took.len().saturating_sub(1)))
}

/// Time of this process, of its children, and of those that it waited for.
fn cpu_ticks() -> Done<u64> {
    let own = std::process::id();
    let mut ticks = 0;
    for entry in fs::read_dir("/proc")?.flatten() {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name, in parentheses, may have spaces.
        let Some((pid, rest)) = stat.split_once(" (").zip(stat.rsplit_once(") ")).map(|(a, b)| (a.0, b.1))
        else {
            continue;
        };
        let fields: Vec<u64> = rest.split(' ').skip(1).map(|field| field.parse().unwrap_or(0)).collect();
        let field = |number: usize| fields.get(number - 4).copied().unwrap_or(0);
        let is_own = pid.parse() == Ok(own);
        if is_own {
            ticks += field(14) + field(15) + field(16) + field(17);
        } else if field(4) == u64::from(own) && !stat.contains("(redis-server)") {
            ticks += field(14) + field(15);
        }
    }
    Ok(ticks)
}

/// A Redis of this process.
struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    fn start() -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
        let mut command = Command::new("redis-server");
        command.args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        Some(Self { child, port })
    }

    async fn executions(&self) -> Done<Executions> {
        let storage =
            json!({"tokenStorage": {"type": "redis", "config": {"host": "127.0.0.1", "port": self.port}}});
        let config: AuthConfig = serde_json::from_value(storage)?;
        let mut tries = 0;
        let store = loop {
            match open_store(&config, Arc::new(SystemClock)).await {
                Err(_) if tries < 100 => tokio::time::sleep(Duration::from_millis(50)).await,
                opened => break opened?,
            }
            tries += 1;
        };
        let key = SealKey::derived(b"a secret of thirty-two characters");
        let records = Arc::new(StoreRecords::new(store, "execution"));
        Ok(Executions::shared(ExecutionsConfig::default(), records, &key, "bench"))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

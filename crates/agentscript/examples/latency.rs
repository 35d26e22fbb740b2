//! Prints the duration of runs as percentiles: a mean says little about a shared machine.
//!
//! `cargo run --release --example latency -- [RUNS]` (default 2,000 of each; the worker program must have been built).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gatewright_agentscript::{
    Adapter, Host, HostFuture, PoolConfig, RunRequest, ToolAnswer, ToolCall, ToolFailure, WorkerCommand,
    WorkerPool,
};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

struct Echo;

impl Host for Echo {
    fn call_tool(&self, call: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        Box::pin(async move { Ok(call.input.into()) })
    }

    fn get_tool(&self, _: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        Box::pin(async { Ok(RawValue::NULL.to_owned()) })
    }
}

const SCRIPTS: [(&str, &str); 4] = [
    ("nothing", "return 1"),
    ("one call", "return await callTool('crm:get', { id: 7 })"),
    (
        "20 calls in a row",
        "let n = 0; for (let i = 0; i < 20; i++) n += (await callTool('crm:get', { id: i })).id; return n",
    ),
    (
        "100 calls in parallel",
        "const fns = Array.from({ length: 100 }, (_, i) => () => callTool('crm:get', { id: i }));
         return (await __safe_parallel(fns, { maxConcurrency: 20 })).length",
    ),
];

async fn measure(pool: Arc<WorkerPool>, source: &'static str, runs: usize) -> Vec<Duration> {
    let mut took = Vec::with_capacity(runs);
    for _ in 0..runs {
        let started = Instant::now();
        let outcome = pool.run(RunRequest::new(source), Arc::new(Echo), CancellationToken::new()).await;
        took.push(started.elapsed());
        assert!(outcome.result.is_ok(), "{:?}", outcome.result);
    }
    took.sort_unstable();
    took
}

/// Measures runs per second with 32 callers on two workers, which staying awake for answers must not lower.
fn saturated(command: &WorkerCommand) {
    const CALLERS: usize = 32;
    const SPAN: Duration = Duration::from_secs(3);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be built");
    for (what, source) in SCRIPTS {
        let config = PoolConfig::default().workers(2).recycle_after(u32::MAX).command(command.clone());
        let pool = WorkerPool::new(config).expect("workers start");
        let runs: u64 = runtime.block_on(async {
            let callers: Vec<_> = (0..CALLERS)
                .map(|_| {
                    let pool = Arc::clone(&pool);
                    tokio::spawn(async move {
                        let (started, mut runs) = (Instant::now(), 0);
                        while started.elapsed() < SPAN {
                            let run =
                                pool.run(RunRequest::new(source), Arc::new(Echo), CancellationToken::new());
                            assert!(run.await.result.is_ok());
                            runs += 1;
                        }
                        runs
                    })
                })
                .collect();
            let mut runs = 0;
            for caller in callers {
                runs += caller.await.expect("no panic");
            }
            runs
        });
        println!("{:<34} {:>8} runs/s", format!("saturated, {what}"), runs / SPAN.as_secs());
    }
}

fn main() {
    let runs = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2_000);
    let program = std::env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.parent()?.join("agentscript-worker")))
        .filter(|program| program.exists());
    let Some(program) = program else {
        eprintln!("build the worker program first: cargo build --release --bin agentscript-worker");
        std::process::exit(2);
    };
    // One thread runs the tasks and waits for the sockets, as each thread of a server does.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    let command = WorkerCommand { program, args: Vec::new() };
    let pools = [
        ("process", PoolConfig::default().workers(1).recycle_after(u32::MAX).command(command.clone())),
        ("in process", PoolConfig::default().workers(1).adapter(Adapter::InProcess)),
    ];
    println!("{:<34} {:>8} {:>8} {:>8} {:>8}", "microseconds", "min", "p10", "p50", "p90");
    for (adapter, config) in pools {
        let pool = WorkerPool::new(config).expect("a worker starts");
        for (what, source) in SCRIPTS {
            let took = runtime.block_on(measure(Arc::clone(&pool), source, runs));
            let at = |percent: usize| took[(took.len() - 1) * percent / 100].as_micros();
            println!(
                "{:<34} {:>8} {:>8} {:>8} {:>8}",
                format!("{adapter}, {what}"),
                at(0),
                at(10),
                at(50),
                at(90)
            );
        }
    }
    saturated(&command);
    if let Ok(load) = std::fs::read_to_string("/proc/loadavg") {
        println!("load average {}", load.split(' ').next().unwrap_or("?"));
    }
}

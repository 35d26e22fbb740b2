//! Many runs with workers killed in between, then a count of leaks: `churn WORKER [RUNS]` (10,000 by default).
//!
//! Prints descriptors and resident memory of this process at the start, on the way and at the end, and the children left after
//! shutdown. The exit code is 1 when a descriptor or a child is left, or memory grew by more than 8 MiB after the first tenth.

use std::{process::ExitCode, sync::Arc, time::Duration};

use gatewright_agentscript::{
    Host, HostFuture, PoolConfig, RunError, RunRequest, ToolAnswer, ToolCall, ToolFailure, WorkerCommand,
    WorkerPool,
};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

struct Echo;

impl Host for Echo {
    fn call_tool(&self, call: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        Box::pin(async move {
            if call.name == "never" {
                std::future::pending::<()>().await;
            }
            Ok(call.input.into())
        })
    }

    fn get_tool(&self, _: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        Box::pin(async { Ok(RawValue::NULL.to_owned()) })
    }
}

const SCRIPTS: &[&str] = &[
    "return await callTool('echo', { id: 1 })",
    "return (await __safe_parallel([1, 2, 3].map((n) => () => callTool('echo', n)))).length",
    "console.log('x'.repeat(1000)); throw new Error('own')",
    "for (;;) {}",
    "const all = []; for (let i = 0; i < 50000; i++) all.push(new Array(1000).fill(i))",
    "const f = () => f(); return f()",
    "return eval('1')",
    "return (",
    "await callTool('never', {})",
    "await new Promise(() => {})",
    "return Array(2 ** 32 - 2).join()",
];

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

fn children() -> usize {
    let me = std::process::id().to_string();
    let Ok(all) = std::fs::read_dir("/proc") else { return 0 };
    all.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter(|stat| {
            stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)) == Some(me.as_str())
        })
        .count()
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(program) = args.next() else {
        eprintln!("usage: churn WORKER [RUNS]");
        return ExitCode::from(2);
    };
    let runs: u32 = args.next().and_then(|runs| runs.parse().ok()).unwrap_or(10_000);
    let command = WorkerCommand { program: program.into(), args: Vec::new() };
    let config =
        PoolConfig::default().workers(2).watchdog_extra(Duration::from_millis(30)).recycle_after(200);
    let pool = match WorkerPool::new(config.command(command)) {
        Ok(pool) => pool,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let at_start = descriptors();
    let (mut early, mut random, mut crashed) = (0, 0x2545_F491_4F6C_DD1D_u64, 0);
    for n in 0..runs {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let script = SCRIPTS[if random.is_multiple_of(4) { random as usize / 4 % SCRIPTS.len() } else { 0 }];
        let mut request = RunRequest::new(script);
        request.limits.timeout = Duration::from_millis(40);
        if random.is_multiple_of(50)
            && let Some(pid) = pool.idle_pids().first()
        {
            let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
        let run = pool.run(request, Arc::new(Echo), CancellationToken::new());
        let wait = Duration::from_millis(if random.is_multiple_of(97) { 2 } else { 10_000 });
        match tokio::time::timeout(wait, run).await {
            Ok(outcome) if matches!(&outcome.result, Err(RunError::Worker(error)) if error.class_and_code().1 == "WORKER_CRASHED") =>
            {
                crashed += 1;
            }
            _ => {}
        }
        if n == runs / 10 {
            early = resident_kib();
        }
        if n % (runs / 10).max(1) == 0 {
            println!(
                "{n:>6} runs: {} descriptors, {} KiB, {:?}",
                descriptors(),
                resident_kib(),
                pool.stats()
            );
        }
    }
    let late = resident_kib();
    pool.shutdown().await;
    drop(pool);
    for _ in 0..2_000 {
        if children() == 0 && descriptors() < at_start {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let left_open = descriptors();
    println!(
        "{runs} runs, {crashed} ended by a kill; descriptors {at_start} then {left_open}; memory {early} KiB after a tenth, {late} KiB at \
         the end; {} children left",
        children()
    );
    let good = children() == 0 && left_open < at_start && late <= early + 8 * 1024;
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

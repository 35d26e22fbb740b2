//! The memory of a worker process: at most one and a half times the limit of its run, and after the run what it was before.

use std::{fs, sync::Arc};

use gatewright_agentscript::{Limits, Preset, RunError, RunRequest, WorkerError, WorkerPool};
use tokio_util::sync::CancellationToken;

use super::support::{Tools, config};

const MIB: u64 = 1024 * 1024;
/// Memory of an idle worker, in bytes.
const IDLE: u64 = 6 * MIB;

/// A field of a process's status, in bytes.
fn status(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_matches([':', ' ', '\t']).trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
}

/// Runs `source` in a new worker. Returns its result, the most memory that the worker had, and that after the run.
async fn measured(preset: Preset, source: &str) -> (Result<String, RunError>, u64, u64) {
    let pool = WorkerPool::new(config().workers(1)).unwrap();
    let pid = pool.idle_pids()[0];
    let mut request = RunRequest::new(source);
    request.limits = Limits::preset(preset);
    let outcome = pool.run(request, Arc::new(Tools::default()), CancellationToken::new()).await;
    // A short run, which the worker begins when it is done with the other one.
    let after = pool.run(RunRequest::new("return 1"), Arc::new(Tools::default()), CancellationToken::new());
    assert!(after.await.result.is_ok(), "{source}");
    assert_eq!(pool.idle_pids(), [pid], "{source}: {:?}", outcome.result);
    let files = status(pid, "RssFile");
    let peak = status(pid, "VmHWM").saturating_sub(files);
    (outcome.result.map(|value| value.get().to_owned()), peak, status(pid, "RssAnon"))
}

/// Texts that leave the engine in every way there is, nearly as long as its heap.
fn scripts(most: u64) -> Vec<String> {
    let long = format!("'x'.repeat({})", most * 93 / 100);
    let half = format!("'é'.repeat({})", most / 3);
    [
        "throw LONG",
        "throw new Error(LONG)",
        "const s = LONG, e = new Error(s); e.name = s; e.code = s; e.toolName = s; throw e",
        "const e = new Error('a'); e.name = LONG; throw e",
        "throw { message: LONG }",
        "await callTool(LONG, {})",
        "await callTool('echo', LONG)",
        "await callTool('echo', { [LONG]: 1 })",
        "getTool(LONG)",
        "console.log(LONG)",
        "console.log({ a: LONG })",
        "console.log(new Error(LONG))",
        "progress(LONG)",
        "return LONG",
        "return { [LONG]: LONG }",
        "return new Error(LONG)",
        "return (1).toLocaleString(LONG, { currency: LONG })",
        "return LONG.localeCompare(LONG)",
        "return await __safe_parallel([() => { throw LONG }], { settle: true })",
        "await __safe_parallel([() => { throw LONG }])",
        "const o = { [LONG]() { throw new Error('a') } }; for (const k in o) o[k]()",
        "const e = new Error('a'); e[LONG] = 1; throw e",
        "return structuredClone(LONG)",
        "null[LONG]",
    ]
    .iter()
    .flat_map(|script| [&long, &half].map(|text| script.replace("LONG", text)))
    .collect()
}

async fn stays_within(preset: Preset, source: &str) {
    let most = Limits::preset(preset).memory_bytes;
    let (result, peak, after) = measured(preset, source).await;
    let numbers = format!("{preset:?} {:.1}, then {:.1} MiB: {source:.70}", mib(peak), mib(after));
    println!("{numbers}");
    assert!(!matches!(result, Err(RunError::Worker(WorkerError::Crashed(_)))), "{numbers}: {result:?}");
    assert!(peak <= most * 3 / 2 && after <= IDLE, "{numbers}");
}

#[tokio::test]
async fn no_text_that_leaves_takes_a_worker_beyond_its_limit_or_stays_in_it() {
    for source in scripts(Limits::preset(Preset::Secure).memory_bytes) {
        stays_within(Preset::Secure, &source).await;
    }
}

#[tokio::test]
async fn texts_of_a_large_heap_end_no_worker() {
    for preset in [Preset::Balanced, Preset::Experimental] {
        for source in &scripts(Limits::preset(preset).memory_bytes)[..6] {
            stays_within(preset, source).await;
        }
    }
}

#[tokio::test]
async fn texts_for_which_there_is_no_room_end_the_run() {
    for source in ["throw 'é'.repeat(15e6)", "const s = 'é'.repeat(1e7); callTool(s + 'a', s + 'b')"] {
        let (result, ..) = measured(Preset::Secure, source).await;
        let is_memory = matches!(result, Err(RunError::Worker(WorkerError::MemoryExceeded(_))));
        assert!(is_memory, "{source}: {result:?}");
    }
}

#[tokio::test]
async fn a_worker_that_keeps_the_memory_of_a_run_is_replaced() {
    let pool = WorkerPool::new(config().workers(1)).unwrap();
    let pid = pool.idle_pids()[0];
    // The parser's stack.
    let deep = format!("return {}1{}", "(".repeat(14_000), ")".repeat(14_000));
    let run = pool.run(RunRequest::new(deep), Arc::new(Tools::default()), CancellationToken::new());
    assert!(run.await.result.is_err());
    while pool.idle_pids().first().is_none_or(|new| *new == pid) {
        tokio::task::yield_now().await;
    }
    assert_eq!(pool.stats().replaced, 1);
    assert!(status(pool.idle_pids()[0], "RssAnon") <= IDLE);
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB as f64
}

//! The pool: every error class of the contract, and the state of the workers afterwards.

use std::{sync::Arc, time::Duration};

use gatewright_agentscript::{
    Adapter, Host, HostFuture, MOST_LEVELS, Outcome, PoolConfig, RunError, RunRequest, ToolAnswer, ToolCall,
    ToolFailure, WorkerError, WorkerPool,
};
use serde_json::{json, value::RawValue};
use tokio_util::sync::CancellationToken;

use super::support::{Tools, command, config, failure, value};

fn misbehaving(mode: &str) -> PoolConfig {
    PoolConfig::default().workers(1).command(command(&["--misbehave", mode]))
}

async fn go(pool: &WorkerPool, source: &str) -> Outcome {
    pool.run(RunRequest::new(source), Arc::new(Tools::default()), CancellationToken::new()).await
}

async fn error_of(mode: &str) -> WorkerError {
    let pool = WorkerPool::new(misbehaving(mode)).expect("it starts");
    match go(&pool, "return 1").await.result {
        Err(RunError::Worker(error)) => error,
        other => panic!("{mode}: {other:?}"),
    }
}

#[tokio::test]
async fn worker_startup_failed_when_the_program_ends_or_stays_silent_or_does_not_exist() {
    for mode in ["exit-at-start", "silent-at-start", "garbage-at-start"] {
        let config = misbehaving(mode).startup_timeout(Duration::from_millis(300));
        assert!(matches!(WorkerPool::new(config), Err(WorkerError::StartupFailed(_))), "{mode}");
    }
    let mut nowhere = command(&[]);
    nowhere.program = "/nonexistent/worker".into();
    let error = WorkerPool::new(PoolConfig::default().command(nowhere)).unwrap_err();
    assert!(matches!(&error, WorkerError::StartupFailed(why) if !why.contains('/')), "{error}");
}

#[tokio::test]
async fn an_incomplete_sandbox_is_refused_when_it_is_required() {
    let error = WorkerPool::new(misbehaving("idle").require_sandbox(true)).unwrap_err();
    assert!(matches!(&error, WorkerError::StartupFailed(why) if why.contains("sandbox")), "{error}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn every_wall_stands_on_this_kernel() {
    let pool = WorkerPool::new(config().workers(1).require_sandbox(true)).expect("the sandbox is complete");
    assert!(pool.sandbox_report().is_complete(), "{:?}", pool.sandbox_report());
}

#[tokio::test]
async fn message_invalid_for_whatever_is_not_a_message() {
    for mode in [
        "unknown-kind",
        "wrong-run",
        "wrong-id",
        "not-json-input",
        "not-json-result",
        "unknown-ending",
        "error-of-the-pool",
        "answer-to-itself",
    ] {
        assert_eq!(error_of(mode).await, WorkerError::MessageInvalid, "{mode}");
    }
}

#[tokio::test]
async fn message_too_large_for_a_frame_over_the_limit() {
    for mode in ["declares-4-gib", "noise", "result-too-large"] {
        assert!(matches!(error_of(mode).await, WorkerError::MessageTooLarge(_)), "{mode}");
    }
}

#[tokio::test]
async fn message_flood_for_too_many_messages() {
    assert!(matches!(error_of("flood-of-logs").await, WorkerError::MessageFlood(_)));
    let pool = WorkerPool::new(misbehaving("flood-of-calls")).expect("it starts");
    let mut request = RunRequest::new("return 1");
    request.limits.messages_per_second = 20;
    let outcome = pool.run(request, Arc::new(Tools::default()), CancellationToken::new()).await;
    assert!(
        matches!(outcome.result, Err(RunError::Worker(WorkerError::MessageFlood(20)))),
        "{:?}",
        outcome.result
    );
}

#[tokio::test]
async fn too_many_pending_calls_are_noticed_by_the_pool_too() {
    assert!(matches!(error_of("too-many-open").await, WorkerError::TooManyPendingCalls(64)));
}

#[tokio::test]
async fn worker_crashed_when_its_process_dies() {
    assert!(matches!(error_of("abort").await, WorkerError::Crashed(why) if why.contains("signal")));
}

#[tokio::test]
async fn worker_timeout_when_the_watchdog_has_to_kill() {
    let pool =
        WorkerPool::new(misbehaving("idle").watchdog_extra(Duration::from_millis(50))).expect("it starts");
    let mut request = RunRequest::new("return 1");
    request.limits.timeout = Duration::from_millis(50);
    let outcome = pool.run(request, Arc::new(Tools::default()), CancellationToken::new()).await;
    assert!(
        matches!(outcome.result, Err(RunError::Worker(WorkerError::Timeout(after))) if after == Duration::from_millis(100))
    );
}

#[tokio::test]
async fn a_worker_with_more_to_say_after_the_end_does_not_serve_again() {
    let pool = WorkerPool::new(misbehaving("done-and-more")).expect("it starts");
    go(&pool, "return 1").await;
    assert_eq!(pool.stats().replaced, 1);
}

#[tokio::test]
async fn queue_full_and_queue_timeout_and_pool_disposed() {
    let pool = WorkerPool::new(config().workers(1).queue(1).queue_timeout(Duration::from_millis(50)))
        .expect("it starts");
    let hold = CancellationToken::new();
    let busy = tokio::spawn({
        let (pool, hold) = (Arc::clone(&pool), hold.clone());
        async move {
            pool.run(RunRequest::new("await callTool('never', {})"), Arc::new(Tools::default()), hold).await
        }
    });
    while pool.stats().idle > 0 {
        tokio::task::yield_now().await;
    }
    let waiting = tokio::spawn({
        let pool = Arc::clone(&pool);
        async move { go(&pool, "return 1").await }
    });
    while pool.stats().waiting == 0 {
        tokio::task::yield_now().await;
    }
    assert!(matches!(go(&pool, "return 1").await.result, Err(RunError::Worker(WorkerError::QueueFull(1)))));
    assert!(matches!(waiting.await.unwrap().result, Err(RunError::Worker(WorkerError::QueueTimeout(_)))));
    pool.dispose();
    assert!(matches!(busy.await.unwrap().result, Err(RunError::Worker(WorkerError::Disposed))));
    assert!(matches!(go(&pool, "return 1").await.result, Err(RunError::Worker(WorkerError::Disposed))));
}

#[tokio::test]
async fn a_patient_run_waits_without_a_place_in_the_queue_and_for_longer_than_its_time() {
    let pool = WorkerPool::new(config().workers(1).queue(0).queue_timeout(Duration::from_millis(1)))
        .expect("it starts");
    let hold = CancellationToken::new();
    let busy = tokio::spawn({
        let (pool, hold) = (Arc::clone(&pool), hold.clone());
        async move {
            pool.run(RunRequest::new("await callTool('never', {})"), Arc::new(Tools::default()), hold).await
        }
    });
    while pool.stats().idle > 0 {
        tokio::task::yield_now().await;
    }
    let mut request = RunRequest::new("return 1");
    request.patient = true;
    let patient = tokio::spawn({
        let pool = Arc::clone(&pool);
        async move { pool.run(request, Arc::new(Tools::default()), CancellationToken::new()).await }
    });
    while pool.stats().waiting == 0 {
        tokio::task::yield_now().await;
    }
    assert!(matches!(go(&pool, "return 1").await.result, Err(RunError::Worker(WorkerError::QueueFull(0)))));
    hold.cancel();
    assert!(busy.await.unwrap().result.is_err());
    assert_eq!(patient.await.unwrap().result.unwrap().get(), "1");
}

#[tokio::test]
async fn a_pool_starts_workers_for_runs_that_would_wait_up_to_its_most_and_ends_those_that_no_run_needs() {
    let idle = Duration::from_secs(1);
    let pool = WorkerPool::new(config().workers(1).max_workers(3).idle_timeout(idle)).expect("it starts");
    assert_eq!(pool.stats().idle, 1);
    let hold = CancellationToken::new();
    let run = |source: &'static str, cancel: &CancellationToken| {
        let (pool, cancel) = (Arc::clone(&pool), cancel.clone());
        tokio::spawn(
            async move { pool.run(RunRequest::new(source), Arc::new(Tools::default()), cancel).await },
        )
    };
    let held: Vec<_> = (0..3).map(|_| run("await callTool('never', {})", &hold)).collect();
    let one_more = run("return 1", &CancellationToken::new());
    while pool.stats().waiting == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!((pool.stats().idle, pool.stats().waiting), (0, 1));
    hold.cancel();
    for run in held {
        assert!(matches!(run.await.unwrap().result, Err(RunError::Worker(WorkerError::Aborted))));
    }
    assert_eq!(value(&one_more.await.unwrap()), json!(1), "the one that waited is served");
    let runs = (0..3).map(|_| async { value(&go(&pool, "return 1").await) });
    assert_eq!(futures::future::join_all(runs).await, [json!(1), json!(1), json!(1)]);
    while pool.stats().idle > 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(pool.idle_pids().len(), 1);
    assert_eq!(value(&go(&pool, "return 1").await), json!(1));
}

#[tokio::test]
async fn execution_aborted_frees_the_place_for_the_next_run() {
    let pool = WorkerPool::new(config().workers(1)).expect("it starts");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let outcome = pool.run(RunRequest::new("return 1"), Arc::new(Tools::default()), cancel).await;
    assert!(matches!(outcome.result, Err(RunError::Worker(WorkerError::Aborted))));
    let dropped = pool.run(
        RunRequest::new("await callTool('never', {})"),
        Arc::new(Tools::default()),
        CancellationToken::new(),
    );
    assert!(tokio::time::timeout(Duration::from_millis(50), dropped).await.is_err());
    assert_eq!(value(&go(&pool, "return 3").await), json!(3));
}

#[tokio::test]
async fn a_script_that_waits_is_told_to_end_when_nobody_waits_for_it_and_its_process_stays() {
    let pool = WorkerPool::new(config().workers(1)).expect("it starts");
    let first = pool.idle_pids();
    for n in 0..4 {
        let (cancel, tools) = (CancellationToken::new(), Arc::new(Tools::default()));
        let source = "for (let i = 0; i < 20; i++) callTool('never', {}); await callTool('never', {})";
        let mut run = Box::pin(pool.run(RunRequest::new(source), tools.clone(), cancel.clone()));
        let waits = async {
            while tools.seen.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            outcome = &mut run => panic!("{outcome:?}"),
            () = waits => {}
        }
        if n % 2 == 0 {
            drop(run);
        } else {
            cancel.cancel();
            assert!(matches!(run.await.result, Err(RunError::Worker(WorkerError::Aborted))));
        }
        assert_eq!(value(&go(&pool, &format!("return {n}")).await), json!(n));
    }
    assert_eq!((pool.stats().replaced, pool.idle_pids()), (0, first));
    pool.shutdown().await;
}

#[tokio::test]
async fn shutdown_lets_a_run_under_way_end_and_takes_no_more() {
    let pool = WorkerPool::new(config().workers(1)).expect("it starts");
    let running = tokio::spawn({
        let pool = Arc::clone(&pool);
        async move { go(&pool, "await callTool('yield', {}); return 'ended'").await }
    });
    while pool.stats().idle > 0 {
        tokio::task::yield_now().await;
    }
    pool.shutdown().await;
    assert_eq!(value(&running.await.unwrap()), json!("ended"));
    assert!(matches!(go(&pool, "return 1").await.result, Err(RunError::Worker(WorkerError::Disposed))));
}

#[tokio::test]
async fn a_worker_is_recycled_after_its_runs() {
    let pool = WorkerPool::new(config().workers(1).recycle_after(2)).expect("it starts");
    let first = pool.idle_pids();
    for n in 0..5 {
        assert_eq!(value(&go(&pool, &format!("return {n}")).await), json!(n));
    }
    assert_eq!(pool.stats().replaced, 2);
    assert_ne!(pool.idle_pids(), first);
}

#[tokio::test]
async fn another_principal_gets_another_process_when_asked_for() {
    let pool = WorkerPool::new(config().workers(1).isolate_principals(true)).expect("it starts");
    for (who, replaced) in [("a", 0), ("a", 0), ("b", 1)] {
        let mut request = RunRequest::new("return 1");
        request.parties = vec![(who.to_owned(), 1)];
        let outcome = pool.run(request, Arc::new(Tools::default()), CancellationToken::new()).await;
        assert_eq!(value(&outcome), json!(1));
        assert_eq!(pool.stats().replaced, replaced, "{who}");
    }
}

#[tokio::test]
async fn a_caller_with_runs_under_way_leaves_memory_for_a_run_of_another_one() {
    let config = config().workers(4).has_memory(|runs| runs <= 2);
    let pool = WorkerPool::new(config).expect("it starts");
    let tools = Arc::new(Tools::default());
    let run = |who: &str, script: &str| {
        let mut request = RunRequest::new(script);
        request.parties = vec![(who.to_owned(), 1)];
        let (pool, host) = (pool.clone(), tools.clone());
        async move { pool.run(request, host, CancellationToken::new()).await }
    };
    let mut open = Vec::new();
    for number in 1..=2 {
        open.push(tokio::spawn(run("alice", "return await callTool('never', {})")));
        while tools.seen.lock().unwrap().len() < number {
            tokio::task::yield_now().await;
        }
    }
    let refused = run("alice", "return 1").await.result;
    assert!(matches!(refused, Err(RunError::Worker(WorkerError::NoMemory))), "{refused:?}");
    assert_eq!(value(&run("bob", "return 1").await), json!(1));
    open.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn the_in_process_adapter_runs_the_same_scripts() {
    let pool =
        WorkerPool::new(PoolConfig::default().adapter(Adapter::InProcess).workers(1)).expect("it starts");
    assert!(!pool.sandbox_report().is_complete());
    let outcome = go(&pool, "console.log('in'); return [await callTool('echo', 1), codecallContext]").await;
    assert_eq!(value(&outcome), json!([1, {}]));
    assert_eq!(outcome.logs, ["in"]);
    assert!(
        matches!(go(&pool, "for (;;) {}").await.result, Err(RunError::RuntimeError { name, .. }) if name == "IterationLimitError")
    );
    pool.shutdown().await;
}

#[cfg(target_os = "linux")]
mod processes {
    use super::*;

    fn descriptors() -> usize {
        std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
    }

    /// Processes whose parent is this one, by state.
    fn children() -> Vec<String> {
        let me = std::process::id().to_string();
        let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
        all.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok())
            .filter_map(|stat| {
                let (_, rest) = stat.rsplit_once(") ")?;
                let mut fields = rest.split(' ');
                let state = fields.next()?.to_owned();
                (fields.next()? == me).then_some(state)
            })
            .collect()
    }

    fn kill(pid: u32) {
        let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
        assert!(killed.is_ok_and(|status| status.success()));
    }

    /// Waits until a killed child has ended; its parent has not asked for it yet.
    fn is_zombie(pid: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
    }

    #[tokio::test]
    async fn workers_that_are_all_killed_while_they_wait_spoil_no_run() {
        let pool = WorkerPool::new(config().workers(3)).expect("it starts");
        let pids = pool.idle_pids();
        pids.iter().copied().for_each(kill);
        while !pids.iter().copied().all(is_zombie) {
            tokio::task::yield_now().await;
        }
        for n in 0..6 {
            assert_eq!(value(&go(&pool, &format!("return {n}")).await), json!(n));
        }
        // Those that no run took are found where they wait.
        while (pool.stats().idle, pool.stats().replaced) != (3, 3) {
            tokio::task::yield_now().await;
        }
        pool.shutdown().await;
        assert!(!children().iter().any(|state| state == "Z"));
    }

    #[tokio::test]
    async fn workers_that_are_killed_while_they_wait_are_reaped_and_replaced_without_a_run() {
        let pool = WorkerPool::new(config().workers(3)).expect("it starts");
        let pids = pool.idle_pids();
        pids.iter().copied().for_each(kill);
        let gone = |pid: &u32| !std::path::Path::new(&format!("/proc/{pid}")).exists();
        while !(pids.iter().all(gone) && pool.stats().idle == 3) {
            tokio::task::yield_now().await;
        }
        assert!(pool.idle_pids().iter().all(|pid| !pids.contains(pid)));
        assert_eq!(pool.stats().replaced, 3);
        assert_eq!(value(&go(&pool, "return 1").await), json!(1));
    }

    #[tokio::test]
    async fn a_worker_that_is_killed_before_its_script_did_anything_is_followed_by_another() {
        for when in ["killed-at-its-start", "killed-at-its-first-run"] {
            let marker = std::env::temp_dir().join(format!("{when}-{}", std::process::id()));
            let _ = std::fs::remove_file(&marker);
            let command = command(&["--misbehave", when, marker.to_str().expect("it is plain")]);
            let pool = WorkerPool::new(PoolConfig::default().workers(1).command(command)).expect("it starts");
            assert_eq!(value(&go(&pool, "return 1").await), json!(1), "{when}");
            assert!(marker.exists(), "{when}");
            let _ = std::fs::remove_file(&marker);
        }
    }

    #[test]
    fn many_runs_with_kills_in_between_leave_no_zombie_and_no_descriptor() {
        let alone = std::process::Command::new(std::env::current_exe().expect("tests have a program"))
            .args(["--exact", "pool::processes::counted_in_a_process_of_its_own", "--ignored", "--nocapture"])
            .output()
            .expect("it starts");
        let said =
            [alone.stdout, alone.stderr].map(|part| String::from_utf8_lossy(&part).into_owned()).concat();
        assert!(alone.status.success() && said.contains("1 passed"), "{said}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "the test above runs it: what other tests open in this process would be counted, too"]
    async fn counted_in_a_process_of_its_own() {
        let pool = WorkerPool::new(config().workers(2).recycle_after(50)).expect("it starts");
        for _ in 0..4 {
            go(&pool, "return 1").await;
        }
        let before = descriptors();
        for n in 0..500_u32 {
            match n % 25 {
                7 => {
                    if let Some(pid) = pool.idle_pids().first() {
                        kill(*pid);
                    }
                }
                13 => {
                    let run = go(&pool, "await callTool('never', {})");
                    assert!(tokio::time::timeout(Duration::from_millis(3), run).await.is_err());
                }
                _ => {}
            }
            let outcome = go(&pool, "return await callTool('echo', 1)").await;
            assert!(
                matches!(outcome.result, Ok(_) | Err(RunError::Worker(WorkerError::Crashed(_)))),
                "{:?}",
                outcome.result
            );
        }
        pool.shutdown().await;
        assert_eq!(children(), Vec::<String>::new());
        drop(pool);
        assert!(descriptors() <= before, "{} descriptors, {before} before", descriptors());
    }
}

/// A host whose tool `deeper` runs a script of its own in the same pool, down to a level.
struct Nested {
    pool: Arc<WorkerPool>,
    level: usize,
    deepest: usize,
}

impl Host for Nested {
    fn call_tool(&self, _: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        Box::pin(async move {
            let level = self.level + 1;
            let mut request = RunRequest::new(if level == self.deepest {
                "return 1"
            } else {
                "return 1 + await callTool('deeper')"
            });
            request.level = level;
            let host = Arc::new(Self { pool: self.pool.clone(), level, deepest: self.deepest });
            let outcome = self.pool.run(request, host, CancellationToken::new()).await;
            outcome
                .result
                .map(ToolAnswer::Value)
                .map_err(|error| failure("TOOL_EXECUTION_ERROR", &error.to_string()))
        })
    }

    fn get_tool(&self, _: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        Box::pin(async { Err(failure("TOOL_NOT_FOUND", "there is no such tool")) })
    }
}

async fn nested(pool: &Arc<WorkerPool>, deepest: usize) -> Outcome {
    let host = Arc::new(Nested { pool: pool.clone(), level: 0, deepest });
    let mut request = RunRequest::new("return 1 + await callTool('deeper')");
    request.limits.timeout = Duration::from_secs(30);
    pool.run(request, host, CancellationToken::new()).await
}

#[tokio::test]
async fn runs_that_wait_for_each_other_end_though_every_worker_is_taken() {
    for config in [config().workers(1).queue(0), config().workers(2), config().workers(1).recycle_after(1)] {
        let pool = WorkerPool::new(config.queue_timeout(Duration::from_secs(20))).expect("it starts");
        let runs = (0..pool.stats().idle).map(|_| nested(&pool, MOST_LEVELS));
        for outcome in futures::future::join_all(runs).await {
            assert_eq!(value(&outcome), json!(MOST_LEVELS + 1));
        }
        // The places in reserve are free again, and the pool has no more workers than before.
        assert_eq!(value(&nested(&pool, MOST_LEVELS).await), json!(MOST_LEVELS + 1));
        pool.shutdown().await;
    }
}

#[tokio::test]
async fn a_level_without_a_worker_in_reserve_waits_as_long_as_the_queue_allows() {
    let config = config().workers(1).queue_timeout(Duration::from_millis(50));
    let pool = WorkerPool::new(config).expect("it starts");
    let outcome = nested(&pool, MOST_LEVELS + 1).await;
    let Err(RunError::ToolError { message, .. }) = &outcome.result else { panic!("{outcome:?}") };
    assert!(message.contains("waited 50 ms for a worker"), "{message}");
    assert_eq!(value(&nested(&pool, MOST_LEVELS).await), json!(MOST_LEVELS + 1));
}

#[tokio::test]
async fn a_run_in_reserve_that_is_dropped_or_killed_gives_its_place_back() {
    let pool = WorkerPool::new(config().workers(1).queue(0)).expect("it starts");
    for _ in 0..2 {
        let host = Arc::new(Tools::default());
        let mut outer = RunRequest::new("return await callTool('never')");
        outer.limits.timeout = Duration::from_secs(30);
        let (cancel, cancel_inner) = (CancellationToken::new(), CancellationToken::new());
        let holds = tokio::spawn({
            let (pool, cancel) = (pool.clone(), cancel.clone());
            async move { pool.run(outer, host, cancel).await }
        });
        while pool.stats().running == 0 || pool.stats().idle > 0 {
            tokio::task::yield_now().await;
        }
        let inner = |source: &str| RunRequest { level: 1, ..RunRequest::new(source) };
        let run = |request| pool.run(request, Arc::new(Tools::default()), cancel_inner.clone());
        assert_eq!(value(&run(inner("return 1")).await), json!(1));
        let killed = run(inner(
            "const a = []; for (let i = 0; i < 90000; i++) a.push('x'.repeat(10000) + i); return 1",
        ))
        .await;
        assert!(killed.result.is_err());
        let dropped =
            tokio::time::timeout(Duration::from_millis(50), run(inner("return await callTool('never')")));
        assert!(dropped.await.is_err());
        assert_eq!(value(&run(inner("return 2")).await), json!(2));
        cancel.cancel();
        holds.await.expect("it ends");
        while pool.stats().idle == 0 {
            tokio::task::yield_now().await;
        }
    }
}

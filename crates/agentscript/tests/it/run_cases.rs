//! Runs of the corpus: every script has its expected outcome within its limit and a second, and harms nothing.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gatewright_agentscript::{
    Limits, Outcome, RunError, RunRequest, RunResult, ScriptPolicy, WorkerError, WorkerPool,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    cases::{self, Case, Expect},
    support::{Tools, config, value},
};

/// Time limit of a case.
const TIMEOUT: Duration = Duration::from_millis(600);

fn is_limit(result: &RunResult) -> bool {
    match result {
        Err(RunError::Timeout { .. }) => true,
        Err(RunError::RuntimeError { name, message, .. }) => {
            name.ends_with("LimitError") || name.starts_with("Result") || message.contains("stack")
        }
        Err(RunError::Worker(error)) => matches!(
            error,
            WorkerError::Timeout(_)
                | WorkerError::MemoryExceeded(_)
                | WorkerError::TooManyPendingCalls(_)
                | WorkerError::MessageTooLarge(_)
                | WorkerError::MessageFlood(_)
        ),
        _ => false,
    }
}

/// Returns true when the worker died or broke the protocol.
fn is_broken(result: &RunResult) -> bool {
    matches!(
        result,
        Err(RunError::Worker(
            WorkerError::Crashed(_) | WorkerError::MessageInvalid | WorkerError::StartupFailed(_)
        ))
    )
}

fn lands(case: &Case, result: &RunResult) -> bool {
    match (&case.expect, result) {
        (Expect::Illegal(kind) | Expect::Stopped(kind), Err(RunError::IllegalAccess { kind: got, .. })) => {
            got.to_string() == *kind
        }
        (Expect::Syntax(line, column), Err(RunError::SyntaxError { location, .. })) => {
            (location.line, location.column) == (*line, *column)
        }
        (Expect::Ok(expected), Ok(got)) => {
            serde_json::from_str::<serde_json::Value>(got.get()).is_ok_and(|got| got == *expected)
        }
        (Expect::Runtime(name), Err(RunError::RuntimeError { name: got, .. })) => got == name,
        (Expect::Runtime(name), Err(RunError::ToolError { .. })) => name == "ToolError",
        (Expect::Memory, Err(RunError::Worker(WorkerError::MemoryExceeded(_)))) => true,
        (Expect::Limit, result) => is_limit(result),
        (Expect::Safe, result) => !is_broken(result),
        _ => false,
    }
}

/// Result of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Landing {
    Right,
    /// Time ran out: of a script that had not ended, or of a landing that is right.
    Late(String),
    Wrong(String),
}

fn judge(case: &Case, result: &RunResult, took: Duration, timeout: Duration) -> Landing {
    let name = format!("{}/{}", case.family, case.name);
    if lands(case, result) {
        let late = took > timeout + Duration::from_secs(1);
        return if late { Landing::Late(format!("{name}: took {took:?}")) } else { Landing::Right };
    }
    let got: String = format!("{result:?}").chars().take(200).collect();
    let complaint = format!("{name}: expected {:?}, got {got}", case.expect);
    match result {
        Err(RunError::Timeout { .. })
        | Err(RunError::Worker(WorkerError::Timeout(_) | WorkerError::QueueTimeout(_))) => {
            Landing::Late(complaint)
        }
        _ => Landing::Wrong(complaint),
    }
}

/// Runs `case`.
async fn landing(pool: &WorkerPool, case: &Case, timeout: Duration) -> Landing {
    let mut request = RunRequest::new(case.script.clone());
    request.policy = ScriptPolicy::new(case.preset).reserved_tool_prefixes(["codecall:", "codecall_"]);
    request.limits = Limits { timeout, ..Limits::preset(case.preset) };
    let started = Instant::now();
    let outcome: Outcome = pool.run(request, Arc::new(Tools::default()), CancellationToken::new()).await;
    judge(case, &outcome.result, started.elapsed(), timeout)
}

#[test]
fn only_what_ended_late_is_tried_again() {
    let case = |expect: Expect| Case {
        family: "some".to_owned(),
        name: "case".to_owned(),
        preset: gatewright_agentscript::Preset::Secure,
        expect,
        script: String::new(),
    };
    let ok = || case(Expect::Ok(json!(1)));
    let value = |text: &str| Ok(serde_json::from_str(text).unwrap());
    let (soon, late) = (Duration::from_millis(5), TIMEOUT + Duration::from_secs(2));
    let timeout = || Err(RunError::Timeout { message: String::new() });
    assert_eq!(judge(&ok(), &value("1"), soon, TIMEOUT), Landing::Right);
    assert_eq!(judge(&case(Expect::Limit), &timeout(), soon, TIMEOUT), Landing::Right);
    for (case, result, took) in [
        (ok(), value("1"), late),
        (case(Expect::Limit), timeout(), late),
        (ok(), timeout(), soon),
        (case(Expect::Memory), timeout(), soon),
        (ok(), Err(RunError::Worker(WorkerError::Timeout(TIMEOUT))), soon),
        (ok(), Err(RunError::Worker(WorkerError::QueueTimeout(TIMEOUT))), soon),
    ] {
        assert!(matches!(judge(&case, &result, took, TIMEOUT), Landing::Late(_)), "{case:?} {result:?}");
    }
    for (case, result) in [
        (ok(), value("2")),
        (ok(), Err(RunError::Worker(WorkerError::MemoryExceeded(1)))),
        (ok(), Err(RunError::Worker(WorkerError::Crashed(String::new())))),
        (case(Expect::Limit), value("1")),
        (case(Expect::Memory), Err(RunError::Worker(WorkerError::MessageTooLarge(1)))),
        (case(Expect::Safe), Err(RunError::Worker(WorkerError::Crashed(String::new())))),
        (case(Expect::Illegal("IllegalTimer".to_owned())), value("1")),
    ] {
        for took in [soon, late] {
            assert!(matches!(judge(&case, &result, took, TIMEOUT), Landing::Wrong(_)), "{case:?} {result:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_script_of_the_corpus_ends_as_it_says_within_its_limit_and_harms_nothing() {
    // A worker that starts late is late like any other; what is judged here is the runs.
    let patient = config().startup_timeout(Duration::from_secs(60)).queue_timeout(Duration::from_secs(60));
    let pool =
        WorkerPool::new(patient.workers(2).watchdog_extra(Duration::from_millis(300))).expect("it starts");
    let cases = Arc::new(cases::all());
    let lanes: Vec<_> = (0..2)
        .map(|lane| {
            let (pool, cases) = (Arc::clone(&pool), Arc::clone(&cases));
            tokio::spawn(async move {
                let (mut late, mut wrong) = (Vec::new(), Vec::new());
                for at in (lane..cases.len()).step_by(2) {
                    match landing(&pool, &cases[at], TIMEOUT).await {
                        Landing::Right => {}
                        Landing::Late(_) => late.push(at),
                        Landing::Wrong(complaint) => wrong.push(complaint),
                    }
                }
                (late, wrong)
            })
        })
        .collect();
    let (mut again, mut wrong) = (Vec::new(), Vec::new());
    for lane in lanes {
        let (late, complaints) = lane.await.expect("no panic");
        again.extend(late);
        wrong.extend(complaints);
    }
    // A worker that others keep from the processor ends late through no fault of its own: each gets more time, and more than one
    // try. What landed elsewhere is wrong at once.
    for at in again {
        let mut last = Landing::Right;
        for times in [2, 4, 8] {
            last = landing(&pool, &cases[at], TIMEOUT * times).await;
            if !matches!(last, Landing::Late(_)) {
                break;
            }
        }
        if let Landing::Late(complaint) | Landing::Wrong(complaint) = last {
            wrong.push(complaint);
        }
    }
    let after =
        pool.run(RunRequest::new("return 1"), Arc::new(Tools::default()), CancellationToken::new()).await;
    assert_eq!(value(&after), json!(1));
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Pieces of random scripts that make the engine's native code work.
const PIECES: &[&str] = &[
    "a",
    "b",
    "[]",
    "{}",
    "(",
    ")",
    "[a]",
    "{a}",
    "=>",
    "=",
    "+",
    ";",
    ",",
    "...",
    "await ",
    "return ",
    "new ",
    "typeof ",
    "async ",
    "class A ",
    "function* f() ",
    "yield ",
    "for (const a of b) ",
    "while (1) ",
    "try {",
    "} catch (a) {",
    "}",
    "throw ",
    "null",
    "1e308",
    "-0",
    "1n",
    "'x'",
    "`${a}`",
    "/(a+)+b/",
    "Array(1e9)",
    ".map(",
    ".sort(",
    ".join()",
    ".repeat(1e6)",
    ".then(",
    "Promise.all(",
    "callTool('echo', ",
    "a?.b",
    "a[b]",
    "JSON.parse(",
    "Object.keys(",
    "__safe_parallel(",
    "let a = [1, 2]; ",
    "let b = (x) => x; ",
    "new Map(",
    "new Uint8Array(1e6)",
    "a.b = ",
    "delete a.b",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_scripts_neither_break_a_worker_nor_outlive_their_limit() {
    let pool =
        WorkerPool::new(config().workers(2).watchdog_extra(Duration::from_millis(100))).expect("it starts");
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut pick = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as usize % below
    };
    for _ in 0..1_000 {
        let script: String = (0..2 + pick(12)).map(|_| PIECES[pick(PIECES.len())]).collect();
        // Late five times in a row is late; once can be the machine.
        let mut took = Duration::MAX;
        for _ in 0..5 {
            let mut request = RunRequest::new(format!("let a = [3, 1, 2], b = (x) => x; {script}"));
            request.limits.timeout = Duration::from_millis(100);
            let started = Instant::now();
            let outcome = pool.run(request, Arc::new(Tools::default()), CancellationToken::new()).await;
            assert!(!is_broken(&outcome.result), "{script}: {:?}", outcome.result);
            took = started.elapsed();
            if took < Duration::from_millis(1_100) {
                break;
            }
        }
        assert!(took < Duration::from_millis(1_100), "{script}: {took:?}");
    }
}

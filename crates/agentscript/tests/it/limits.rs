//! Every limit, tested with a script that tries to exceed it and catches every error.

use std::{sync::Arc, time::Duration};

use gatewright_agentscript::{
    CallStatus, IllegalKind, Outcome, RunError, RunRequest, WorkerError, WorkerPool,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::support::{Tools, config, limited, run, run_with, value};

#[track_caller]
fn ended_by(outcome: &Outcome, limit: &str, says: &str) {
    match &outcome.result {
        Err(RunError::RuntimeError { name, message, .. }) => {
            assert_eq!(name, limit);
            assert!(message.contains(says), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn timeout_ends_a_busy_script_and_says_the_limit() {
    let outcome = limited("for (;;) { try { for (;;) {} } catch {} }", |limits| {
        limits.timeout = Duration::from_millis(150);
        limits.max_iterations = u64::MAX;
    })
    .await;
    assert!(
        matches!(&outcome.result, Err(RunError::Timeout { message }) if message.contains("150 ms")),
        "{:?}",
        outcome.result
    );
    assert!(outcome.duration < Duration::from_millis(1150));
}

#[tokio::test]
async fn timeout_names_the_calls_still_open() {
    let outcome = limited("await callTool('echo', {}); await callTool('never', {})", |limits| {
        limits.timeout = Duration::from_millis(150);
    })
    .await;
    assert!(
        matches!(&outcome.result, Err(RunError::Timeout { message }) if message.ends_with("still open: never")),
        "{:?}",
        outcome.result
    );
    let statuses: Vec<_> = outcome.calls.iter().map(|call| call.status).collect();
    assert_eq!(statuses, [CallStatus::Ok, CallStatus::Open]);
    assert!(outcome.calls[1].duration_ms > 50.0);
}

#[tokio::test]
async fn a_flood_of_microtasks_ends_in_time() {
    let outcome = limited("const f = () => Promise.resolve().then(f); await f()", |limits| {
        limits.timeout = Duration::from_millis(150);
        limits.max_iterations = u64::MAX;
    })
    .await;
    assert!(
        matches!(
            outcome.result,
            Err(RunError::Timeout { .. }) | Err(RunError::Worker(WorkerError::MemoryExceeded(_)))
        ),
        "{:?}",
        outcome.result
    );
}

#[tokio::test]
async fn a_native_loop_that_ignores_interrupts_is_killed_and_its_work_is_kept() {
    let outcome = limited(
        "console.log('before'); await callTool('echo', {}); callTool('never', {}); return Array(2 ** 32 - 2).join()",
        |limits| limits.timeout = Duration::from_millis(150),
    )
    .await;
    assert!(
        matches!(
            outcome.result,
            Err(RunError::Timeout { .. })
                | Err(RunError::Worker(WorkerError::Timeout(_) | WorkerError::MemoryExceeded(_)))
        ),
        "{:?}",
        outcome.result
    );
    assert!(outcome.duration < Duration::from_millis(1150), "{:?}", outcome.duration);
    assert_eq!(outcome.logs, ["before"]);
    assert_eq!(
        outcome.calls.iter().map(|call| call.status).collect::<Vec<_>>(),
        [CallStatus::Ok, CallStatus::Open]
    );
    assert_eq!(value(&run("return 1").await), json!(1));
}

#[tokio::test]
async fn catastrophic_regular_expressions_end_in_time() {
    let outcome = limited("return /^(a+)+$/.test('a'.repeat(40) + 'b')", |limits| {
        limits.timeout = Duration::from_millis(150)
    })
    .await;
    assert!(outcome.result.is_err(), "{:?}", outcome.result);
    assert!(outcome.duration < Duration::from_millis(1150));
}

#[tokio::test]
async fn max_iterations_ends_the_run_and_the_message_mentions_an_iteration_limit() {
    let outcome = limited("try { for (let i = 0; i < 5000; i++) {} } catch { } return 'went on'", |limits| {
        limits.max_iterations = 1000
    })
    .await;
    ended_by(&outcome, "IterationLimitError", "iteration limit");
}

#[tokio::test]
async fn callbacks_of_native_functions_count_as_iterations() {
    let outcome = limited("return Array.from({ length: 5000 }).map((_, i) => i).length", |limits| {
        limits.max_iterations = 1000
    })
    .await;
    ended_by(&outcome, "IterationLimitError", "1000");
}

#[tokio::test]
async fn max_tool_calls_ends_the_run() {
    let outcome = limited(
        "for (let i = 0; i < 10; i++) { try { await callTool('echo', {}) } catch { } } return 'went on'",
        |limits| limits.max_tool_calls = 3,
    )
    .await;
    ended_by(&outcome, "ToolCallLimitError", "3 tool calls");
    assert_eq!(outcome.calls.len(), 3);
}

#[tokio::test]
async fn memory_ends_the_run_and_cannot_be_caught() {
    let source = "const all = []; try { for (let i = 0; i < 90000; i++) all.push(new Array(1000).fill(i)) } catch { } return 'went on'";
    let outcome = limited(source, |limits| limits.memory_bytes = 8 << 20).await;
    assert!(
        matches!(outcome.result, Err(RunError::Worker(WorkerError::MemoryExceeded(bytes))) if bytes == 8 << 20),
        "{:?}",
        outcome.result
    );
}

#[tokio::test]
async fn recursion_without_end_is_a_runtime_error() {
    let outcome = run("const f = () => f(); return f()").await;
    assert!(
        matches!(&outcome.result, Err(RunError::RuntimeError { message, .. }) if message.contains("stack") || message.contains("limit")),
        "{:?}",
        outcome.result
    );
}

#[tokio::test]
async fn script_size_is_limited() {
    let mut request = RunRequest::new("return 1 ".repeat(100));
    request.limits.script_bytes = 100;
    assert!(matches!(
        run_with(request).await.result,
        Err(RunError::IllegalAccess { kind: IllegalKind::ScriptTooLarge, .. })
    ));
}

#[tokio::test]
async fn result_size_is_limited() {
    let outcome = limited("return 'x'.repeat(5000)", |limits| limits.result_bytes = 1000).await;
    ended_by(&outcome, "ResultSizeError", "1000");
}

#[tokio::test]
async fn console_lines_beyond_the_limit_are_left_out_and_counted_and_the_script_goes_on() {
    let outcome =
        limited("for (let i = 0; i < 50; i++) console.log(i); return 1", |limits| limits.log_lines = 10)
            .await;
    assert_eq!(value(&outcome), json!(1));
    assert_eq!((outcome.logs.len(), outcome.logs_omitted), (10, 40));
}

#[tokio::test]
async fn a_console_line_beyond_the_byte_limit_is_shortened_and_later_ones_are_counted() {
    let source = "console.log('a'); console.log('é'.repeat(5000)); console.log('b'); throw new Error('late')";
    let outcome = limited(source, |limits| limits.log_bytes = 1000).await;
    assert!(matches!(&outcome.result, Err(RunError::RuntimeError { message, .. }) if message == "late"));
    assert_eq!(outcome.logs, ["a".to_owned(), "é".repeat(499)]);
    assert_eq!(outcome.logs_omitted, 2);
}

#[tokio::test]
async fn the_latest_values_of_progress_are_kept_within_their_limits_however_a_run_ends() {
    let outcome = run("for (let n = 0; n < 100; n++) progress({ n }); for (;;) progress('on')").await;
    assert!(outcome.result.is_err());
    assert_eq!(outcome.progress.len(), gatewright_agentscript::PROGRESS_VALUES);
    let outcome = run("for (let n = 0; n < 5; n++) progress({ n, text: 'x'.repeat(6000) }); throw 1").await;
    let kept: Vec<serde_json::Value> =
        outcome.progress.iter().map(|value| serde_json::from_str(value.get()).unwrap()).collect();
    assert_eq!(kept.iter().map(|value| &value["n"]).collect::<Vec<_>>(), [3, 4]);
    let outcome = run("try { progress('x'.repeat(20000)) } catch (e) { return e.message }").await;
    assert!(value(&outcome).as_str().unwrap().contains("20002 bytes of JSON; at most 16384"), "{outcome:?}");
    let deep = "(() => { let o = []; for (let n = 0; n < 130; n++) o = [o]; return o })()";
    for unreadable in [deep, "{ '$serde_json::private::RawValue': '[' }"] {
        let script = format!("try {{ progress({unreadable}) }} catch (e) {{ return e.message }}");
        let outcome = run(&script).await;
        assert!(value(&outcome).as_str().unwrap().contains("nested deeper than 100"), "{outcome:?}");
    }
    let outcome = run("try { progress(Promise.resolve()) } catch (e) { return e.message }").await;
    assert!(value(&outcome).as_str().unwrap().contains("await it"), "{outcome:?}");
}

#[tokio::test]
async fn asking_for_too_many_tools_in_a_second_says_what_to_do() {
    let outcome = limited("for (let i = 0; i < 2001; i++) getTool('x')", |_| ()).await;
    match outcome.result {
        Err(RunError::Worker(error @ WorkerError::MessageFlood(2_000))) => {
            assert!(error.to_string().ends_with("keep what getTool returns in a variable"), "{error}");
        }
        // On a machine that takes longer than a second for them they are within the limit.
        other => assert!(matches!(other, Ok(_) | Err(RunError::Timeout { .. })), "{other:?}"),
    }
}

#[tokio::test]
async fn message_too_large_up_and_down() {
    for source in ["await callTool('echo', 'x'.repeat(5000))", "await callTool('big', { bytes: 5000 })"] {
        let outcome = limited(&format!("try {{ {source} }} catch {{ }} return 'went on'"), |limits| {
            limits.message_bytes = 1000
        })
        .await;
        assert!(
            matches!(outcome.result, Err(RunError::Worker(WorkerError::MessageTooLarge(1000)))),
            "{source}: {:?}",
            outcome.result
        );
    }
}

#[tokio::test]
async fn message_flood_ends_the_run() {
    let outcome = limited("for (let i = 0; i < 100; i++) await getTool('echo')", |limits| {
        limits.messages_per_second = 20
    })
    .await;
    assert!(
        matches!(outcome.result, Err(RunError::Worker(WorkerError::MessageFlood(20)))),
        "{:?}",
        outcome.result
    );
}

#[tokio::test]
async fn too_many_pending_calls_end_the_run() {
    let outcome =
        limited("await Promise.all([1, 2, 3, 4, 5, 6].map(() => callTool('never', {})))", |limits| {
            limits.max_pending_calls = 5
        })
        .await;
    assert!(
        matches!(outcome.result, Err(RunError::Worker(WorkerError::TooManyPendingCalls(5)))),
        "{:?}",
        outcome.result
    );
    assert_eq!(outcome.calls.len(), 5);
}

#[tokio::test]
async fn comparing_texts_of_full_length_ends_in_time_without_the_watchdog() {
    // So late that only the run itself can end it in time.
    let late = Duration::from_secs(600);
    let pool = WorkerPool::new(config().workers(1).watchdog_extra(late)).unwrap();
    // Each character has eighteen parts; a comparison of them takes minutes in a build that is not optimised.
    let mut request = RunRequest::new(
        "const long = '\\ufdfa'.repeat(524287); for (;;) (long + 'a').localeCompare(long + 'b')",
    );
    request.limits.timeout = Duration::from_millis(200);
    request.limits.max_iterations = u64::MAX;
    let outcome = pool.run(request, Arc::new(Tools::default()), CancellationToken::new()).await;
    assert!(matches!(outcome.result, Err(RunError::Timeout { .. })), "{:?}", outcome.result);
    // One comparison to its end takes longer.
    assert!(outcome.duration < Duration::from_secs(20), "{:?}", outcome.duration);
}

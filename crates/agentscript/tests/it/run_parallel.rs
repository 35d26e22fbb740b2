//! `__safe_parallel`, row by row of its contract.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gatewright_agentscript::{
    Host, HostFuture, Limits, Preset, RunError, RunRequest, ToolAnswer, ToolCall, ToolFailure,
};
use serde_json::{json, value::RawValue};
use tokio_util::sync::CancellationToken;

use super::support::{limited, pool, raw, run, value};

/// Counts how many calls are open at once.
#[derive(Default)]
struct Gauge {
    open: AtomicUsize,
    most: AtomicUsize,
}

impl Host for Gauge {
    fn call_tool(&self, _: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        Box::pin(async move {
            let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(open, Ordering::SeqCst);
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            self.open.fetch_sub(1, Ordering::SeqCst);
            Ok(raw(&json!(null)).into())
        })
    }

    fn get_tool(&self, _: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        Box::pin(async { Ok(raw(&json!({}))) })
    }
}

async fn most_at_once(options: &str) -> usize {
    let gauge = Arc::new(Gauge::default());
    let source = format!(
        "const fns = Array.from({{ length: 60 }}, () => () => callTool('x', {{}}));
         await __safe_parallel(fns{options}); return 1"
    );
    let outcome = pool().run(RunRequest::new(source), gauge.clone(), CancellationToken::new()).await;
    assert_eq!(value(&outcome), json!(1));
    gauge.most.load(Ordering::SeqCst)
}

#[tokio::test]
async fn results_come_back_in_input_order() {
    let outcome =
        run("return await __safe_parallel([1, 2, 3].map((n) => async () => { if (n < 3) await callTool('yield', n); return n * 10 }))").await;
    assert_eq!(value(&outcome), json!([10, 20, 30]));
    assert_eq!(value(&run("return await __safe_parallel([])").await), json!([]));
}

#[tokio::test]
async fn at_most_ten_run_at_once_by_default() {
    assert_eq!(most_at_once("").await, 10);
}

#[tokio::test]
async fn max_concurrency_is_obeyed_and_clamped_to_twenty() {
    assert_eq!(most_at_once(", { maxConcurrency: 3 }").await, 3);
    assert_eq!(most_at_once(", { maxConcurrency: 500 }").await, 20);
}

#[tokio::test]
async fn max_concurrency_that_is_not_a_number_of_at_least_one_is_an_error() {
    for bad in ["0", "-1", "NaN", "'5'", "null"] {
        let outcome =
            run(&format!("return await __safe_parallel([async () => 1], {{ maxConcurrency: {bad} }})")).await;
        assert!(
            matches!(&outcome.result, Err(RunError::RuntimeError { name, message, .. }) if name == "RangeError" && message.contains("maxConcurrency")),
            "{bad}: {:?}",
            outcome.result
        );
    }
}

#[tokio::test]
async fn one_hundred_operations_are_allowed_and_one_more_is_an_error() {
    let many = |n: u32| {
        format!(
            "return (await __safe_parallel(Array.from({{ length: {n} }}, (_, i) => async () => i))).length"
        )
    };
    assert_eq!(value(&run(&many(100)).await), json!(100));
    let outcome = run(&many(101)).await;
    assert!(matches!(outcome.result, Err(RunError::RuntimeError { message, .. }) if message.contains("100")));
}

#[tokio::test]
async fn a_failure_fails_the_call_with_one_line_per_failure_after_all_have_ended() {
    let outcome = run(
        "let ended = 0;
         const fns = [async () => { await callTool('yield', 1); ended++ }, () => callTool('fail', {}), async () => { throw new Error('own') }, async () => { ended++ }];
         try { await __safe_parallel(fns) } catch (e) { return [e.message, ended] }",
    )
    .await;
    assert_eq!(value(&outcome), json!(["2 of 4 parallel operations failed\n[1]: no such user\n[2]: own", 2]));
}

#[tokio::test]
async fn each_failure_has_one_line_whatever_its_message_holds() {
    let outcome = run(
        "const ends = ['\\n', '\\r', '\\r\\n', '\\u2028', '\\u2029', '\\v', '\\f', '\\u0085'];
         try { await __safe_parallel(ends.map((end) => async () => { throw new Error('a' + end + '[9]: b') })) }
         catch (e) { return e.message }",
    )
    .await;
    let lines: Vec<String> = (0..8).map(|n| format!("[{n}]: a [9]: b")).collect();
    assert_eq!(value(&outcome), json!(format!("8 of 8 parallel operations failed\n{}", lines.join("\n"))));
}

#[tokio::test]
async fn an_uncaught_parallel_failure_is_a_runtime_error() {
    let outcome = run("await __safe_parallel([() => callTool('fail', {})])").await;
    assert!(
        matches!(outcome.result, Err(RunError::RuntimeError { message, .. }) if message == "1 of 1 parallel operations failed\n[0]: no such user")
    );
}

#[tokio::test]
async fn what_is_not_a_function_is_refused_before_anything_runs() {
    let outcome = run("await __safe_parallel([async () => callTool('echo', {}), 5])").await;
    assert!(matches!(outcome.result, Err(RunError::RuntimeError { name, .. }) if name == "TypeError"));
    assert!(outcome.calls.is_empty());
}

#[tokio::test]
async fn settle_gives_the_outcome_of_each_slot_in_order() {
    let outcome = run("return await __safe_parallel([
           () => callTool('echo', { a: 1 }), () => callTool('fail', {}), async () => { throw new TypeError('mine') },
           async () => { throw 'text' }, async () => undefined], { settle: true })")
    .await;
    let rejected = |reason| json!({ "status": "rejected", "reason": reason });
    assert_eq!(
        value(&outcome),
        json!([
            { "status": "fulfilled", "value": { "a": 1 } },
            rejected(json!({ "name": "ToolError", "code": "NOT_FOUND", "message": "no such user", "toolName": "fail" })),
            rejected(json!({ "name": "TypeError", "message": "mine" })),
            rejected(json!({ "name": "Error", "message": "text" })),
            { "status": "fulfilled" },
        ])
    );
}

#[tokio::test]
async fn settle_is_any_value_that_is_true() {
    let slots =
        run("return await __safe_parallel([async () => { throw new Error('x') }], { settle: 1 })").await;
    assert_eq!(value(&slots)[0]["status"], "rejected");
    let outcome =
        run("return await __safe_parallel([async () => { throw new Error('x') }], { settle: 0 })").await;
    assert!(outcome.result.is_err(), "{:?}", outcome.result);
}

#[tokio::test]
async fn long_messages_of_many_failures_are_shortened_before_they_are_put_together() {
    for (fail, options) in [("throw new Error(message)", ""), ("throw message", ", { settle: true }")] {
        let source = format!(
            "const message = 'ab\\n'.repeat(16000000);
             try {{
               const slots = await __safe_parallel(Array.from({{ length: 100 }}, () => async () => {{ {fail} }}){options});
               return slots.map((slot) => slot.reason.message.length)
             }} catch (e) {{ return e.message.split('\\n').slice(1).map((line) => line.length) }}"
        );
        let outcome = limited(&source, |limits| *limits = Limits::preset(Preset::Experimental)).await;
        let lengths = value(&outcome);
        let lengths = lengths.as_array().unwrap();
        assert_eq!(lengths.len(), 100);
        assert!(
            lengths.iter().all(|length| (8_192..8_300).contains(&length.as_u64().unwrap())),
            "{lengths:?}"
        );
        assert!(outcome.duration < Duration::from_secs(8), "{fail}: {:?}", outcome.duration);
    }
}

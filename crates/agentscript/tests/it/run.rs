//! Abilities of scripts: call tools, look them up, see its context, write to the console.

use std::{sync::Arc, time::Duration};

use gatewright_agentscript::{
    Adapter, CallStatus, Host, HostFuture, PoolConfig, Preset, RunError, RunRequest, ScriptPolicy,
    ToolAnswer, ToolCall, ToolFailure, WorkerPool,
};
use serde_json::{json, value::RawValue};
use tokio_util::sync::CancellationToken;

use super::support::{Tools, config, pool, raw, run, run_with, value};

#[tokio::test]
async fn call_tool_crosses_to_the_host_and_back() {
    let outcome = run("return await callTool('echo', { id: 7 })").await;
    assert_eq!(value(&outcome), json!({ "id": 7 }));
    assert_eq!(outcome.calls.len(), 1);
    assert_eq!((outcome.calls[0].name.as_str(), outcome.calls[0].status), ("echo", CallStatus::Ok));
}

#[tokio::test]
async fn call_tool_without_input_sends_an_empty_object() {
    assert_eq!(value(&run("return await callTool('echo')").await), json!({}));
}

#[tokio::test]
async fn call_tool_throws_by_default_an_error_with_code_and_tool_name() {
    let outcome = run(
        "try { await callTool('fail', {}) } catch (e) { return [e instanceof Error, e.name, e.code, e.toolName, e.message] }",
    )
    .await;
    assert_eq!(value(&outcome), json!([true, "ToolError", "NOT_FOUND", "fail", "no such user"]));
    assert_eq!(outcome.calls[0].code.as_deref(), Some("NOT_FOUND"));
}

#[tokio::test]
async fn call_tool_with_throw_on_error_false_returns_success_data_and_error() {
    let outcome = run("const a = await callTool('echo', { x: 1 }, { throwOnError: false });
         const b = await callTool('fail', {}, { throwOnError: false });
         return [a, b]")
    .await;
    assert_eq!(
        value(&outcome),
        json!([
            { "success": true, "data": { "x": 1 }, "error": null },
            { "success": false, "data": null, "error": { "message": "no such user", "code": "NOT_FOUND" } }
        ])
    );
}

#[tokio::test]
async fn get_tool_gives_name_description_and_schemas() {
    let got = value(&run("return await getTool('crm:list')").await);
    assert_eq!(
        got,
        json!({ "name": "crm:list", "description": "d", "inputSchema": {}, "outputSchema": null })
    );
    let missing = run("return await getTool('missing')").await;
    assert!(matches!(missing.result, Err(RunError::ToolError { code, .. }) if code == "TOOL_NOT_FOUND"));
    assert!(missing.calls.is_empty(), "looking a tool up is not a tool call");
}

#[tokio::test]
async fn get_tool_answers_at_once_and_can_be_awaited_too() {
    let source = "const tool = getTool('crm:list');
        try { getTool('missing'); } catch (e) { return [tool.name, e.name, e.code, e.toolName, (await getTool('x')).name]; }";
    let expected = json!(["crm:list", "ToolError", "TOOL_NOT_FOUND", "missing", "x"]);
    assert_eq!(value(&run(source).await), expected);
    let thread = PoolConfig::default().adapter(Adapter::InProcess).workers(1);
    let pool = WorkerPool::new(thread).expect("it starts");
    let outcome =
        pool.run(RunRequest::new(source), Arc::new(Tools::default()), CancellationToken::new()).await;
    assert_eq!(value(&outcome), expected);
}

#[tokio::test]
async fn answers_that_come_while_a_script_asks_for_a_tool_reach_it_in_order() {
    let outcome = run("const seen = [];
         const calls = [1, 2, 3].map((n) => callTool(n === 2 ? 'fail' : 'echo', n).then((v) => seen.push(v), (e) => seen.push(e.code)));
         for (let i = 0; i < 20; i++) seen.push(getTool('t' + i).name);
         const before = seen.length;
         await Promise.all(calls);
         return [before, seen.slice(20)]")
    .await;
    assert_eq!(value(&outcome), json!([20, [1, "NOT_FOUND", 3]]));
}

/// A host that never answers.
#[derive(Debug)]
struct Silent;

impl Host for Silent {
    fn call_tool(&self, _: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        Box::pin(std::future::pending())
    }

    fn get_tool(&self, _: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn the_time_limit_holds_while_a_script_asks_for_a_tool() {
    for adapter in [Adapter::Processes, Adapter::InProcess] {
        let pool = WorkerPool::new(config().workers(1).adapter(adapter)).expect("it starts");
        let mut request = RunRequest::new("try { getTool('x') } catch { } return 'went on'");
        request.limits.timeout = Duration::from_millis(50);
        let outcome = pool.run(request, Arc::new(Silent), CancellationToken::new()).await;
        assert!(matches!(outcome.result, Err(RunError::Timeout { .. })), "{adapter:?}: {:?}", outcome.result);
        assert_eq!(pool.stats().replaced, 0, "the worker ended the run itself");
    }
}

#[tokio::test]
async fn locked_down_has_a_console_when_it_is_allowed_and_none_otherwise() {
    for (allowed, kind) in [(None, "undefined"), (Some(true), "object"), (Some(false), "undefined")] {
        let mut request = RunRequest::new("return typeof console");
        request.policy = ScriptPolicy::new(Preset::LockedDown);
        if let Some(allowed) = allowed {
            request.policy = request.policy.allow_console(allowed);
        }
        let outcome = run_with(request).await;
        let refused = matches!(outcome.result, Err(RunError::IllegalAccess { .. }));
        assert!(if refused { kind == "undefined" } else { value(&outcome) == json!(kind) }, "{allowed:?}");
    }
    let mut request = RunRequest::new("console.log('said'); return 1");
    request.policy = ScriptPolicy::new(Preset::LockedDown).allow_console(true);
    assert_eq!(run_with(request).await.logs, ["said"]);
}

#[tokio::test]
async fn seeds_of_runs_do_not_follow_from_each_other_and_are_known_afterwards() {
    let mut seeds = Vec::new();
    for _ in 0..4 {
        let outcome = run("return Math.random()").await;
        let inputs = outcome.inputs.expect("it began");
        seeds.push(inputs.seed);
        let mut again = RunRequest::new("return Math.random()");
        (again.seed, again.started_at) = (Some(inputs.seed), Some(inputs.started_at));
        assert_eq!(value(&run_with(again).await), value(&outcome));
    }
    let steps: Vec<u64> = seeds.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    assert!(steps[0] != steps[1] && steps[1] != steps[2] && steps[0] != steps[2], "{seeds:?}");
}

#[tokio::test]
async fn codecall_context_is_what_the_request_carried_and_frozen_all_the_way_down() {
    let mut request = RunRequest::new(
        "const tries = [() => { codecallContext.a = 2 }, () => { codecallContext.list.push(1) }, () => { codecallContext = {} },
           () => { delete codecallContext.a }, () => { codecallContext.list[0].deep = 1 }];
         const names = tries.map((f) => { try { f(); return 'no error' } catch (e) { return e.name } });
         return [codecallContext, names]",
    );
    request.context = Some(raw(&json!({ "a": 1, "list": [{ "deep": 0 }] })));
    let error = "TypeError";
    assert_eq!(
        value(&run_with(request).await),
        json!([{ "a": 1, "list": [{ "deep": 0 }] }, [error, error, error, error, error]])
    );
    assert_eq!(value(&run("return codecallContext").await), json!({}));
}

#[tokio::test]
async fn console_output_goes_to_the_logs_in_order() {
    let outcome = run("console.log('a', 1, { x: [1n, null] }); console.warn('b'); console.error(new TypeError('c')); return 1").await;
    assert_eq!(outcome.logs, ["a 1 {\"x\":[\"1\",null]}", "b", "TypeError: c"]);
}

#[tokio::test]
async fn without_permission_there_is_no_console() {
    let mut request = RunRequest::new("return typeof console");
    request.policy = ScriptPolicy::default().allow_console(false);
    let outcome = run_with(request).await;
    let refused = matches!(outcome.result, Err(RunError::IllegalAccess { .. }));
    assert!(refused || value(&outcome) == json!("undefined"));
    assert!(outcome.logs.is_empty());
}

#[tokio::test]
async fn promise_combinators_work_with_tool_calls() {
    let outcome = run("const all = await Promise.all([callTool('echo', 1), callTool('yield', 2)]);
         const settled = await Promise.allSettled([callTool('echo', 1), callTool('fail', {})]);
         const race = await Promise.race([callTool('yield', 'r'), new Promise(() => {})]);
         const any = await Promise.any([callTool('fail', {}), callTool('echo', 'a')]);
         return [all, settled.map((s) => s.status), race, any]")
    .await;
    assert_eq!(value(&outcome), json!([[1, 2], ["fulfilled", "rejected"], "r", "a"]));
}

#[tokio::test]
async fn date_and_math_random_work() {
    let outcome = run(
        "const before = Date.now(); const r = [Math.random(), Math.random()];
         return [before > 1.6e12, new Date().getTime() === before, new Date(0).toISOString(), Date.UTC(2020, 0, 1),
           r[0] !== r[1] && r.every((x) => x >= 0 && x < 1), new Date(2020, 0, 1) instanceof Date, new Date(0).getHours()]",
    )
    .await;
    assert_eq!(
        value(&outcome),
        json!([true, true, "1970-01-01T00:00:00.000Z", 1_577_836_800_000_i64, true, true, 0])
    );
}

#[tokio::test]
async fn two_runs_do_not_draw_the_same_random_numbers() {
    let (a, b) = (run("return Math.random()").await, run("return Math.random()").await);
    assert_ne!(value(&a), value(&b));
}

#[tokio::test]
async fn nothing_a_script_leaves_behind_is_seen_by_the_next_run() {
    let pool = pool();
    for _ in 0..6 {
        let source =
            "const seen = Array.leaked; try { Array.leaked = 1 } catch { } return seen === undefined";
        let outcome =
            pool.run(RunRequest::new(source), Arc::new(Tools::default()), CancellationToken::new()).await;
        assert_eq!(value(&outcome), json!(true));
    }
}

#[tokio::test]
async fn own_methods_may_have_the_names_of_inherited_ones() {
    let outcome = run("const o = {}; o.toString = () => 'mine'; o.valueOf = () => 3; o.constructor = 1;
         class P { toString() { return 'P' } }
         const e = new Error('a'); e.message = 'b'; e.name = 'Mine';
         return [`${o}`, o * 2, String(new P()), e.message, String(e), Object.keys(o)]")
    .await;
    // The validator may refuse the text; the realm must not.
    if !matches!(outcome.result, Err(RunError::IllegalAccess { .. })) {
        assert_eq!(
            value(&outcome),
            json!(["mine", 6, "P", "b", "Mine: b", ["toString", "valueOf", "constructor"]])
        );
    }
}

#[tokio::test]
async fn classes_generators_iterators_and_private_state_work() {
    let outcome = run(
        "class Bag { #items = []; add(x) { this.#items.push(x); return this } *[Symbol.iterator]() { yield* this.#items } get size() { return this.#items.length } }
         class Named extends Bag { toString() { return 'named' } }
         const bag = new Named().add(1).add(2);
         const later = async function* () { yield 1; yield 2 };
         const seen = []; for await (const x of later()) seen.push(x);
         class Oops extends Error { }
         let caught; try { throw new Oops('o') } catch (e) { caught = [e instanceof Oops, e instanceof Error, e.message] }
         return [[...bag], bag.size, `${bag}`, seen, caught, [3, 1, 2].toSorted(), Object.groupBy([1, 2], (x) => (x % 2 ? 'odd' : 'even'))]",
    )
    .await;
    assert_eq!(
        value(&outcome),
        json!([[1, 2], 2, "named", [1, 2], [true, true, "o"], [1, 2, 3], { "odd": [1], "even": [2] }])
    );
}

#[tokio::test]
async fn a_run_with_the_same_seed_and_start_does_the_same_again() {
    let pool = pool();
    let again = || async {
        let mut request = RunRequest::new(
            "const first = await callTool('echo', 1); return [Math.random(), Math.random(), new Date().getFullYear(), first]",
        );
        request.seed = Some(7);
        request.started_at = Some(std::time::UNIX_EPOCH);
        value(&pool.run(request, Arc::new(Tools::default()), CancellationToken::new()).await)
    };
    let first = again().await;
    assert_eq!(first, again().await);
    assert_eq!(first[2], 1970);
}

#[tokio::test]
async fn call_tool_with_paginate_passes_the_limit_on_and_refuses_others() {
    let outcome = run("const a = await callTool('pages', { x: 1 }, { paginate: { max: 500 } });
         const [b] = await __safe_parallel([() => callTool('pages', undefined, { paginate: { max: 1 }, throwOnError: false })]);
         return [a, b, await callTool('pages', {}, { paginate: undefined })]")
    .await;
    let settled = json!({"success": true, "data": {"input": {}, "max": 1}, "error": null});
    let expected = json!([{"input": {"x": 1}, "max": 500}, settled, {"input": {}, "max": null}]);
    assert_eq!(value(&outcome), expected);
    for bad in [
        "true",
        "{}",
        "null",
        "{ max: 0 }",
        "{ max: 1.5 }",
        "{ max: '5' }",
        "{ max: 10001 }",
        "{ max: Infinity }",
    ] {
        let script = format!("return await callTool('pages', {{}}, {{ paginate: {bad} }})");
        let outcome = run(&script).await;
        let error = outcome.result.unwrap_err().to_string();
        assert!(error.contains("paginate is { max: number }"), "{bad}: {error}");
        assert!(outcome.calls.is_empty(), "{bad}");
    }
}

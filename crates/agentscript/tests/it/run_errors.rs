//! Outcomes of runs that fail.

use std::sync::Arc;

use gatewright_agentscript::{CallStatus, IllegalKind, Outcome, RunError, RunRequest, WorkerError, excerpt};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::support::{Tools, pool, run, value};

#[tokio::test]
async fn syntax_error_gives_line_and_column() {
    let outcome = run("const a = 1;\nreturn a +* 2;").await;
    match outcome.result {
        Err(RunError::SyntaxError { location, .. }) => assert_eq!(location.line, 2),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_uncaught_tool_error_is_a_tool_error_with_the_tools_code() {
    match run("await callTool('fail', {})").await.result {
        Err(RunError::ToolError { tool_name, message, code, .. }) => {
            assert_eq!(
                (tool_name.as_str(), message.as_str(), code.as_str()),
                ("fail", "no such user", "NOT_FOUND")
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn tool_not_found_reaches_the_outcome() {
    let outcome = run("return await callTool('nope', {})").await;
    assert!(matches!(outcome.result, Err(RunError::ToolError { code, .. }) if code == "TOOL_NOT_FOUND"));
}

#[tokio::test]
async fn a_rethrown_tool_error_is_still_a_tool_error_even_when_disguised() {
    let outcome =
        run("try { await callTool('fail', {}) } catch (e) { e.message = 'x'; e.code = 'y'; throw e }").await;
    assert!(
        matches!(outcome.result, Err(RunError::ToolError { code, message, .. }) if code == "NOT_FOUND" && message == "no such user")
    );
}

#[tokio::test]
async fn a_tool_error_wrapped_in_a_new_error_is_a_runtime_error() {
    let outcome =
        run("try { await callTool('fail', {}) } catch (e) { throw new Error('wrapped', { cause: e }) }")
            .await;
    assert!(matches!(outcome.result, Err(RunError::RuntimeError { message, .. }) if message == "wrapped"));
}

#[tokio::test]
async fn an_object_that_looks_like_a_tool_error_is_not_one() {
    let outcome =
        run("const e = new Error('m'); e.name = 'ToolError'; e.code = 'X'; e.toolName = 't'; throw e").await;
    assert!(matches!(outcome.result, Err(RunError::RuntimeError { name, .. }) if name == "ToolError"));
}

#[tokio::test]
async fn execution_error_carries_name_message_and_place() {
    match run("const a = null;\nreturn a.b;").await.result {
        Err(RunError::RuntimeError { name, message, location }) => {
            assert_eq!(name, "TypeError");
            assert!(message.contains("null"), "{message}");
            assert_eq!(location.map(|at| at.line), Some(2));
        }
        other => panic!("{other:?}"),
    }
    assert!(
        matches!(run("throw 'text'").await.result, Err(RunError::RuntimeError { message, .. }) if message == "text")
    );
}

fn assert_blocked(outcome: &Outcome) {
    let blocked = IllegalKind::SelfReferenceBlocked;
    let result = &outcome.result;
    assert!(matches!(result, Err(RunError::IllegalAccess { kind, .. }) if *kind == blocked), "{result:?}");
}

#[tokio::test]
async fn self_reference_blocked_ends_the_run_and_cannot_be_caught() {
    let outcome = run("try { await callTool('self', {}) } catch { } return 'went on'").await;
    assert_blocked(&outcome);
}

#[tokio::test]
async fn an_answer_of_the_host_that_ends_the_run_outranks_what_the_script_returned() {
    let script = "const all = [callTool('self', {}).catch(() => 0)];
        for (let n = 0; n < 20; n++) all.push(callTool('echo', {n}));
        return (await Promise.race([Promise.all(all.slice(1)), all[0]]))";
    for _ in 0..20 {
        let outcome = run(script).await;
        assert_blocked(&outcome);
    }
}

#[tokio::test]
async fn a_reserved_name_that_is_known_at_run_time_ends_the_run_before_anything_else_is_called() {
    for call in
        ["callTool(name, {}).catch(() => 0)", "Promise.resolve().then(() => getTool(name)).catch(() => 0)"]
    {
        let source = format!(
            "const name = ['code', 'call:', 'execute'].join('');
            await Promise.race([{call}, callTool('echo', {{n: 0}}).then(() => 1)]);
            await null; await null;
            await callTool('echo', {{n: 1}});
            return 'went on'"
        );
        let mut request = RunRequest::new(source);
        request.policy = request.policy.reserved_tool_prefixes(["codecall:"]);
        let host = Arc::new(Tools::default());
        let outcome = pool().run(request, host.clone(), CancellationToken::new()).await;
        assert_blocked(&outcome);
        let seen = host.seen.lock().unwrap();
        assert!(!seen.iter().any(|(_, input)| input["n"] == 1), "{call}: {seen:?}");
    }
}

#[tokio::test]
async fn keys_that_lead_out_of_the_subset_end_the_run_at_run_time_too() {
    for key in ["constructor", "__proto__"] {
        let source = format!(
            "const parts = {:?}.split(''); const k = parts.join(''); try {{ return typeof ({{}})[k] }} catch {{ return 'caught' }}",
            key
        );
        let outcome = run(&source).await;
        assert!(
            matches!(
                outcome.result,
                Err(RunError::IllegalAccess { kind: IllegalKind::IllegalPrototypeAccess, .. })
            ),
            "{key}: {:?}",
            outcome.result
        );
    }
}

#[tokio::test]
async fn inputs_that_json_cannot_carry_are_type_errors() {
    let outcome = run("const cycle = {}; cycle.self = cycle; const out = [];
         for (const input of [cycle, { n: 1n }, () => 1, Symbol('s')]) {
           try { await callTool('echo', input); out.push('sent') } catch (e) { out.push(e.name) }
         }
         return out")
    .await;
    assert_eq!(value(&outcome), json!(["TypeError", "TypeError", "TypeError", "TypeError"]));
    assert!(outcome.calls.is_empty());
}

#[tokio::test]
async fn json_that_cannot_be_read_is_told_with_its_beginning() {
    for (source, end) in [
        ("const t = \"[{'name': 'a'}]\";\nreturn JSON.parse(t)", "; the value is a string '[{'name': 'a'}]'"),
        ("return JSON.parse({ items: 1 })", "; the value is an object with the keys items"),
        ("return JSON.parse(undefined)", "; the value is undefined"),
    ] {
        let outcome = run(source).await;
        let Err(RunError::RuntimeError { name, message, location }) = &outcome.result else {
            panic!("{:?}", outcome.result);
        };
        assert_eq!(name, "SyntaxError");
        assert!(message.starts_with("JSON.parse: ") && message.ends_with(end), "{message}");
        assert!(location.is_some(), "{message}");
    }
    let caught = run("try { JSON.parse('{') } catch (e) { return [e instanceof SyntaxError, e.name] }").await;
    assert_eq!(value(&caught), json!([true, "SyntaxError"]));
    let own = run("try { JSON.parse({ toString() { throw 'mine' } }) } catch (e) { return e }").await;
    assert_eq!(value(&own), json!("mine"));
}

#[tokio::test]
async fn a_tool_name_that_is_not_a_text_is_a_type_error() {
    for name in ["undefined", "5", "''", "{ toString: () => 'echo' }"] {
        let outcome = run(&format!("return await callTool({name}, {{}})")).await;
        assert!(matches!(outcome.result, Err(RunError::RuntimeError { name, .. }) if name == "TypeError"));
    }
}

#[tokio::test]
async fn getters_of_an_input_are_read_once() {
    let outcome =
        run("let n = 0; const input = { get x() { return ++n } }; return await callTool('echo', input)")
            .await;
    assert_eq!(value(&outcome), json!({ "x": 1 }));
}

#[tokio::test]
async fn half_a_surrogate_pair_in_a_name_or_message_keeps_the_error() {
    for source in [
        "const half = '\\ud800'; return ({})[half]()",
        "const o = { ['\\ud800']() { null.x } }; o['\\ud800']()",
        "function f() { throw new TypeError('\\udc00') } f()",
        "const e = new TypeError('x'); e.message = '\\ud800'; throw e",
    ] {
        let outcome = run(source).await;
        assert!(
            matches!(&outcome.result, Err(RunError::RuntimeError { name, .. }) if name == "TypeError"),
            "{source}: {:?}",
            outcome.result
        );
    }
}

#[tokio::test]
async fn json_has_no_way_to_write_a_number_that_nobody_can_read() {
    let outcome =
        run("return [typeof JSON.rawJSON, typeof JSON.isRawJSON, JSON.stringify({ a: 1e400 })]").await;
    assert_eq!(value(&outcome), json!(["undefined", "undefined", "{\"a\":null}"]));
}

#[tokio::test]
async fn texts_of_an_error_are_cut_before_they_leave() {
    for source in [
        "throw new Error('x'.repeat(1000000))",
        "const e = new Error('a'); e.name = 'N'.repeat(1000000); e.message = 'm'.repeat(1000000); throw e",
        "await callTool('x'.repeat(1000000), {})",
    ] {
        let outcome = run(source).await;
        let (name, message) = match &outcome.result {
            Err(RunError::RuntimeError { name, message, .. }) => (name, message),
            Err(RunError::ToolError { tool_name, message, .. }) => (tool_name, message),
            other => panic!("{other:?}"),
        };
        assert!(name.len() <= excerpt::NAME_BYTES && message.len() <= excerpt::MESSAGE_BYTES, "{source}");
    }
}

#[tokio::test]
async fn a_panicking_host_function_ends_the_run_not_the_process() {
    let outcome = run("try { await callTool('panic', {}) } catch { return 1 }").await;
    assert!(matches!(outcome.result, Err(RunError::RuntimeError { name, .. }) if name == "HostError"));
    assert_eq!(value(&run("return 2").await), json!(2));
}

#[tokio::test]
async fn a_script_that_waits_for_nothing_ends_at_once() {
    let outcome = run("await new Promise(() => {})").await;
    assert!(matches!(outcome.result, Err(RunError::RuntimeError { name, .. }) if name == "DeadlockError"));
}

#[tokio::test]
async fn logs_and_calls_are_kept_when_a_run_fails() {
    let outcome = run("console.log('before'); await callTool('echo', {}); throw new Error('late')").await;
    assert!(matches!(outcome.result, Err(RunError::RuntimeError { .. })));
    assert_eq!(outcome.logs, ["before"]);
    assert_eq!(outcome.calls[0].status, CallStatus::Ok);
}

#[tokio::test]
async fn the_stack_of_an_error_says_nothing() {
    assert_eq!(
        value(
            &run("const key = ['st', 'ack'].join(''); return [new Error('x')[key], (() => { try { null.x } catch (e) { return e[key] } })()]")
                .await
        ),
        json!(["", ""])
    );
}

#[tokio::test]
async fn execution_aborted_ends_the_run_and_drops_its_open_calls() {
    let pool = super::support::pool();
    let cancel = CancellationToken::new();
    let host = Arc::new(Tools::default());
    let running = pool.run(RunRequest::new("await callTool('never', {})"), host.clone(), cancel.clone());
    tokio::pin!(running);
    loop {
        tokio::select! {
            outcome = &mut running => {
                assert!(matches!(outcome.result, Err(RunError::Worker(WorkerError::Aborted))), "{:?}", outcome.result);
                assert_eq!(outcome.calls[0].status, CallStatus::Open);
                return;
            }
            () = tokio::task::yield_now() => {
                if !host.seen.lock().unwrap().is_empty() { cancel.cancel(); }
            }
        }
    }
}

#[tokio::test]
async fn a_circular_reference_is_reported_with_its_place_and_what_to_do() {
    for (source, line, column, what) in [
        (
            "const o = {};\no.o = o;\nif (!o) return 1;\nconst f = () => { return 2 };\nreturn o",
            5,
            1,
            "the result",
        ),
        ("const o = {};\no.o = o;\n  return { list: [o] }", 3, 3, "the result"),
        ("const o = {}; o.o = o;\nawait callTool('echo', o)", 2, 7, "callTool: the input"),
        ("const o = {}; o.o = o;\nconsole.log(o)", 2, 1, "console: the value"),
        ("const o = {}; o.o = o;\nreturn JSON.stringify(o)", 2, 8, "JSON.stringify: the value"),
    ] {
        match run(source).await.result {
            Err(RunError::RuntimeError { name, message, location: Some(location) }) => {
                assert_eq!((name.as_str(), location.line), ("TypeError", line), "{source}: {message}");
                assert!(location.column >= column, "{source}: {location:?}");
                assert!(
                    message.starts_with(what) && message.contains("pick the fields you need"),
                    "{message}"
                );
            }
            other => panic!("{source}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn an_error_that_a_script_names_after_a_limit_is_not_reported_as_one() {
    for name in
        ["MemoryLimitError", "IterationLimitError", "WorkerMemoryError", "DeadlockError", "ResultSizeError"]
    {
        let thrown = format!("const e = new Error('mine'); e.name = '{name}'; throw e");
        match run(&thrown).await.result {
            Err(RunError::RuntimeError { name, message, .. }) => {
                assert_eq!((name.as_str(), message.as_str()), ("Error", "mine"));
            }
            other => panic!("{other:?}"),
        }
    }
    let outcome = run("const e = new Error('slow down'); e.name = 'RateLimitError'; throw e").await;
    assert!(matches!(outcome.result, Err(RunError::RuntimeError { name, .. }) if name == "RateLimitError"));
}

async fn place(source: &str) -> (String, Option<u32>) {
    match run(source).await.result {
        Err(RunError::RuntimeError { name, location, .. }) => (name, location.map(|at| at.line)),
        other => panic!("{source}: {other:?}"),
    }
}

#[tokio::test]
async fn a_bad_result_is_placed_at_the_return_it_came_from() {
    let deep = "let deep = []; for (let i = 0; i < 150; i++) deep = [deep]; const o = {}; o.o = o;";
    for (returns, line) in [
        ("if (o) return o;\nreturn 1", 2),
        ("if (o) return 1, o\nreturn 1", 2),
        ("for (const x of [1]) return [() => x, o]\nreturn 1", 2),
        ("if (!o) return o;\nreturn (\n  o)", 3),
        ("try { return 1 } finally {\n  return o }", 3),
        ("try { return o } finally { (() => { return 2 })() }\nreturn 3", 2),
        ("const pick = (a) => { if (a) return o; return 1 };\nif (o) return pick(1);\nreturn pick(0)", 3),
        ("if (o) { return { toJSON: () => 1 } }\nreturn 1", 2),
        ("if (o as unknown) return o as any;\nreturn 1 as const", 2),
        ("if (o) return Promise.resolve(o);\nreturn 1", 2),
        ("return o", 2),
    ] {
        assert_eq!(
            place(&format!("{deep}\n{returns}")).await,
            ("TypeError".to_owned(), Some(line)),
            "{returns}"
        );
    }
    for (returns, line) in [("if (o) return deep;\nreturn 1", 2), ("return deep", 2)] {
        let name = "ResultUnreadableError".to_owned();
        assert_eq!(place(&format!("{deep}\n{returns}")).await, (name, Some(line)), "{returns}");
    }
    let large = "if ('x'.length)\n  return 'x'.repeat(2 << 20);\nreturn 1";
    assert_eq!(place(large).await, ("ResultSizeError".to_owned(), Some(2)));
}

#[tokio::test]
async fn an_error_without_a_place_is_not_placed_at_a_return_for_what_it_says() {
    for thrown in
        ["{ message: 'the result is mine' }", "'the result of mine'", "{ name: 'ResultLost', message: 'm' }"]
    {
        assert_eq!(
            place(&format!("if (Math.random() < 2) throw {thrown};\nreturn 1")).await.1,
            None,
            "{thrown}"
        );
    }
}

#[tokio::test]
async fn a_bad_regular_expression_is_reported_at_its_place() {
    for (script, place) in [
        ("const a = 1\nreturn /(/", (2, 8)),
        ("const fine = /fine/\nconst also = [/(?<a>x)/u,\n  'é😀',   /[z-a]/, /(/]", (3, 11)),
        ("const a: number = 1, b = /x{2,1}/", (1, 26)),
        ("return 'a'.replace(/\\p{Nothing}/u, '')", (1, 20)),
    ] {
        match run(script).await.result {
            Err(RunError::SyntaxError { location, .. }) => {
                assert_eq!((location.line, location.column), place, "{script}");
            }
            other => panic!("{script}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn an_uncaught_tool_error_is_placed_at_its_call() {
    for (source, line) in [
        ("const a = 1;\nawait callTool('fail', {})", 2),
        (
            "const f = async () => {\n  return callTool('fail', {});\n};\nawait callTool('echo', {});\nreturn await f()",
            2,
        ),
        ("try {\n await callTool('fail', {}) } catch (e) {\n throw e }", 2),
        ("const a = 1;\nreturn a + getTool('missing')", 2),
    ] {
        match run(source).await.result {
            Err(RunError::ToolError { location, .. }) => {
                assert_eq!(location.map(|at| at.line), Some(line), "{source}");
            }
            other => panic!("{source}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn keys_that_lead_out_of_the_subset_at_run_time_are_placed() {
    for source in [
        "const k = JSON.parse('\"const' + 'ructor\"');\nreturn ({})[k]",
        "const k = JSON.parse('\"const' + 'ructor\"');\nreturn [][k]",
        "let k = '__pro'; k += 'to__';\nreturn ({})[k]",
    ] {
        match run(source).await.result {
            Err(RunError::IllegalAccess { location, .. }) => {
                assert_eq!(location.map(|at| at.line), Some(2), "{source}");
            }
            other => panic!("{source}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_script_that_catches_a_tool_error_sees_when_to_try_again_and_which_scopes_it_lacks() {
    let source = "const out = [];
         try { await callTool('limited', {}) } catch (e) { out.push([e.code, e.retryAfterSeconds, e.requiredScopes]) }
         out.push((await callTool('limited', {}, { throwOnError: false })).error);
         const [slot] = await __safe_parallel([() => callTool('limited', {})], { settle: true });
         out.push(slot.reason.retryAfterSeconds);
         try { await callTool('fail', {}) } catch (e) { out.push('retryAfterSeconds' in e) }
         return out";
    let error = json!({
        "code": "RATE_LIMIT", "message": "slow down", "retryAfterSeconds": 7, "requiredScopes": ["crm"]
    });
    let expected = json!([["RATE_LIMIT", 7, ["crm"]], error, 7, false]);
    assert_eq!(value(&run(source).await), expected);
}

//! `codecall:execute` (contract §B, "Errors", "Limits"), through the whole gateway.

use gatewright_testing::test_use;
use serde_json::{Value, json};

use crate::support::{Demo, Gateways};

test_use! {}

async fn fails(demo: &Demo, script: &str, status: &str, code: &str) -> Value {
    let body = demo.run(script).await;
    assert_eq!(body["status"], status, "{body:#}");
    assert_eq!(body["error"]["code"], code, "{body:#}");
    assert!(!body["error"]["message"].as_str().unwrap().is_empty());
    body
}

#[gatewright_testing::test]
async fn ok_gives_the_return_value_of_many_calls(demo: Demo) {
    let script = "
        const users = await callTool('crm:users_list', { limit: 3 });
        const found = await __safe_parallel(users.items.map((user) => () => callTool('crm:users_get', { id: user.id })));
        return found.map((user) => user.email ?? user.user?.email);";
    let result = demo.result(script).await;
    assert_eq!(result.as_array().unwrap().len(), 3);
    assert!(result[0].as_str().unwrap().contains('@'), "{result}");
}

#[gatewright_testing::test]
async fn syntax_error_gives_the_location_in_the_callers_text(demo: Demo) {
    let body = fails(&demo, "const a = 1;\nconst b = ;", "syntax_error", "SYNTAX_ERROR").await;
    assert_eq!(body["error"]["location"]["line"], 2, "{body}");
    assert!(body["error"]["location"]["column"].is_number());
}

#[gatewright_testing::test]
async fn validation_error_gives_the_kind_of_rule(demo: Demo) {
    let body = fails(&demo, "return eval('1')", "illegal_access", "VALIDATION_ERROR").await;
    assert_eq!(body["error"]["kind"], "IllegalBuiltinAccess");
    fails(&demo, "return require('fs')", "illegal_access", "VALIDATION_ERROR").await;
    fails(&demo, "setTimeout(() => {}, 1)", "illegal_access", "VALIDATION_ERROR").await;
}

#[gatewright_testing::test]
async fn self_reference_is_blocked_in_every_spelling_and_cannot_be_caught(demo: Demo) {
    for name in [
        "'codecall:search'",
        "'codecall_execute'",
        "'codecall' + ':invoke'",
        "['codecall', 'describe'].join(':')",
    ] {
        let script = format!(
            "try {{ await callTool({name}, {{}}); }} catch (e) {{ return 'caught'; }} return 'passed';"
        );
        fails(&demo, &script, "illegal_access", "SELF_REFERENCE_BLOCKED").await;
    }
}

#[gatewright_testing::test]
async fn tool_not_found_names_the_tool(demo: Demo) {
    let body = fails(&demo, "await callTool('crm:nope', {})", "tool_error", "TOOL_NOT_FOUND").await;
    assert_eq!(body["error"]["source"], "tool");
    assert_eq!(body["error"]["toolName"], "crm:nope");
}

#[gatewright_testing::test]
async fn access_denied_for_a_tool_outside_the_allowlist(demo: Demo) {
    let script = "return await callTool('crm:users_list', {})";
    let allowed = demo.meta("execute", json!({"script": script, "allowedTools": ["crm_users_list"]})).await;
    assert_eq!(allowed["status"], "ok", "either spelling: {allowed}");
    for list in [json!([]), json!(["crm:users_get"])] {
        let body = demo.meta("execute", json!({"script": script, "allowedTools": list})).await;
        assert_eq!(body["status"], "tool_error");
        assert_eq!(body["error"]["code"], "ACCESS_DENIED");
    }
}

#[gatewright_testing::test]
async fn runtime_error_gives_the_error_class(demo: Demo) {
    let body = fails(&demo, "const x = null;\nreturn x.y;", "runtime_error", "EXECUTION_ERROR").await;
    assert_eq!(body["error"]["source"], "script");
    assert_eq!(body["error"]["name"], "TypeError");
    let body = fails(&demo, "throw new RangeError('too far')", "runtime_error", "EXECUTION_ERROR").await;
    assert_eq!(
        (&body["error"]["name"], &body["error"]["message"]),
        (&json!("RangeError"), &json!("too far"))
    );
}

#[gatewright_testing::test]
async fn a_tools_own_codes_reach_the_caller(demo: Demo) {
    fails(&demo, "await callTool('crm:users_get', {id: 'no-such-user'})", "tool_error", "NOT_FOUND").await;
    fails(&demo, "await callTool('crm:users_get', {})", "tool_error", "VALIDATION_ERROR").await;
}

#[gatewright_testing::test]
async fn timeout_ends_the_run_and_says_so(gateways: Gateways) {
    let demo = gateways.demo(json!({"vm": {"timeoutMs": 200, "maxIterations": 1_000_000_000}})).await;
    let body = demo.run("while (true) {}").await;
    assert_eq!(body["status"], "timeout", "{body}");
    assert!(["TIMEOUT", "WORKER_TIMEOUT"].contains(&body["error"]["code"].as_str().unwrap()));
    assert_eq!(demo.result("return 1").await, 1, "the next run works");
}

#[gatewright_testing::test]
async fn the_iteration_limit_is_named(gateways: Gateways) {
    let demo = gateways.demo(json!({"vm": {"maxIterations": 50}})).await;
    let body = demo.run("let n = 0; for (let i = 0; i < 1000; i++) { n++; } return n;").await;
    assert_eq!(body["status"], "runtime_error");
    assert!(body["error"]["message"].as_str().unwrap().to_lowercase().contains("iteration limit"), "{body}");
}

#[gatewright_testing::test]
async fn the_tool_call_limit_fails_the_script(gateways: Gateways) {
    let demo = gateways.demo(json!({"vm": {"maxToolCalls": 2}})).await;
    let script = "for (const n of [1, 2, 3]) { try { await callTool('crm:users_list', {}); } catch (e) {} } return 'done';";
    let body = demo.run(script).await;
    assert_eq!(body["status"], "runtime_error", "{body}");
    assert_eq!((&body["calls"][0]["name"], &body["calls"][0]["ok"]), (&json!("crm:users_list"), &json!(2)));
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains("may make 2 tool calls (codecall.vm.maxToolCalls: "), "{message}");
}

#[gatewright_testing::test]
async fn throw_on_error_false_gives_success_data_and_error(demo: Demo) {
    let script = "
        const good = await callTool('crm:users_list', {}, { throwOnError: false });
        const bad = await callTool('crm:users_get', { id: 'none' }, { throwOnError: false });
        return [good.success, typeof good.data, bad.success, bad.error.code, typeof bad.error.message];";
    assert_eq!(demo.result(script).await, json!([true, "object", false, "NOT_FOUND", "string"]));
}

#[gatewright_testing::test]
async fn get_tool_gives_name_description_and_schemas(demo: Demo) {
    let tool = demo.result("return await getTool('crm:users_get')").await;
    assert_eq!(tool["name"], "crm:users_get");
    assert!(
        tool["description"].is_string()
            && tool["inputSchema"].is_object()
            && tool["outputSchema"].is_object()
    );
    let missing = "try { await getTool('crm:nope'); } catch (e) { return e.code; }";
    assert_eq!(demo.result(missing).await, "TOOL_NOT_FOUND");
}

#[gatewright_testing::test]
async fn the_context_is_readable_and_frozen(demo: Demo) {
    let input = json!({"script": "return codecallContext.user.name", "context": {"user": {"name": "Ada"}}});
    assert_eq!(demo.meta("execute", input).await["result"], "Ada");
    for change in ["codecallContext.user = 1", "codecallContext.user.name = 'x'", "codecallContext.more = 1"]
    {
        let input = json!({"script": change, "context": {"user": {"name": "Ada"}}});
        let body = demo.meta("execute", input).await;
        assert_eq!(body["error"]["name"], "TypeError", "{change}: {body}");
    }
}

#[gatewright_testing::test]
async fn console_goes_to_logs_when_allowed_and_does_not_exist_otherwise(gateways: Gateways) {
    let loud = gateways.demo(json!({"vm": {"allowConsole": true}})).await;
    let body = loud.run("console.log('a', 1); console.warn('b'); console.error('c'); return 0;").await;
    assert_eq!(body["logs"].as_array().unwrap().len(), 3, "{body}");
    let quiet = gateways.demo(json!({"vm": {"allowConsole": false}})).await;
    assert_ne!(quiet.run("console.log('a'); return 0;").await["status"], "ok");
}

#[gatewright_testing::test]
async fn parallel_failures_are_counted_and_listed_by_index(demo: Demo) {
    let script = "
        await __safe_parallel([
            () => callTool('crm:users_list', {}),
            () => callTool('crm:users_get', { id: 'none' }),
            async () => { throw new Error('boom'); },
        ]);";
    let body = demo.run(script).await;
    let message = body["error"]["message"].as_str().unwrap();
    let lines: Vec<_> = message.lines().collect();
    assert_eq!(lines[0], "2 of 3 parallel operations failed");
    assert!(lines[1].starts_with("[1]: ") && lines[2] == "[2]: boom", "{message}");
}

#[gatewright_testing::test]
async fn every_outcome_tells_the_calls_so_far(demo: Demo, gateways: Gateways) {
    let body = demo.run("await callTool('crm:users_list', {}); throw new Error('late')").await;
    let call = &body["calls"][0];
    assert_eq!((&call["name"], &call["ok"]), (&json!("crm:users_list"), &json!(1)));
    assert!(call["totalMs"].is_number());
    let twice = "await callTool('crm:users_list', {}); return await callTool('crm:users_list', {})";
    assert_eq!(demo.run(twice).await["calls"][0]["ok"], 2);
    let full = gateways.demo(json!({"vm": {"callLog": "full"}})).await;
    let body = full.run("return await callTool('crm:users_list', {})").await;
    assert_eq!(
        (&body["calls"][0]["name"], &body["calls"][0]["status"]),
        (&json!("crm:users_list"), &json!("ok"))
    );
    assert!(body["calls"][0]["durationMs"].is_number());
    let silent = gateways.demo(json!({"vm": {"callLog": false}})).await;
    let failed = silent
        .run("progress({done: 1}); await callTool('crm:users_list', {}); throw new Error('late')")
        .await;
    assert_eq!((&failed["progress"], &failed["calls"][0]["ok"]), (&json!([{"done": 1}]), &json!(1)));
    assert!(silent.run("return await callTool('crm:users_list', {})").await.get("calls").is_none());
}

#[gatewright_testing::test]
async fn no_path_or_stack_leaves_in_an_error(demo: Demo) {
    let body = demo
        .run("throw new Error('cannot open /home/ada/secret.txt\\n    at read (/srv/app/index.js:10:2)')")
        .await;
    let message = body["error"]["message"].as_str().unwrap();
    assert!(!message.contains("/home/ada") && !message.contains("index.js"), "{message}");
}

//! Access modes in code mode: which tools a client lists and calls.

use serde_json::json;

use crate::desk::client;

const META: &str = "codecall:search codecall:describe codecall:execute codecall:invoke";

fn config(mode: &str, rule: &str) -> serde_json::Value {
    let modes = if rule.is_empty() { json!([]) } else { json!([{"client": "editor", "mode": rule}]) };
    json!({"mode": mode, "modes": modes})
}

#[tokio::test]
async fn a_mode_shows_each_tool_that_the_client_reaches_in_one_way() {
    let meta_and = |tools: &str| format!("{META} {tools}").trim_end().to_owned();
    for (mode, rule, tools) in [
        ("codecall_only", "", meta_and("desk:shown")),
        ("codecall_only", "code", meta_and("desk:shown")),
        // `hidden` says itself that it is not listed, and `by_name` was reached in neither way.
        ("codecall_only", "direct", "desk:import desk:shown".to_owned()),
        ("metadata_driven", "", meta_and("desk:by_name desk:import desk:shown")),
        ("metadata_driven", "code", meta_and("desk:by_name desk:shown")),
        ("metadata_driven", "direct", "desk:by_name desk:import desk:shown".to_owned()),
        ("codecall_opt_in", "code", meta_and("desk:by_name desk:import desk:shown")),
    ] {
        let client = client(config(mode, rule), "").await;
        assert_eq!(client.tools().await, tools, "{mode} {rule}");
    }
}

#[tokio::test]
async fn what_a_mode_does_not_show_is_refused() {
    let direct = client(config("codecall_only", "direct"), "").await;
    let refused = direct.call("codecall:execute", json!({"script": "return 1"})).await;
    assert_eq!(refused["structuredContent"]["error"]["code"], "ACCESS_DENIED", "{refused}");
    for (tool, is_error) in [("desk:import", false), ("desk:hidden", true), ("desk:by_name", true)] {
        let answer = direct.call(tool, json!({})).await;
        assert_eq!(answer["isError"].as_bool().unwrap_or_default(), is_error, "{tool}: {answer}");
    }
    let code = client(config("metadata_driven", "code"), "").await;
    let refused = code.call("desk:import", json!({})).await;
    assert_eq!(refused["isError"], true, "{refused}");
    let run = code.execute("return await callTool('desk:import')", None).await;
    assert_eq!(run["result"], "imported", "{run}");
}

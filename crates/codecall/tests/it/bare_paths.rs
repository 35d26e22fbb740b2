//! Errors of tools that are nothing but a path.

use gatewright_core::rmcp::model::{CallToolResult, ContentBlock};
use gatewright_testing::ToolServer;
use serde_json::{Value, json};

use super::support::Served;

#[tokio::test]
async fn an_error_that_is_nothing_but_a_path_gets_words_in_plans_and_invocations() {
    let tools = json!([{"name": "open", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}]);
    let server = ToolServer::new(tools, async |call, _| {
        let input = Value::Object(call.arguments.unwrap_or_default());
        let path = format!("/opt/gateway/{}", input["path"].as_str().unwrap_or_default());
        Ok(CallToolResult::error(vec![ContentBlock::text(path)]))
    });
    let served = Served::over(json!({}), server).await;
    let ada = served.client("ada").await;
    let expected = "`app:open` failed and gave only this path as the reason: [path]/repo; it was not found, or is not what the tool needs";
    let input = json!({"tool": "app:open", "input": {"path": "repo"}});
    let invoked = ada.body("codecall:invoke", input).await;
    assert_eq!(invoked["error"]["message"], expected, "{invoked}");
    let run = json!({"script": "return callTool('app:open', {path: 'repo'})"});
    let run = ada.body("codecall:execute", run).await;
    assert_eq!(run["error"]["message"], expected, "{run}");
    let caught =
        "const r = await callTool('app:open', {path: 'repo'}, {throwOnError: false}); return r.error.message";
    assert_eq!(ada.run(caught).await, expected);
}

//! Inputs as apps get them, and as their errors repeat them.

use std::sync::Arc;

use gatewright_core::rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

use super::support::Served;

/// `echo` answers with its input, `open` fails and repeats its input beside a path of its own.
#[derive(Clone)]
pub(crate) struct Files;

impl ServerHandler for Files {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let page = json!({"type": "integer", "default": 1});
        let echo = json!({"type": "object", "required": ["id", "page", "box"], "properties": {
            "id": {"type": "string"}, "page": page, "limit": page, "box": {"$ref": "#/$defs/box"}},
            "$defs": {"box": {"type": "object", "required": ["page"], "properties": {"page": page}}}});
        let tool = |name: &'static str, input: &Value| {
            Tool::new(name, "A tool", Arc::new(input.as_object().unwrap().clone()))
        };
        let open = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        Ok(ListToolsResult::with_all_items(vec![tool("echo", &echo), tool("open", &open)]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let input = Value::Object(request.arguments.unwrap_or_default());
        if &*request.name == "open" {
            let path = input["path"].as_str().unwrap_or_default();
            let error = format!("access denied: {path} not in /opt/gateway/data");
            return Ok(CallToolResult::error(vec![ContentBlock::text(error)]).into());
        }
        Ok(CallToolResult::structured(input).into())
    }
}

#[tokio::test]
async fn required_parameters_with_a_default_may_be_left_out_of_direct_calls_invocations_and_plans() {
    let served = Served::over(json!({}), Files).await;
    let ada = served.client("ada").await;
    let sent = json!({"id": "a", "box": {}});
    let received = json!({"id": "a", "page": 1, "box": {"page": 1}});
    assert_eq!(ada.body("app:echo", sent.clone()).await, received);
    let invoked = ada.body("codecall:invoke", json!({"tool": "app:echo", "input": sent})).await;
    assert_eq!(invoked["result"], received, "{invoked}");
    assert_eq!(ada.run("return await callTool('app:echo', {id: 'a', box: {}})").await, received);
    let missing = ada.body("codecall:invoke", json!({"tool": "app:echo", "input": {"id": "a"}})).await;
    assert_eq!(missing["error"]["code"], "VALIDATION_ERROR", "{missing}");
}

#[tokio::test]
async fn errors_keep_the_paths_that_the_caller_sent_and_mask_others() {
    let served = Served::over(json!({}), Files).await;
    let ada = served.client("ada").await;
    let expected = "access denied: /srv/files/a.txt not in [path]";
    let input = json!({"tool": "app:open", "input": {"path": "/srv/files/a.txt"}});
    let invoked = ada.body("codecall:invoke", input).await;
    assert_eq!(invoked["error"]["message"], expected, "{invoked}");
    for call in [
        "await callTool('app:open', {path: '/srv/files/a.txt'})",
        "await callTool('app:open', {path: codecallContext.path})",
        // Nowhere in the text of the plan.
        "await callTool('app:open', {path: ['', 'srv', 'files', 'a.txt'].join('/')})",
    ] {
        let context =
            if call.contains("codecallContext") { json!({"path": "/srv/files/a.txt"}) } else { json!({}) };
        let plan = |script: String| json!({"script": script, "context": context});
        let thrown = ada.body("codecall:execute", plan(call.to_owned())).await;
        assert_eq!(thrown["error"]["message"], expected, "{thrown}");
        let again =
            format!("try {{ {call} }} catch (error) {{ throw new Error(`open: ${{error.message}}`) }}");
        let again = ada.body("codecall:execute", plan(again)).await;
        assert_eq!(again["error"]["message"], format!("open: {expected}"), "{again}");
        let caught = format!("return ({}).error.message", call.replace("})", "}, {throwOnError: false})"));
        let caught = ada.body("codecall:execute", plan(caught)).await;
        assert_eq!(caught["result"], expected, "{caught}");
    }
}

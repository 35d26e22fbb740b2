//! Inputs as apps get them, and as their errors repeat them.

use gatewright_core::{
    OwnPaths,
    rmcp::model::{CallToolResult, ContentBlock},
};
use gatewright_testing::ToolServer;
use serde_json::{Value, json};

use super::support::Served;

/// `echo` answers with its input, `open` fails and repeats its input beside a path of its own.
pub(crate) fn files() -> ToolServer {
    let page = json!({"type": "integer", "default": 1});
    let echo = json!({"type": "object", "required": ["id", "page", "box"], "properties": {
        "id": {"type": "string"}, "page": page, "limit": page, "box": {"$ref": "#/$defs/box"}},
        "$defs": {"box": {"type": "object", "required": ["page"], "properties": {"page": page}}}});
    let open = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tools = json!([{"name": "echo", "inputSchema": echo}, {"name": "open", "inputSchema": open}]);
    ToolServer::new(tools, async |call, _| {
        let input = Value::Object(call.arguments.unwrap_or_default());
        if &*call.name == "open" {
            let path = input["path"].as_str().unwrap_or_default();
            let error = format!("access denied: {path} not in /opt/gateway/data");
            return Ok(CallToolResult::error(vec![ContentBlock::text(error)]));
        }
        Ok(CallToolResult::structured(input))
    })
}

#[tokio::test]
async fn required_parameters_with_a_default_may_be_left_out_of_direct_calls_invocations_and_plans() {
    let served = Served::over(json!({}), files()).await;
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
async fn a_misspelt_parameter_calls_nothing_however_the_input_is_written() {
    let served = Served::over(json!({}), files()).await;
    let ada = served.client("ada").await;
    let misspelt = json!({"tool": "app:echo", "input": {"id": "a", "box": {}, "limti": 5}});
    let invoked = ada.body("codecall:invoke", misspelt).await;
    assert_eq!(invoked["error"]["code"], "VALIDATION_ERROR", "{invoked}");
    assert_eq!(
        invoked["error"]["message"],
        "the input of `app:echo` has no parameter `limti`; did you mean `limit`? Nothing was called"
    );
    for input in [
        "{ id: 'a', box: {}, ...{ limti: 5 } }",
        "JSON.parse('{\"id\": \"a\", \"box\": {}, \"limti\": 5}')",
        "Object.fromEntries([['id', 'a'], ['box', {}], ['limti', 5]])",
    ] {
        let script = format!("const input = {input}; return await callTool('app:echo', input)");
        let run = ada.body("codecall:execute", json!({"script": script})).await;
        assert_eq!(run["error"]["code"], "VALIDATION_ERROR", "{run}");
        let message = run["error"]["message"].as_str().unwrap();
        assert!(message.contains("has no parameter `limti`; did you mean `limit`?"), "{message}");
        assert_eq!(run["calls"]["ok"].as_u64().unwrap_or(0), 0, "{run}");
    }
    let other = json!({"tool": "app:echo", "input": {"id": "a", "box": {}, "note": "x"}});
    assert_eq!(ada.body("codecall:invoke", other).await["result"]["note"], "x");
}

#[tokio::test]
async fn errors_keep_the_paths_that_the_caller_sent_and_mask_others() {
    let served = Served::over(json!({}), files()).await;
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

#[tokio::test]
async fn an_input_that_is_refused_when_it_is_sent_is_answered_with_the_parameters_of_the_tool() {
    let served = Served::over(json!({}), files()).await;
    let ada = served.client("ada").await;
    let parameters = "; parameters: id, page, box, limit?";
    let input = json!({"tool": "app:echo", "input": {"identifier": 7}});
    let invoked = ada.body("codecall:invoke", input).await;
    assert_eq!(invoked["error"]["code"], "VALIDATION_ERROR");
    assert!(invoked["error"]["message"].as_str().unwrap().ends_with(parameters), "{invoked}");
    let script = "return await callTool('app:echo', codecallContext)";
    let thrown = ada.body("codecall:execute", json!({"script": script, "context": {"identifier": 7}})).await;
    assert!(thrown["error"]["message"].as_str().unwrap().ends_with(parameters), "{thrown}");
    let failed = ada.body("codecall:invoke", json!({"tool": "app:open", "input": {"path": "/x"}})).await;
    assert!(!failed["error"]["message"].as_str().unwrap().contains("parameters"), "the tool's own: {failed}");
}

#[tokio::test]
async fn paths_of_the_gateway_and_of_the_home_folder_are_masked_beside_those_that_the_caller_sent() {
    let server = ToolServer::new(
        json!([{"name": "open", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}, "cwd": {"type": "string"}}}}]),
        async |call, _| {
            let input = Value::Object(call.arguments.unwrap_or_default());
            let error = format!(
                "no {} in {} below /home/keeper/files, see /etc/gatewright/gatewright.yaml",
                input["path"].as_str().unwrap(),
                input["cwd"].as_str().unwrap_or("/home/keeper/default"),
            );
            Ok(CallToolResult::error(vec![ContentBlock::text(error)]))
        },
    );
    let served = Served::over(json!({}), server).await;
    served.code_call.hide_paths(OwnPaths {
        home: Some("/home/keeper".to_owned()),
        others: vec!["/etc/gatewright/gatewright.yaml".to_owned()],
    });
    let ada = served.client("ada").await;
    for (input, expected) in [
        (json!({"path": "/srv/a.txt"}), "no /srv/a.txt in [path] below [path], see [path]"),
        (json!({"path": "/srv/a.txt", "cwd": "/srv"}), "no /srv/a.txt in /srv below [path], see [path]"),
        (json!({"path": "../a.txt", "cwd": "/home"}), "no ../a.txt in /home below [path], see [path]"),
    ] {
        let invoked = ada.body("codecall:invoke", json!({"tool": "app:open", "input": input})).await;
        assert_eq!(invoked["error"]["message"], expected, "{input}");
        let script =
            json!({"script": "return await callTool('app:open', codecallContext)", "context": input});
        let thrown = ada.body("codecall:execute", script).await;
        assert_eq!(thrown["error"]["message"], expected, "{input}");
    }
}

#[tokio::test]
async fn long_integers_of_the_context_keep_their_digits_as_those_of_results_do() {
    let served = Served::over(json!({}), files()).await;
    let ada = served.client("ada").await;
    let context = json!({"id": 9_007_199_254_740_993_u64, "few": [1, 2.5]});
    let body = ada.body("codecall:execute", json!({"script": "return codecallContext", "context": context}));
    assert_eq!(body.await["result"], json!({"id": "9007199254740993", "few": [1, 2.5]}));
}

#[tokio::test]
async fn a_script_passes_a_file_from_one_tool_to_another_by_its_handle() {
    let file = json!({"type": "string", "description": "A file: base64, or a data: URI"});
    let save = json!({"type": "object", "required": ["file"], "properties": {"file": file}});
    let tools =
        json!([{"name": "shot", "inputSchema": {"type": "object"}}, {"name": "save", "inputSchema": save}]);
    let files = ToolServer::new(tools, async |call, _| {
        let input = Value::Object(call.arguments.unwrap_or_default());
        Ok(match &*call.name {
            "save" => CallToolResult::structured(json!({"saved": input["file"]})),
            _ => CallToolResult::success(vec![ContentBlock::image("aW1n", "image/png")]),
        })
    });
    let served = Served::over(json!({}), files).await;
    let ada = served.client("ada").await;
    let script =
        "const image = await callTool('app:shot', {}); return await callTool('app:save', { file: image })";
    assert_eq!(ada.run(script).await, json!({"saved": "data:image/png;base64,aW1n"}));
}

//! The keys of an object keep the order in which they were written: arguments, answers, schemas and results of scripts.

use std::sync::Arc;

use gatewright::{
    Builder, LocalApp,
    rmcp::{
        ServiceExt as _,
        model::{CallToolRequestParams, CallToolResult, JsonObject, Tool},
        transport::StreamableHttpClientTransport,
    },
};
use gatewright_testing::{ToolServer, test_use};
use serde_json::{Value, json};

use crate::{
    served::Served,
    support::{Demo, Gateways, gatewright},
};

test_use! {}

/// Neither sorted nor sorted backwards, at any depth.
const WRITTEN: &str = r#"{"zeta":1,"alpha":{"y":[{"q":1,"b":2,"m":3}],"x":null,"z":"é"},"mid":true,"_":0,"beta":[2,{"t":1,"a":2}]}"#;

const SCHEMA: &str = r#"{"type":"object","title":"In","properties":{"zeta":{"type":"integer","minimum":0},"alpha":{"type":"object"},"mid":{"type":"boolean"},"beta":{"type":"array"}},"required":["zeta","alpha"],"$defs":{"z":{},"a":{}}}"#;

fn object(text: &str) -> JsonObject {
    serde_json::from_str(text).unwrap()
}

/// Answers with the arguments it gets.
fn mirror_server() -> ToolServer {
    let tool = Tool::new("mirror", "Gives its input back", Arc::new(object(SCHEMA)))
        .with_raw_output_schema(Arc::new(object(SCHEMA)));
    ToolServer::new(json!([tool]), async |call, _| {
        let arguments = Value::Object(call.arguments.unwrap_or_default());
        assert_eq!(arguments.to_string(), WRITTEN, "the app sees what the caller wrote");
        Ok(CallToolResult::structured(arguments))
    })
}

async fn mirror(gateways: &Gateways) -> Demo {
    let app = Arc::new(LocalApp::start(mirror_server()).await.unwrap());
    gateways.start(Builder::new("t", "1").app("m", app), json!({"mode": "metadata_driven"})).await
}

#[gatewright_testing::test]
async fn arguments_and_answers_of_a_call_keep_their_order(gateways: Gateways) {
    let demo = mirror(&gateways).await;
    let input: Value = serde_json::from_str(WRITTEN).unwrap();
    let direct = demo.call("m:mirror", input.clone()).await;
    assert_eq!(direct.structured().unwrap().to_string(), WRITTEN);
    assert_eq!(direct.text(), WRITTEN);
    let invoked = demo.meta("invoke", json!({"tool": "m:mirror", "input": input})).await;
    assert_eq!(invoked.to_string(), format!(r#"{{"status":"ok","result":{WRITTEN}}}"#));
}

#[gatewright_testing::test]
async fn what_a_script_sends_gets_and_returns_keeps_its_order(gateways: Gateways) {
    let demo = mirror(&gateways).await;
    let returned = demo.result(&format!("return await callTool('m:mirror', {WRITTEN})")).await;
    assert_eq!(returned.to_string(), WRITTEN);
    let seen = demo.result(&format!("return JSON.stringify(await callTool('m:mirror', {WRITTEN}))")).await;
    assert_eq!(seen, WRITTEN);
    let context: Value = serde_json::from_str(WRITTEN).unwrap();
    let script = "const read = JSON.stringify(codecallContext); await callTool('m:mirror', codecallContext); return [read, await callTool('m:mirror', codecallContext)]";
    let body = demo.meta("execute", json!({"script": script, "context": context})).await;
    assert_eq!(body["result"][0], WRITTEN, "{body}");
    assert_eq!(body["result"][1].to_string(), WRITTEN);
    let keys: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["status", "result", "calls"]);
}

#[gatewright_testing::test]
async fn schemas_keep_their_order_in_lists_descriptions_and_scripts(gateways: Gateways) {
    let demo = mirror(&gateways).await;
    let listed = demo.listed().await.into_iter().find(|tool| tool.name == "m:mirror").unwrap();
    assert_eq!(listed.raw["inputSchema"].to_string(), SCHEMA);
    assert_eq!(listed.raw["outputSchema"].to_string(), SCHEMA);
    let described = demo.meta("describe", json!({"toolNames": ["m:mirror"]})).await["tools"][0].clone();
    assert_eq!(described["inputSchema"].to_string(), SCHEMA);
    assert_eq!(described["outputSchema"].to_string(), SCHEMA);
    let keys: Vec<&str> = described.as_object().unwrap().keys().map(String::as_str).collect();
    let contract =
        ["name", "appId", "description", "inputSchema", "outputSchema", "annotations", "usageExamples"];
    assert_eq!(keys, contract);
    let got = demo.result("const tool = await getTool('m:mirror'); return tool.inputSchema").await;
    assert_eq!(got.to_string(), SCHEMA);
}

#[tokio::test]
async fn the_binary_keeps_the_order_over_http_through_a_script_and_a_server_on_stdio() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner.yaml");
    std::fs::write(&inner, "apps:\n  crm: { builtin: crm }\n").unwrap();
    let (command, arguments) = (json!(gatewright()), json!(["serve", "--stdio", "--config", inner]));
    let served =
        Served::start(&format!("apps:\n  inner: {{ command: {command}, args: {arguments} }}\n"), &[]);
    while served.readiness().await["apps"]["inner"]["status"] != "up" {
        tokio::task::yield_now().await;
    }
    let transport = StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", served.address));
    let client = ().serve(transport).await.unwrap();
    let script = "const inner = await callTool('inner:codecall:execute', {script: 'return codecallContext', \
                  context: codecallContext}); return inner.result;";
    let mut input = JsonObject::new();
    input.insert("script".into(), script.into());
    input.insert("context".into(), Value::Object(object(WRITTEN)));
    let params = CallToolRequestParams::new("codecall:execute").with_arguments(input);
    let answer = client.peer().call_tool(params).await.unwrap();
    let body = answer.structured_content.unwrap();
    assert_eq!(body["result"].to_string(), WRITTEN, "{body}");
    assert!(answer.content[0].as_text().unwrap().text.contains(WRITTEN), "the text is written the same way");
}

//! Sizes of pages with as much as there can be.

use std::{sync::Arc, time::Duration};

use gatewright::{Builder, CodeCallConfig, LocalApp};
use gatewright_console::{Console, ConsoleOptions, ExecutionHistory};
use gatewright_core::{CallRecord, Ending, Execution, rmcp::model::CallToolResult};
use gatewright_testing::ToolServer;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::json;
use tower::ServiceExt as _;

use crate::support::execution;

/// Longest page with its style and script, in bytes.
const MOST: usize = 120 * 1024;

fn padded(text: &str) -> String {
    format!("{text}_{}", "abcdefghij".repeat(7))[..64].to_owned()
}

#[tokio::test]
async fn a_page_with_its_assets_has_at_most_120_kib_whatever_there_is() {
    let config: CodeCallConfig =
        serde_json::from_value(json!({"worker": {"adapter": "in_process"}})).unwrap();
    let history = ExecutionHistory::new(500);
    let mut builder = Builder::new(padded("server"), "1.0.0").code_mode(config).observer(history.clone());
    for app in 0..40 {
        let tools: Vec<_> = (0..125)
            .map(|at| {
                json!({"name": padded(&format!("tool_{at}")), "description": "It says so at length. ".repeat(20),
                    "inputSchema": {"type": "object", "properties": {(padded("parameter")): {"type": "string"}}}})
            })
            .collect();
        let server = ToolServer::new(tools.into(), |_, _| async { Ok(CallToolResult::success(Vec::new())) });
        let app = padded(&format!("app_{app}"));
        builder = builder.app(&app, Arc::new(LocalApp::start(server).await.unwrap()));
    }
    let running = builder.build().unwrap();
    let call = |at: u64| CallRecord {
        tool: format!("{}:{}", padded("app_1"), padded(&format!("tool_{at}"))).into(),
        app: padded("app_1").into(),
        start: Duration::from_micros(at * 12_345),
        duration: Duration::from_micros(at * 123_456),
        ending: if at.is_multiple_of(3) { Ending::new("ACCESS_DENIED") } else { Ending::OK },
        bytes: Some(12),
        span_id: None,
        transport: None,
    };
    for at in 0..60 {
        let calls = (0..200).map(|number| call(number + at)).collect();
        history.record(&Execution { calls, ..execution(&padded("codecall:execute")) });
    }
    let code_call = running.code_call().cloned();
    let router =
        Console::new(running.gateway().clone(), code_call, history, ConsoleOptions::default()).router();
    let get = async |path: &str| {
        let request = Request::get(path).header("host", "localhost").body(axum::body::Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        assert!(response.status().is_success(), "{path}");
        response.into_body().collect().await.unwrap().to_bytes().len()
    };
    let assets = get("/console/style.css").await + get("/console/script.js").await;
    let tool = format!("/console/tool?name={}:{}", padded("app_1"), padded("tool_1"));
    for path in [
        "",
        "/tools",
        "/tools?q=at+length&page=7",
        "/resources",
        "/prompts",
        "/search?q=says+at+length",
        "/script",
        "/calls",
        "/calls?status=refused",
        "/calls/1",
        "/runs",
        "/approvals",
        "/configuration",
        "/pins",
    ]
    .map(|path| format!("/console{path}"))
    .into_iter()
    .chain([tool])
    {
        let bytes = get(&path).await + assets;
        println!("{bytes:>7} {path}");
        assert!(bytes <= MOST, "{path} has {bytes} bytes");
    }
}

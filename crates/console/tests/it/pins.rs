//! Pinned tools that changed.

use std::sync::Arc;

use gatewright::{AppOptions, Builder, LocalApp};
use gatewright_console::{Console, ConsoleOptions, ExecutionHistory};
use gatewright_core::{
    Pins,
    rmcp::model::{CallToolResult, Tool},
};
use gatewright_testing::ToolServer;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::json;
use tower::ServiceExt as _;

#[tokio::test]
async fn changed_and_new_tools_are_shown_with_their_differences_and_the_command() {
    let schema = json!({"type": "object"});
    let tools = json!([
        {"name": "list", "description": "Lists <b>more</b>", "inputSchema": schema},
        {"name": "other", "description": "New", "inputSchema": schema},
    ]);
    let server = ToolServer::new(tools, |_, _| async { Ok(CallToolResult::success(Vec::new())) });
    let mut pins = Pins::default();
    let schema = schema.as_object().unwrap().clone();
    let approved = Tool::new("list".to_owned(), "Lists".to_owned(), Arc::new(schema));
    let options = AppOptions { pin: true, ..AppOptions::default() };
    assert!(pins.pin_first("crm", &options, &[approved]));
    let running = Builder::new("pinned", "1.0.0")
        .pins(pins.into())
        .app_with("crm", Arc::new(LocalApp::start(server).await.unwrap()), options)
        .build()
        .unwrap();
    let history = ExecutionHistory::new(1);
    let router = Console::new(running.gateway().clone(), None, history, ConsoleOptions::default()).router();
    let get = async |path: &str| {
        let request = Request::get(path).header("host", "localhost").body(axum::body::Body::empty()).unwrap();
        let body = router.clone().oneshot(request).await.unwrap().into_body();
        String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap()
    };
    let page = get("/console/pins").await;
    for expected in [
        "/description",
        "- Lists\n",
        "+ Lists &lt;b&gt;more",
        "gatewright pins approve crm:list",
        "crm:other",
        ">new<",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(get("/console").await.contains("2 tools</a> changed or new"));
    assert!(get("/console/tools").await.contains("2 pinned tools"));
    assert!(get("/console/tool?name=crm:list").await.contains("changed since it was approved"));
}

//! The binary itself: started, spoken to, stopped.

use std::time::{Duration, Instant};

use gatewright_testing::{BoxError, ClientOptions, Mcp, Server, Transport, expect, test_use};
use serde_json::{Value, json};

use crate::support::gatewright;

test_use! {
    server: gatewright().display().to_string(),
    args: ["demo", "--port", "{port}"],
    ready_path: "/healthz",
    protocol_version: "2026-07-28",
}

#[gatewright_testing::test]
async fn the_demo_answers_the_four_meta_tools_over_http(mcp: Mcp) -> Result<(), BoxError> {
    let names: Vec<_> = mcp.tools().list().await?.into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["codecall:search", "codecall:describe", "codecall:execute", "codecall:invoke"]);
    let call = async |tool: &str, input: Value| {
        let result = mcp.tools().call(tool, input).await.unwrap();
        expect(&result).to_be_successful();
        result.structured().unwrap().clone()
    };
    let found = call("codecall:search", json!({"query": "list users"})).await;
    assert_eq!(found["tools"][0]["name"], "crm:users_list");
    let described = call("codecall:describe", json!({"toolNames": ["crm:users_get"]})).await;
    assert_eq!(described["tools"][0]["appId"], "crm");
    let script = "return (await callTool('crm:users_list', {limit: 1})).items.length";
    let body = call("codecall:execute", json!({"script": script})).await;
    assert_eq!((&body["status"], &body["result"]), (&json!("ok"), &json!(1)));
    assert_eq!(body.get("calls"), None, "one call of each tool says no more than the script");
    let invoked = call("codecall:invoke", json!({"tool": "crm:users_list", "input": {}})).await;
    assert_eq!(invoked["status"], "ok");
    Ok(())
}

#[gatewright_testing::test]
async fn health_readiness_and_the_page_answer(server: Server) -> Result<(), BoxError> {
    for path in ["/healthz", "/readyz", "/"] {
        let answer = reqwest::get(format!("{}{path}", server.info().base_url)).await?;
        assert_eq!(answer.status(), 200, "{path}: {}", answer.text().await?);
    }
    Ok(())
}

#[gatewright_testing::test(stop_timeout = Duration::from_secs(10))]
async fn sigterm_ends_it_within_ten_seconds_while_a_stream_is_open(
    mcp: Mcp,
    server: Server,
) -> Result<(), BoxError> {
    let listening = mcp.listen(json!({"toolsListChanged": true})).await?;
    assert_eq!(listening.accepted()["toolsListChanged"], true);
    let started = Instant::now();
    server.stop().await;
    let status = server.last_exit().ok_or("it ended")?;
    assert!(status.success(), "{status}");
    assert!(started.elapsed() < Duration::from_secs(10));
    Ok(())
}

#[gatewright_testing::test]
async fn stdio_serves_one_client_and_survives_a_line_that_is_not_json() -> Result<(), BoxError> {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    std::fs::write(file.path(), "apps:\n  crm: { builtin: crm }\n")?;
    let server = Server::builder(gatewright().display().to_string())
        .arg("serve")
        .arg("--stdio")
        .arg("--config")
        .arg(file.path().display().to_string())
        .transport(Transport::Stdio)
        .start()
        .await?;
    let mcp = server.create_client(ClientOptions::default()).await?;
    assert_eq!(mcp.server_info().map(|info| info.name).as_deref(), Some("gatewright"));
    expect(&mcp.raw().send_raw("this is not JSON").await?).to_have_error_code(-32700);
    assert_eq!(mcp.tools().list().await?.len(), 4);
    // The end of its input ends it.
    mcp.disconnect().await;
    let status = server.last_exit().ok_or("it ended")?;
    assert!(status.success(), "{status}");
    Ok(())
}

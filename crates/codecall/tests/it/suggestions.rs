//! Suggestions for misspelt tool names.

use gatewright_core::rmcp::model::{CallToolRequestParams, CallToolResult};
use gatewright_testing::ToolServer;
use serde_json::json;

use super::support::{Fixture, Served, text};

async fn refusal(served: &Served, tool: &str) -> String {
    let ada = served.client("ada").await;
    let answer = ada.body("codecall:invoke", json!({"tool": tool, "input": {}})).await;
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[tokio::test]
async fn the_nearest_of_many_tools_is_suggested_and_none_for_a_name_longer_than_any() {
    let long: &'static str = Box::leak("list_open_invoices_".repeat(5).into_boxed_str());
    let names =
        (0..500).map(|n| -> &'static str { Box::leak(format!("invoice_line_item_{n}").into_boxed_str()) });
    let fixtures = names.chain([long]).map(|name| Fixture::new(name, [text("x")]));
    let served = Served::new(json!({}), fixtures).await;
    let near = refusal(&served, "app:invoice_line_itm_317").await;
    assert!(near.contains("`app:invoice_line_item_317`"), "{near}");
    let close = refusal(&served, &format!("app:{long}x")).await;
    assert!(close.contains("did you mean"), "{close}");
    let longer = refusal(&served, &format!("app:{long}{}", "x".repeat(40))).await;
    assert!(!longer.contains("did you mean"), "{longer}");
}

#[tokio::test]
async fn a_tool_that_a_way_of_calling_does_not_reach_is_not_suggested_there() {
    let tool = |name: &str, meta: serde_json::Value| json!({"name": name, "inputSchema": {"type": "object"}, "_meta": {"gatewright": meta}});
    let hidden = json!({"visibleInListTools": false, "enabledInCodeCall": false});
    let tools = json!([
        tool("payroll_export", hidden),
        tool("invoices_list", json!({"visibleInListTools": false})),
        tool("orders_list", json!({"enabledInCodeCall": false})),
    ]);
    let server = ToolServer::new(tools, |_, _| async { Ok(CallToolResult::success(Vec::new())) });
    let served = Served::over(json!({}), server).await;
    let ada = served.client("ada").await;
    let direct = async |name: &'static str| ada.0.peer().call_tool(CallToolRequestParams::new(name)).await;
    let said = |answer: Result<CallToolResult, _>| format!("{answer:?}");
    for name in ["app:payroll_exprt", "app:invoices_lst", "app:orders_lst"] {
        let in_code = refusal(&served, name).await;
        let script = format!("try {{ await callTool('{name}', {{}}) }} catch (e) {{ return e.message }}");
        let in_script = ada.run(&script.replace("callTool('", "callTool('' + '")).await;
        let directly = said(direct(name).await);
        let right = name.replace("exprt", "export").replace("lst", "list");
        let names = |text: &str| text.contains(&right);
        let found = (names(&in_code), names(in_script.as_str().unwrap()), names(&directly));
        let expected = match name {
            "app:payroll_exprt" => (false, false, false),
            "app:invoices_lst" => (true, true, false),
            _ => (false, false, true),
        };
        assert_eq!(found, expected, "{name}: {in_code} / {in_script} / {directly}");
    }
}

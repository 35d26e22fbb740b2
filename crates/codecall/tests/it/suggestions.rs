//! Suggestions for misspelt tool names.

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

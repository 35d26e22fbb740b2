//! Run with `cargo test`; with `BREAK=sum` or `BREAK=empty` one of them fails.

use gatewright_testing::{BoxError, Mcp, Transport, expect, test_use};
use serde_json::json;

test_use! { server: "orders-server", transport: Transport::Stdio }

#[gatewright_testing::test]
async fn offers_to_add_up(mcp: Mcp) -> Result<(), BoxError> {
    expect(&mcp.tools().list().await?).to_contain_tool("total");
    Ok(())
}

#[gatewright_testing::test]
async fn adds_up_an_order(mcp: Mcp) -> Result<(), BoxError> {
    let order = json!({"items": [{"price_cents": 250, "count": 2}, {"price_cents": 99, "count": 1}]});
    let result = mcp.tools().call("total", order).await?;
    expect(&result).to_be_successful();
    expect(&result).to_match_json(json!({"total_cents": 599}));
    Ok(())
}

#[gatewright_testing::test]
async fn refuses_an_empty_order(mcp: Mcp) -> Result<(), BoxError> {
    let result = mcp.tools().call("total", json!({"items": []})).await?;
    expect(&result).to_be_error();
    expect(&result).to_have_text_content("at least one item");
    Ok(())
}

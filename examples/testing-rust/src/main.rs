//! An MCP server for orders over stdio. BREAK makes it wrong in one way, for the tests to find.

use rmcp::{
    ServerHandler, ServiceExt,
    handler::server::wrapper::{Json, Parameters},
    tool, tool_handler, tool_router,
    transport::stdio,
};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, schemars::JsonSchema)]
struct Item {
    price_cents: u64,
    count: u64,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Order {
    items: Vec<Item>,
}

#[derive(Serialize, schemars::JsonSchema)]
struct Total {
    total_cents: u64,
}

struct Orders;

#[tool_router]
impl Orders {
    #[tool(description = "Adds up an order")]
    fn total(&self, Parameters(order): Parameters<Order>) -> Result<Json<Total>, String> {
        if order.items.is_empty() && std::env::var("BREAK").as_deref() != Ok("empty") {
            return Err("an order has at least one item".into());
        }
        let mut total_cents: u64 = order.items.iter().map(|item| item.price_cents * item.count).sum();
        if std::env::var("BREAK").as_deref() == Ok("sum") {
            total_cents += 1;
        }
        Ok(Json(Total { total_cents }))
    }
}

#[tool_handler]
impl ServerHandler for Orders {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Orders.serve(stdio()).await?.waiting().await?;
    Ok(())
}

//! Tools for orders.

use rmcp::{
    handler::server::wrapper::{Json, Parameters},
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{
    answer::{Failure, Page, default_limit, hints, matches, page},
    app::App,
    dataset::{Item, Order, OrderStatus, State, TODAY, find_mut},
};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListOrders {
    /// Id of the account, such as acc_0001
    #[schemars(example = &"acc_0001")]
    account_id: Option<String>,
    /// Id of the user, such as usr_0001
    #[schemars(example = &"usr_0001")]
    user_id: Option<String>,
    /// Only orders in this status
    status: Option<OrderStatus>,
    /// Most rows to return
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// nextCursor of the page before; leave out for the first page
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GetOrder {
    /// Id of the order, such as ord_0001
    #[schemars(example = &"ord_0001")]
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateOrder {
    /// Id of the user, such as usr_0001
    #[schemars(example = &"usr_0001")]
    user_id: String,
    /// What is ordered
    #[schemars(length(min = 1), example = json!([{ "productId": "prd_0005", "quantity": 1 }]))]
    items: Vec<OrderLine>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
struct OrderLine {
    /// Id of the product, such as prd_0005
    #[schemars(example = &"prd_0005")]
    product_id: String,
    /// How many
    #[schemars(range(min = 1, max = 1000), example = 1)]
    quantity: u64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ShipOrder {
    /// Id of the order, such as ord_0002
    #[schemars(example = &"ord_0002")]
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CancelOrder {
    /// Id of the order, such as ord_0001
    #[schemars(example = &"ord_0001")]
    id: String,
}

#[tool_router(router = orders, vis = "pub(crate)")]
impl App {
    #[tool(
        title = "List orders",
        description = "List orders, page by page, oldest first, with their items and totals. Can be narrowed to an account, a user or a status such as pending or shipped.",
        annotations(
            title = "List orders",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("billing:read", &[(
            "Customers with pending orders, and what these are worth",
            "const page = await callTool('billing:orders_list', { status: 'pending', limit: 100 });\nconst totals = {};\nfor (const order of page.items) totals[order.accountId] = (totals[order.accountId] ?? 0) + order.totalCents;\nreturn totals;",
        )])
    )]
    fn orders_list(&self, Parameters(input): Parameters<ListOrders>) -> Result<Json<Page<Order>>, Failure> {
        self.with(|state| {
            page(&state.orders, input.limit, input.cursor.as_deref(), |order| {
                matches(input.account_id.as_ref(), &order.account_id)
                    && matches(input.user_id.as_ref(), &order.user_id)
                    && matches(input.status.as_ref(), &order.status)
            })
        })
    }

    #[tool(
        title = "Get an order",
        description = "Get one order by id: who placed it, its items, its total and its status.",
        annotations(
            title = "Get an order",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("billing:read", &[])
    )]
    fn orders_get(&self, Parameters(input): Parameters<GetOrder>) -> Result<Json<Order>, Failure> {
        self.with(|state| state.order(&input.id).cloned())
    }

    #[tool(
        title = "Create an order",
        description = "Create an order: place a new order for products, that is, buy them for a user. Takes the pieces from stock and returns the pending order with its total. Refused when a product is out of stock.",
        annotations(
            title = "Create an order",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false,
            open_world_hint = false
        ),
        meta = hints("billing:write", &[(
            "Order two of the cheapest hardware product in stock",
            "const page = await callTool('billing:products_list', { category: 'hardware', inStock: true });\nconst cheapest = page.items.sort((a, b) => a.priceCents - b.priceCents)[0];\nconst order = await callTool('billing:orders_create', { userId: 'usr_0001', items: [{ productId: cheapest.id, quantity: 2 }] });\nreturn { order: order.id, totalCents: order.totalCents };",
        )])
    )]
    fn orders_create(&self, Parameters(input): Parameters<CreateOrder>) -> Result<Json<Order>, Failure> {
        self.with(|state| create(state, &input))
    }

    #[tool(
        title = "Ship an order",
        description = "Ship an order that was paid: mark it as sent to the customer.",
        annotations(
            title = "Ship an order",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("billing:write", &[])
    )]
    fn orders_ship(&self, Parameters(input): Parameters<ShipOrder>) -> Result<Json<Order>, Failure> {
        self.with(|state| {
            let order = find_mut(&mut state.orders, "order", &input.id)?;
            if !matches!(order.status.as_str(), "paid" | "shipped") {
                return Failure::invalid(format!(
                    "The order {} is {} and cannot be shipped; only paid orders can.",
                    order.id, order.status
                ));
            }
            order.status = "shipped".to_owned();
            Ok(order.clone())
        })
    }

    #[tool(
        title = "Cancel an order",
        description = "Cancel an order that has not been shipped. Puts its items back into stock and voids its unpaid invoices.",
        annotations(
            title = "Cancel an order",
            read_only_hint = false,
            destructive_hint = true,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("billing:delete", &[])
    )]
    fn orders_cancel(&self, Parameters(input): Parameters<CancelOrder>) -> Result<Json<Order>, Failure> {
        self.with(|state| cancel(state, &input.id))
    }
}

fn create(state: &mut State, input: &CreateOrder) -> Result<Order, Failure> {
    let user = state.user(&input.user_id)?.clone();
    if !user.active {
        return Failure::invalid(format!("The user {} is not active and cannot order.", user.id));
    }
    if input.items.is_empty() {
        return Failure::invalid("'items' must not be empty.");
    }
    let mut items: Vec<Item> = Vec::new();
    for OrderLine { product_id, quantity } in &input.items {
        let (product, quantity) = (state.product(product_id)?, *quantity);
        if !(1..=1000).contains(&quantity) {
            return Failure::invalid(format!("'quantity' must be from 1 to 1000, not {quantity}."));
        }
        if items.iter().any(|item| item.product_id == product.id) {
            return Failure::invalid(format!(
                "The product {} stands in two items; add their quantities.",
                product.id
            ));
        }
        if product.stock < quantity {
            return Failure::invalid(format!(
                "{quantity} of {} were ordered and {} are in stock.",
                product.id, product.stock
            ));
        }
        items.push(Item { product_id: product.id.clone(), quantity, unit_price_cents: product.price_cents });
    }
    for item in &items {
        find_mut(&mut state.products, "product", &item.product_id)?.stock -= item.quantity;
    }
    let order = Order {
        id: state.next_id("ord"),
        account_id: user.account_id,
        user_id: user.id,
        status: "pending".to_owned(),
        total_cents: items.iter().map(|item| item.quantity * item.unit_price_cents).sum(),
        items,
        currency: "EUR".to_owned(),
        created_at: TODAY.to_owned(),
    };
    state.orders.insert(order.id.clone(), order.clone());
    Ok(order)
}

fn cancel(state: &mut State, id: &str) -> Result<Order, Failure> {
    let order = find_mut(&mut state.orders, "order", id)?;
    if !matches!(order.status.as_str(), "pending" | "paid") {
        return Failure::invalid(format!(
            "The order {} is {} and cannot be cancelled; only pending and paid orders can.",
            order.id, order.status
        ));
    }
    order.status = "cancelled".to_owned();
    let order = order.clone();
    for item in &order.items {
        find_mut(&mut state.products, "product", &item.product_id)?.stock += item.quantity;
    }
    for invoice in state.invoices.values_mut().filter(|invoice| invoice.order_id == order.id) {
        if invoice.status != "paid" {
            invoice.status = "void".to_owned();
        }
    }
    Ok(order)
}

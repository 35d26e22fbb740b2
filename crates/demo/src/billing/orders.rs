//! Tools for orders.

use serde_json::{Value, json};

use crate::dataset::{Item, Order, State, TODAY, find_mut};
use crate::schema::{ORDER_STATUS, by_id, choice, id, list_input, object, order, page_of};
use crate::tool::{Args, Effect, Failure, Outcome, Spec, page, row};

pub(super) fn tools() -> Vec<Spec> {
    vec![
        Spec {
            name: "orders_list",
            title: "List orders",
            effect: Effect::Read,
            description: "List orders, page by page, oldest first, with their items and totals. Can be narrowed to an account, a user or a status such as pending or shipped.",
            input: list_input(
                json!({
                    "accountId": id("account", "acc_0001"),
                    "userId": id("user", "usr_0001"),
                    "status": choice("Only orders in this status", &ORDER_STATUS),
                }),
                &[],
            ),
            output: page_of(order()),
            examples: &[(
                "Customers with pending orders, and what these are worth",
                "const page = await callTool('billing:orders_list', { status: 'pending', limit: 100 });\nconst totals = {};\nfor (const order of page.items) totals[order.accountId] = (totals[order.accountId] ?? 0) + order.totalCents;\nreturn totals;",
            )],
            run: |state, args| {
                page(&state.orders, args, |order| {
                    args.matches("accountId", &order.account_id)
                        && args.matches("userId", &order.user_id)
                        && args.matches("status", &order.status)
                })
            },
        },
        Spec {
            name: "orders_get",
            title: "Get an order",
            effect: Effect::Read,
            description: "Get one order by id: who placed it, its items, its total and its status.",
            input: by_id("order", "ord_0001"),
            output: order(),
            examples: &[],
            run: |state, args| state.order(args.text("id")).map(row),
        },
        Spec {
            name: "orders_create",
            title: "Create an order",
            effect: Effect::Create,
            description: "Create an order: place a new order for products, that is, buy them for a user. Takes the pieces from stock and returns the pending order with its total. Refused when a product is out of stock.",
            input: object(
                json!({
                    "userId": id("user", "usr_0001"),
                    "items": {
                        "type": "array", "minItems": 1, "description": "What is ordered",
                        "items": object(
                            json!({
                                "productId": id("product", "prd_0005"),
                                "quantity": { "type": "integer", "minimum": 1, "maximum": 1000, "description": "How many", "examples": [1] },
                            }),
                            &["productId", "quantity"],
                        ),
                        "examples": [[{ "productId": "prd_0005", "quantity": 1 }]],
                    },
                }),
                &["userId", "items"],
            ),
            output: order(),
            examples: &[(
                "Order two of the cheapest hardware product in stock",
                "const page = await callTool('billing:products_list', { category: 'hardware', inStock: true });\nconst cheapest = page.items.sort((a, b) => a.priceCents - b.priceCents)[0];\nconst order = await callTool('billing:orders_create', { userId: 'usr_0001', items: [{ productId: cheapest.id, quantity: 2 }] });\nreturn { order: order.id, totalCents: order.totalCents };",
            )],
            run: create,
        },
        Spec {
            name: "orders_ship",
            title: "Ship an order",
            effect: Effect::Update,
            description: "Ship an order that was paid: mark it as sent to the customer.",
            input: by_id("order", "ord_0002"),
            output: order(),
            examples: &[],
            run: |state, args| {
                let order = find_mut(&mut state.orders, "order", args.text("id"))?;
                if !matches!(order.status.as_str(), "paid" | "shipped") {
                    return Failure::invalid(format!(
                        "The order {} is {} and cannot be shipped; only paid orders can.",
                        order.id, order.status
                    ));
                }
                order.status = "shipped".to_owned();
                Ok(row(order))
            },
        },
        Spec {
            name: "orders_cancel",
            title: "Cancel an order",
            effect: Effect::Destroy,
            description: "Cancel an order that has not been shipped. Puts its items back into stock and voids its unpaid invoices.",
            input: by_id("order", "ord_0001"),
            output: order(),
            examples: &[],
            run: cancel,
        },
    ]
}

fn create(state: &mut State, args: &Args<'_>) -> Outcome {
    let user = state.user(args.text("userId"))?.clone();
    if !user.active {
        return Failure::invalid(format!("The user {} is not active and cannot order.", user.id));
    }
    let mut items: Vec<Item> = Vec::new();
    for line in args.0.get("items").and_then(Value::as_array).into_iter().flatten() {
        let product = state.product(line["productId"].as_str().unwrap_or_default())?;
        let quantity = line["quantity"].as_u64().unwrap_or_default();
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
    let id = state.next_id("ord");
    let order = Order {
        id: id.clone(),
        account_id: user.account_id,
        user_id: user.id,
        status: "pending".to_owned(),
        total_cents: items.iter().map(|item| item.quantity * item.unit_price_cents).sum(),
        items,
        currency: "EUR".to_owned(),
        created_at: TODAY.to_owned(),
    };
    let answer = row(&order);
    state.orders.insert(id, order);
    Ok(answer)
}

fn cancel(state: &mut State, args: &Args<'_>) -> Outcome {
    let order = find_mut(&mut state.orders, "order", args.text("id"))?;
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
    Ok(row(&order))
}

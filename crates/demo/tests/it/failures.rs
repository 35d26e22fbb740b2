use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gatewright_demo::Dataset;
use serde_json::{Value, json};

use crate::support::Demo;

#[test]
fn an_unknown_id_is_not_found_in_every_tool_that_takes_one() {
    let demo = Demo::new();
    let mut checked = 0;
    for (name, tool) in demo.tools() {
        let Some(Value::Array(required)) = tool["inputSchema"].get("required") else { continue };
        let ids = ["id", "accountId", "userId", "orderId", "requesterId"];
        let Some(id) = ids.into_iter().find(|id| required.contains(&json!(id))) else { continue };
        let mut input = crate::support::arguments(&tool["inputSchema"]);
        input[id] = json!("nobody_0000");
        let message = demo.refusal(&name, input, "NOT_FOUND");
        assert!(message.contains("nobody_0000"), "{name}: {message}");
        checked += 1;
    }
    assert!(checked >= 20, "{checked}");
}

#[test]
fn arguments_of_another_shape_are_refused_by_the_schema_and_by_the_tool() {
    let demo = Demo::new();
    let tools: BTreeMap<String, Value> = demo.tools().into_iter().collect();
    for (tool, arguments, by_schema, by_tool) in [
        ("crm:users_get", json!({}), "\"id\" is a required property", "missing field `id`"),
        ("crm:users_get", json!({ "id": 7 }), "/id", "integer `7`, expected a string"),
        (
            "crm:users_get",
            json!({ "id": "usr_0001", "verbose": true }),
            "'verbose'",
            "unknown field `verbose`",
        ),
        ("crm:users_list", json!({ "role": "boss" }), "/role", "`admin`, `billing`, `member`, `viewer`"),
        ("crm:users_list", json!({ "limit": 2.5 }), "/limit", "floating point `2.5`"),
        ("crm:users_list", json!({ "limit": -1 }), "/limit", "integer `-1`"),
        (
            "billing:orders_create",
            json!({ "userId": "usr_0001", "items": [{ "productId": "prd_0001" }] }),
            "/items/0",
            "missing field `quantity`",
        ),
        ("support:tickets_stats", json!({ "a": 1 }), "does not allow", "unknown field `a`"),
    ] {
        let schema = jsonschema::validator_for(&tools[tool]["inputSchema"]).unwrap();
        let error = schema.iter_errors(&arguments).next().unwrap();
        let refused = format!("{} {error}", error.instance_path());
        assert!(refused.contains(by_schema), "{tool} {arguments}: {refused}");
        let result = demo.result(tool, arguments.clone());
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(result["isError"] == true && text.contains(by_tool), "{tool} {arguments}: {text}");
    }
}

#[test]
fn values_that_do_not_fit_are_refused_with_the_name_of_the_argument() {
    let demo = Demo::new();
    for (tool, arguments, says) in [
        ("crm:users_list", json!({ "limit": 0 }), "'limit' must be a whole number from 1 to 100"),
        ("crm:users_list", json!({ "limit": 101 }), "from 1 to 100"),
        ("crm:users_list", json!({ "cursor": "abc" }), "'abc' is not a cursor"),
        ("crm:users_list", json!({ "cursor": "ünï_0001" }), "is not a cursor"),
        ("crm:users_search", json!({ "query": "q".repeat(2001) }), "'query' is longer than 2000 characters"),
        (
            "crm:users_create",
            json!({ "accountId": "acc_0001", "name": "N", "email": "n@" }),
            "e-mail address",
        ),
        ("crm:users_update", json!({ "id": "usr_0002", "email": "n@" }), "'email' must be an e-mail address"),
        (
            "crm:users_create",
            json!({ "accountId": "acc_0001", "name": " ", "email": "n@b.co" }),
            "'name' must not be empty",
        ),
        ("billing:orders_create", json!({ "userId": "usr_0001", "items": [] }), "'items' must not be empty"),
        (
            "billing:orders_create",
            json!({ "userId": "usr_0001", "items": [{ "productId": "prd_0001", "quantity": 0 }] }),
            "'quantity' must be from 1 to 1000",
        ),
        (
            "billing:products_set_price",
            json!({ "id": "prd_0001", "priceCents": 100_000_001 }),
            "'priceCents' must be 100000000 or less",
        ),
        ("billing:revenue_report", json!({ "from": "2026-02-30" }), "YYYY-MM-DD"),
    ] {
        let message = demo.refusal(tool, arguments.clone(), "VALIDATION_ERROR");
        assert!(message.contains(says), "{tool} {arguments}: {message}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let demo = Demo::new();
    let state = |demo: &Demo| {
        [
            "crm:users_list",
            "billing:orders_list",
            "billing:invoices_list",
            "billing:products_list",
            "support:tickets_list",
        ]
        .map(|tool| demo.all(tool, json!({})))
    };
    let before = state(&demo);
    for (tool, arguments, says) in [
        ("billing:orders_cancel", json!({ "id": "ord_0003" }), "is shipped"),
        ("billing:orders_ship", json!({ "id": "ord_0001" }), "is pending"),
        (
            "billing:orders_create",
            json!({ "userId": "usr_0001", "items": [{ "productId": "prd_0007", "quantity": 1 }] }),
            "0 are in stock",
        ),
        (
            "billing:orders_create",
            json!({ "userId": "usr_0001", "items": [
            { "productId": "prd_0005", "quantity": 1 }, { "productId": "prd_0005", "quantity": 1 }] }),
            "two items",
        ),
        (
            "billing:orders_create",
            json!({ "userId": "usr_0016", "items": [{ "productId": "prd_0005", "quantity": 1 }] }),
            "not active",
        ),
        ("billing:invoices_pay", json!({ "id": "inv_0021" }), "is draft"),
        ("billing:invoices_void", json!({ "id": "inv_0002" }), "is paid"),
        ("billing:invoices_create", json!({ "orderId": "ord_0001" }), "inv_0001"),
        ("billing:invoices_create", json!({ "orderId": "ord_0005" }), "cancelled"),
        ("billing:revenue_report", json!({ "from": "2026-03-01", "to": "2026-01-01" }), "later than"),
        (
            "crm:users_create",
            json!({ "accountId": "acc_0001", "name": "A", "email": "ADA.lindqvist@northwind.example" }),
            "taken by the user usr_0001",
        ),
        (
            "crm:users_update",
            json!({ "id": "usr_0002", "email": "ada.lindqvist@northwind.example" }),
            "taken",
        ),
        ("crm:users_delete", json!({ "id": "usr_0001" }), "users_set_active"),
        (
            "crm:accounts_create",
            json!({ "name": "contoso labs", "industry": "x", "country": "DE" }),
            "acc_0002",
        ),
        (
            "support:tickets_assign",
            json!({ "id": "tkt_0005", "assignee": "noor@support.example" }),
            "is closed",
        ),
        ("support:tickets_escalate", json!({ "id": "tkt_0005" }), "is closed"),
    ] {
        let message = demo.refusal(tool, arguments, "VALIDATION_ERROR");
        assert!(message.contains(says), "{tool}: {message}");
    }
    assert_eq!(state(&demo), before);
}

#[test]
fn the_fourth_call_within_a_minute_is_refused_until_the_first_is_a_minute_old() {
    for (tool, arguments) in [
        ("crm:exports_start", json!({ "accountId": "acc_0001" })),
        ("support:tickets_notify", json!({ "id": "tkt_0001", "message": "Soon." })),
    ] {
        let millis = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&millis);
        let demo = Demo::over(&Dataset::seeded_with_clock(move || {
            Duration::from_millis(clock.load(Ordering::SeqCst))
        }));
        for at in [0, 10_000, 20_000] {
            millis.store(at, Ordering::SeqCst);
            demo.ok(tool, arguments.clone());
        }
        millis.store(30_500, Ordering::SeqCst);
        let message = demo.refusal(tool, arguments.clone(), "RATE_LIMIT");
        assert!(message.contains("30 seconds"), "{message}");
        millis.store(59_999, Ordering::SeqCst);
        demo.refusal(tool, arguments.clone(), "RATE_LIMIT");
        millis.store(60_000, Ordering::SeqCst);
        demo.ok(tool, arguments.clone());
        demo.refusal(tool, arguments, "RATE_LIMIT");
    }
}

#[test]
fn a_refused_call_does_not_count_against_the_rate_limit() {
    let demo = Demo::new();
    for _ in 0..5 {
        demo.refusal("crm:exports_start", json!({ "accountId": "nobody" }), "NOT_FOUND");
    }
    demo.ok("crm:exports_start", json!({ "accountId": "acc_0001" }));
}

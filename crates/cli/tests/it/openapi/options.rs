//! Options of an OpenAPI app and its tools, which are those of every app.

use super::*;
use crate::gate::{self, Site};

/// An API key with a scope: itself, and its entry in the configuration.
fn key(name: &str, scope: &str) -> (String, Value) {
    let arguments = ["api-key", "generate", name, "--scope", scope, "--json"];
    let output = Command::new(gatewright()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    (made["key"].as_str().unwrap().to_owned(), made["entry"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_have_the_limits_scopes_visibility_and_approvals_that_are_set_for_them() {
    let (shop, folder) = (Shop::open().await, tempfile::tempdir().unwrap());
    let ((reader, reader_entry), (clerk, clerk_entry)) = (key("reader", "orders"), key("clerk", "refunds"));
    let mut all = gate::config(json!({"apiKeys": [reader_entry, clerk_entry]}));
    let mut app = shop.app(&written(folder.path(), &document(MORE)));
    app["tools"] = json!({
        "listOrders": {"visibleInListTools": true},
        "refund": {"visibleInListTools": true, "scopes": ["refunds"]},
        "createOrder": {"visibleInListTools": true, "approval": "always"},
        "watchOrders": {"visibleInListTools": true, "disabled": true},
    });
    all["apps"] = json!({"shop": app});
    all["codecall"] = json!({});
    all["auth"]["scopes"] = json!({"orders": "Orders", "refunds": "Refunds"});
    all["rateLimits"] = json!([{"tool": "shop:listOrders", "limit": 1, "window": "1h"}]);
    let site = Site::start(&all);
    let gate = site.gate();
    let listed = async |key: &str| {
        let mut tools = gate.tools(Some(key)).await;
        tools.retain(|tool| tool.starts_with("shop"));
        tools.sort_unstable();
        tools
    };
    assert_eq!(listed(&reader).await, ["shop:createOrder", "shop:listOrders"], "and `getOrder` in code mode");
    assert_eq!(listed(&clerk).await, ["shop:createOrder", "shop:listOrders", "shop:refund"]);
    let call = async |key: &str, tool: &str, input: Value| {
        gate.mcp(Some(key), "tools/call", json!({"name": tool, "arguments": input})).await.body
    };
    for (key, tool, input, expected) in [
        (&reader, "shop:listOrders", json!({}), "structuredContent"),
        (&reader, "shop:listOrders", json!({}), "RATE_LIMIT"),
        (&clerk, "shop:listOrders", json!({}), "structuredContent"),
        (&reader, "shop:refund", json!({}), "error"),
        (&reader, "shop:watchOrders", json!({}), "error"),
        (&reader, "shop:createOrder", json!({"product": "tea"}), "pproval"),
        (&clerk, "shop:refund", json!({}), "created"),
    ] {
        let answer = call(key, tool, input).await;
        assert!(answer.contains(expected), "{tool}: {answer}");
    }
    let targets: Vec<String> = shop.seen().into_iter().map(|(target, ..)| target).collect();
    assert_eq!(
        targets,
        ["GET /v1/orders", "GET /v1/orders", "POST /v1/refunds"],
        "nothing else reached the API"
    );
}

/// A document with as many operations as that of GitHub, and descriptions of that length.
fn large(operations: usize) -> Value {
    let paths: serde_json::Map<String, Value> = (0..operations)
        .map(|at| {
            let parameters = json!([
                {"name": "owner", "in": "path", "required": true, "schema": {"type": "string"}},
                {"name": "state", "in": "query", "schema": {"type": "string", "enum": ["open", "closed"]}},
            ]);
            let operation = json!({
                "operationId": format!("area-{}/operation-{at}", at % 40), "summary": format!("List things of kind {at}"),
                "description": "Lists the things of an owner, the newest first. ".repeat(8),
                "parameters": parameters, "responses": {"200": {"description": "ok"}},
            });
            (format!("/owners/{{owner}}/things-{at}"), json!({"get": operation}))
        })
        .collect();
    json!({"openapi": "3.1.0", "info": {"title": "Large", "version": "1"}, "paths": paths})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_code_mode_stays_short_whatever_the_number_of_operations() {
    let folder = tempfile::tempdir().unwrap();
    let mut sizes = Vec::new();
    for operations in [1, 1_200] {
        let path = written(folder.path(), &large(operations).to_string());
        let app = json!({"openapi": path, "baseUrl": "https://large.example"});
        let served = Served::start(&config(&app, ""), &["--no-watch"]);
        let client = Client::of(&served).await;
        let found = client.body("codecall:search", json!({"query": "things of an owner"})).await;
        assert_eq!(found["totalIndexed"], operations, "{found:#}");
        let listed = client.running.peer().list_all_tools().await.unwrap();
        sizes.push(json!({"tools": listed}).to_string().len());
    }
    assert!(sizes[1] < 2_500 && sizes[0] == sizes[1], "{sizes:?}");
}

//! Visibility of tools: in lists, for direct calls, and in code mode.

use std::sync::Arc;

use gatewright::{AppOptions, Builder, LocalApp};
use gatewright_demo::{App as DemoApp, Dataset};
use gatewright_testing::{expect, test_use};
use serde_json::{Value, json};

use crate::support::{Demo, Gateways};

test_use! {}

const META: [&str; 4] = ["codecall:search", "codecall:describe", "codecall:execute", "codecall:invoke"];

#[gatewright_testing::test]
async fn codecall_only_lists_the_four_and_refuses_direct_calls(demo: Demo) {
    let listed: Vec<_> = demo.listed().await.into_iter().map(|tool| tool.name).collect();
    assert_eq!(listed, META);
    let result = demo.call("crm:users_list", json!({})).await;
    assert_eq!(result.raw["_meta"]["code"], "ACCESS_DENIED");
    assert!(result.text().contains("codecall:invoke"), "it says what to do: {}", result.text());
}

#[gatewright_testing::test]
async fn every_listed_resource_can_be_subscribed_to_as_the_capabilities_declare(demo: Demo) {
    assert!(demo.follow_all().await > 0);
}

#[gatewright_testing::test]
async fn metadata_driven_lists_everything_and_code_mode_reaches_it_too(gateways: Gateways) {
    let demo = gateways.demo(json!({"mode": "metadata_driven"})).await;
    let listed = demo.listed().await;
    assert!(listed.len() > 30);
    assert_eq!(listed.iter().take(4).map(|tool| tool.name.as_str()).collect::<Vec<_>>(), META);
    expect(&demo.call("crm:users_list", json!({})).await).to_be_successful();
    assert!(demo.result("return (await callTool('crm:users_list', {})).total").await.as_u64().unwrap() > 0);
}

#[gatewright_testing::test]
async fn opt_in_reaches_only_tools_that_say_so(gateways: Gateways) {
    let options: AppOptions = AppOptions {
        tools: [
            ("users_list", json!({"enabledInCodeCall": true})),
            ("users_get", json!({"enabledInCodeCall": false})),
            ("users_search", json!({"visibleInListTools": false})),
            ("users_delete", json!({"disabled": true})),
        ]
        .into_iter()
        .map(|(name, over): (&str, Value)| (name.to_owned(), serde_json::from_value(over).unwrap()))
        .collect(),
        ..AppOptions::default()
    };
    let app = Arc::new(LocalApp::start(DemoApp::crm(Dataset::seeded())).await.unwrap());
    let builder = Builder::new("t", "1").app_with("crm", app, options);
    let demo = gateways.start(builder, json!({"mode": "codecall_opt_in"})).await;

    let listed = demo.listed().await;
    for shown in ["crm:users_list", "crm:users_get"] {
        expect(&listed).to_contain_tool(shown);
    }
    for hidden in ["crm:users_search", "crm:users_delete"] {
        expect(&listed).not().to_contain_tool(hidden);
    }

    let body = demo.meta("invoke", json!({"tool": "crm:users_list", "input": {}})).await;
    assert_eq!(body["status"], "ok", "{body}");
    let body = demo.meta("invoke", json!({"tool": "crm:users_get", "input": {"id": "x"}})).await;
    assert_eq!(body["error"]["code"], "ACCESS_DENIED");
    let body = demo.meta("invoke", json!({"tool": "crm:users_delete", "input": {"id": "x"}})).await;
    assert_eq!(body["error"]["code"], "TOOL_NOT_FOUND");
    let found = demo.meta("search", json!({"query": "get a user", "topK": 50})).await;
    assert!(found["tools"].as_array().unwrap().iter().all(|hit| hit["name"] != "crm:users_get"), "{found}");
}

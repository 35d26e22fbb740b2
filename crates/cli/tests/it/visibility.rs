//! What is listed, what can be called directly, and what code mode reaches.

use std::sync::Arc;

use gatewright::{AppOptions, Builder, LocalApp};
use gatewright_demo::{App as DemoApp, Dataset};
use serde_json::{Value, json};

use crate::support::{demo, start};

const META: [&str; 4] = ["codecall:search", "codecall:describe", "codecall:execute", "codecall:invoke"];

#[tokio::test]
async fn codecall_only_lists_the_four_and_refuses_direct_calls() {
    let demo = demo(json!({})).await;
    let listed: Vec<_> = demo.listed().await.into_iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(listed, META);
    let result = demo.call("crm:users_list", json!({})).await;
    let body = result.structured_content.unwrap();
    assert_eq!(body["code"], "ACCESS_DENIED");
    assert!(body["message"].as_str().unwrap().contains("codecall:invoke"), "it says what to do: {body}");
}

#[tokio::test]
async fn metadata_driven_lists_everything_and_code_mode_reaches_it_too() {
    let demo = demo(json!({"mode": "metadata_driven"})).await;
    let listed = demo.listed().await;
    assert!(listed.len() > 30);
    assert_eq!(listed.iter().take(4).map(|tool| tool.name.as_ref()).collect::<Vec<_>>(), META);
    assert_ne!(demo.call("crm:users_list", json!({})).await.is_error, Some(true));
    assert!(demo.result("return (await callTool('crm:users_list', {})).total").await.as_u64().unwrap() > 0);
}

#[tokio::test]
async fn opt_in_reaches_only_tools_that_say_so() {
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
    let demo =
        start(Builder::new("t", "1").app_with("crm", app, options), json!({"mode": "codecall_opt_in"})).await;

    let listed: Vec<_> = demo.listed().await.into_iter().map(|tool| tool.name.to_string()).collect();
    assert!(listed.contains(&"crm:users_list".to_owned()) && listed.contains(&"crm:users_get".to_owned()));
    assert!(
        !listed.contains(&"crm:users_search".to_owned()) && !listed.contains(&"crm:users_delete".to_owned())
    );

    let body = demo.meta("invoke", json!({"tool": "crm:users_list", "input": {}})).await;
    assert_eq!(body["status"], "ok", "{body}");
    let body = demo.meta("invoke", json!({"tool": "crm:users_get", "input": {"id": "x"}})).await;
    assert_eq!(body["error"]["code"], "ACCESS_DENIED");
    let body = demo.meta("invoke", json!({"tool": "crm:users_delete", "input": {"id": "x"}})).await;
    assert_eq!(body["error"]["code"], "TOOL_NOT_FOUND");
    let found = demo.meta("search", json!({"query": "get a user", "topK": 50})).await;
    assert!(found["tools"].as_array().unwrap().iter().all(|hit| hit["name"] != "crm:users_get"), "{found}");
}

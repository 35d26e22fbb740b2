//! `codecall:search` (contract §B).

use gatewright_core::AppOptions;
use gatewright_testing::{expect, test_use};
use gatewright_upstream::{UpstreamApp, UpstreamConfig};
use serde_json::{Value, json};

use crate::support::Demo;

test_use! {}

fn names(body: &Value) -> Vec<&str> {
    body["tools"].as_array().unwrap().iter().map(|hit| hit["name"].as_str().unwrap()).collect()
}

#[gatewright_testing::test]
async fn a_hit_has_the_four_fields_of_the_contract_and_its_parameters(demo: Demo) {
    let body = demo.meta("search", json!({"query": "list users"})).await;
    let hit = body["tools"][0].as_object().unwrap();
    let keys: Vec<_> = hit.keys().map(String::as_str).collect();
    let of_contract: Vec<_> =
        keys.iter().filter(|key| !["parameters", "input", "result"].contains(key)).collect();
    assert_eq!(of_contract, [&"name", &"appId", &"description", &"score"]);
    assert!(hit.contains_key("parameters") != hit.contains_key("input"), "{body}");
    assert!(hit["name"].is_string() && hit["appId"].is_string() && hit["description"].is_string());
    assert!((0.0..=1.0).contains(&hit["score"].as_f64().unwrap()));
    assert_eq!(hit["name"], "crm:users_list");
    let body = demo.meta("search", json!({"query": "get one user"})).await;
    let user = body["tools"].as_array().unwrap().iter().find(|hit| hit["name"] == "crm:users_get").unwrap();
    let parameters = user.get("parameters").or(user.get("input")).unwrap().as_str().unwrap();
    assert!(parameters == "id" || parameters.contains("id: string"), "{user}");
}

#[gatewright_testing::test]
async fn five_hits_take_less_than_2_kb_and_destructive_tools_are_marked(demo: Demo) {
    let body = demo.meta("search", json!({"query": "delete or update a user, an order, an invoice"})).await;
    assert_eq!(names(&body).len(), 5, "{body}");
    assert!(body.to_string().len() < 2_000, "{body}");
    for hit in demo.meta("search", json!({"query": "delete remove cancel", "topK": 50})).await["tools"]
        .as_array()
        .unwrap()
    {
        let snapshot = demo.running.gateway().registry().operator_snapshot();
        let hints = snapshot.tool(hit["name"].as_str().unwrap()).unwrap().tool.annotations.clone();
        let destroys = hints.is_some_and(|hints| hints.destructive_hint == Some(true));
        assert_eq!(hit.get("destructive").is_some(), destroys, "{hit}");
    }
}

#[gatewright_testing::test]
async fn five_tools_come_back_unless_top_k_says_otherwise(demo: Demo) {
    let query = "list users accounts orders invoices tickets products";
    assert!(names(&demo.meta("search", json!({"query": query})).await).len() <= 5);
    assert_eq!(names(&demo.meta("search", json!({"query": query, "topK": 2})).await).len(), 2);
    assert!(names(&demo.meta("search", json!({"query": query, "topK": 8})).await).len() > 5);
}

#[gatewright_testing::test]
async fn app_ids_limit_the_search_and_total_indexed_counts_all_the_caller_sees(demo: Demo) {
    let all = demo.running.gateway().registry().operator_snapshot().tools.len();
    let body = demo.meta("search", json!({"query": "list", "filter": {"appIds": ["support"]}})).await;
    assert!(
        !names(&body).is_empty() && names(&body).iter().all(|name| name.starts_with("support:")),
        "{body}"
    );
    assert_eq!(body["totalIndexed"], all);
    let none = demo.meta("search", json!({"query": "list", "filter": {"appIds": []}})).await;
    assert!(names(&none).is_empty());
}

#[gatewright_testing::test]
async fn bad_input_is_a_validation_error_that_names_the_field(demo: Demo) {
    for (input, field) in [
        (json!({"query": 7}), "query"),
        (json!({"query": "x", "topK": 0}), "topK"),
        (json!({"query": "x", "topK": 101}), "topK"),
        (json!({"query": "x", "filter": {"apps": []}}), "filter"),
        (json!({"query": "x", "limit": 5}), "limit"),
        (json!({"query": "x", "cursor": "crm:users_list"}), "cursor"),
    ] {
        let result = demo.call("codecall:search", input.clone()).await;
        expect(&result).to_be_error();
        expect(&result).to_match_json(json!({"status": "error", "error": {"code": "VALIDATION_ERROR"}}));
        let body = &result.structured().unwrap()["error"];
        assert!(body["message"].as_str().unwrap().contains(field), "{input}: {body}");
    }
}

#[gatewright_testing::test]
async fn without_a_query_the_catalogue_is_listed_and_an_app_that_is_down_is_named(demo: Demo) {
    let apps = demo.meta("search", json!({})).await;
    let ids: Vec<_> =
        apps["apps"].as_array().unwrap().iter().map(|app| app["appId"].as_str().unwrap()).collect();
    assert!(ids.contains(&"crm") && ids.contains(&"support") && ids.is_sorted(), "{apps}");
    assert!(apps.get("unavailable").is_none(), "{apps}");
    let tools = demo.meta("search", json!({"filter": {"appIds": ["crm"]}, "topK": 100})).await;
    assert!(names(&tools).iter().all(|name| name.starts_with("crm:")) && names(&tools).is_sorted());
    let count =
        apps["apps"].as_array().unwrap().iter().find(|app| app["appId"] == "crm").unwrap()["tools"].clone();
    assert_eq!(json!(names(&tools).len()), count);

    let registry = demo.running.gateway().registry();
    let gone = UpstreamConfig::url("http://127.0.0.1:9/mcp");
    registry.add("gone", UpstreamApp::start("gone", gone, Default::default()), AppOptions::default());
    let found = demo.meta("search", json!({"query": "list users"})).await;
    assert_eq!(found["unavailable"][0]["code"], "UPSTREAM_DOWN", "{found}");
    let refused = demo.call("codecall:invoke", json!({"tool": "gone:anything", "input": {}})).await;
    expect(&refused).to_match_json(json!({"status": "error", "error": {"code": "UPSTREAM_DOWN"}}));
    let caught =
        demo.result("try { await callTool('gone:x', {}) } catch (e) { return [e.code, e.message] }").await;
    assert_eq!(caught[0], "UPSTREAM_DOWN");
    assert!(!caught[1].as_str().unwrap().contains("does not exist"), "{caught}");
}

#[gatewright_testing::test]
async fn odd_queries_are_answered(demo: Demo) {
    for query in ["", " ", "x", "the of and", "\u{0}\u{1}\u{ffff}", &"users ".repeat(20_000), "検索 ユーザー"]
    {
        let body = demo.meta("search", json!({"query": query})).await;
        assert!(body["tools"].is_array() && body["totalIndexed"].is_number());
    }
}

#[gatewright_testing::test]
async fn everyday_phrasings_find_their_tool_first(demo: Demo) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../demo/data/phrasings.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut missed = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case: Value = serde_json::from_str(line).unwrap();
        let body = demo.meta("search", json!({"query": case["query"]})).await;
        let first = names(&body).first().map(|name| json!(name)).unwrap_or_default();
        if !case["relevant"].as_array().unwrap().contains(&first) {
            missed.push(format!("{} -> {first}, not {}", case["query"], case["relevant"]));
        }
    }
    assert!(text.lines().count() >= 30);
    assert!(missed.is_empty(), "{missed:#?}");
}

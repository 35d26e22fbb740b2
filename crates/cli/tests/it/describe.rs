//! `codecall:describe` (contract §B).

use gatewright_testing::test_use;
use serde_json::json;

use crate::support::Demo;

test_use! {}

#[gatewright_testing::test]
async fn a_tool_is_described_with_every_field_of_the_contract(demo: Demo) {
    let body = demo.meta("describe", json!({"toolNames": ["crm:users_get"]})).await;
    let tool = &body["tools"][0];
    assert_eq!(tool["name"], "crm:users_get");
    assert_eq!(tool["appId"], "crm");
    assert!(tool["description"].as_str().unwrap().len() > 10);
    assert_eq!(tool["inputSchema"]["type"], "object");
    assert_eq!(tool["outputSchema"]["type"], "object");
    for hint in ["destructiveHint", "idempotentHint", "openWorldHint"] {
        assert!(tool["annotations"][hint].is_boolean(), "{hint}");
    }
    for example in tool["usageExamples"].as_array().unwrap() {
        assert!(example["description"].is_string() && example["code"].as_str().unwrap().contains("callTool"));
    }
    assert!(body.get("notFound").is_none());
}

#[gatewright_testing::test]
async fn unknown_tools_and_every_meta_tool_are_not_found(demo: Demo) {
    let asked = [
        "codecall:execute",
        "codecall:search",
        "codecall:describe",
        "codecall:invoke",
        "codecall_execute",
        "crm:nope",
        "",
    ];
    let body = demo.meta("describe", json!({"toolNames": asked})).await;
    assert_eq!(body["tools"], json!([]));
    assert_eq!(body["notFound"], json!(asked));
}

#[gatewright_testing::test]
async fn the_authors_examples_come_first_and_generated_ones_fill_up_to_five(demo: Demo) {
    let snapshot = demo.running.gateway().registry().operator_snapshot();
    let authored: Vec<_> = snapshot.tools.iter().filter(|tool| !tool.meta.examples.is_empty()).collect();
    assert!(!authored.is_empty());
    for tool in &snapshot.tools {
        let body = demo.meta("describe", json!({"toolNames": [tool.name]})).await;
        let shown = body["tools"][0]["usageExamples"].as_array().unwrap();
        assert!((1..=5).contains(&shown.len()), "{}: {}", tool.name, shown.len());
        for (example, own) in shown.iter().zip(&tool.meta.examples) {
            assert_eq!(example["code"], own.code, "{}", tool.name);
        }
        assert!(
            shown.len() > tool.meta.examples.len() || shown.len() == 5,
            "{} has room for generated ones",
            tool.name
        );
    }
}

#[gatewright_testing::test]
async fn both_spellings_of_a_name_are_accepted(demo: Demo) {
    let body = demo.meta("describe", json!({"toolNames": ["crm_users_get"]})).await;
    assert_eq!(body["tools"][0]["name"], "crm:users_get");
}

#[gatewright_testing::test]
async fn types_are_one_declaration_for_each_tool_and_much_shorter(demo: Demo) {
    let asked = ["crm:users_get", "crm:users_list", "crm:nope"];
    let types = demo.meta("describe", json!({"toolNames": asked, "detail": "types"})).await;
    let text = types["types"].as_str().unwrap();
    assert!(text.contains("'crm:users_get'(input: ") && text.contains("'crm:users_list'(input: "), "{text}");
    assert!(!text.contains("Promise<unknown>"), "both declare their results: {text}");
    assert_eq!(types["notFound"], json!(["crm:nope"]));
    assert!(types.get("tools").is_none());
    let full = demo.meta("describe", json!({"toolNames": asked, "detail": "full"})).await;
    assert_eq!(full, demo.meta("describe", json!({"toolNames": asked})).await);
    assert!(types.to_string().len() * 3 < full.to_string().len(), "{types}");
}

//! `codecall:describe` (contract §B).

use gatewright_testing::test_use;
use serde_json::json;

use crate::{
    gate::Gate,
    served::{LONG, Served},
    stub,
    support::Demo,
};

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

#[tokio::test]
async fn full_descriptions_beyond_what_an_answer_has_room_for_are_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let long = |name: &str| {
        let mut tool = stub::plain(name);
        let properties =
            (0..4_000).map(|at| (format!("property_{at}"), json!({"type": "string", "maxLength": at})));
        tool["inputSchema"]["properties"] = properties.collect::<serde_json::Map<_, _>>().into();
        tool
    };
    stub::set(folder.path(), &[long("a"), long("b"), long("c"), long("d")]);
    let config = json!({"codecall": {"worker": {"workers": 1}}, "apps": {"stub": stub::app(folder.path())}});
    let served = Served::start(&config.to_string(), &["--no-watch"]);
    let base = format!("http://{}", served.address);
    let gate = Gate::new(&base, vec![base.clone()]);
    let asked = ["stub:a", "stub:b", "stub:c", "stub:d"];
    let describe = async |input| gate.call(None, "codecall:describe", input).await;
    let complete = async {
        loop {
            let body = describe(json!({"toolNames": asked})).await;
            if body.get("unavailable").is_none() && body.get("notFound").is_none() {
                return body;
            }
        }
    };
    let body = tokio::time::timeout(LONG, complete).await.unwrap();
    let described: Vec<&str> =
        body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let left_out: Vec<&str> =
        body["leftOut"]["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(!described.is_empty() && !left_out.is_empty(), "{described:?} {left_out:?}");
    assert_eq!([described, left_out].concat(), asked);
    assert!(body["leftOut"]["why"].as_str().unwrap().contains("fewer tools"));
    let one = describe(json!({"toolNames": ["stub:d"]})).await;
    assert_eq!((&one["tools"][0]["name"], one.get("leftOut")), (&json!("stub:d"), None));
}

//! Examples of fixtures: schemas of the kinds that real servers have.

use std::sync::Arc;

use gatewright_agentscript::{Limits, Preset, ScriptPolicy, ScriptSource, VALIDATE_STACK};
use serde_json::{Value, json};

use super::{
    testing::{entries, fixtures},
    *,
};
use crate::declare;

/// The one tool with this input schema.
async fn with_schema(schema: Value) -> Arc<ToolEntry> {
    entries(json!([{"name": "one", "inputSchema": schema}])).await.remove(0)
}

/// Why AgentScript refuses a script under the strictest preset.
fn refused(code: &str) -> Option<String> {
    let code = code.to_owned();
    let check = move || {
        let (policy, limits) = (ScriptPolicy::new(Preset::LockedDown), Limits::preset(Preset::LockedDown));
        ScriptSource::new(&code).validate(&policy, &limits).err().map(|why| format!("{why:?}"))
    };
    std::thread::Builder::new().stack_size(VALIDATE_STACK).spawn(check).unwrap().join().unwrap()
}

#[tokio::test]
async fn every_fixture_gets_examples_that_its_schema_and_the_validator_accept() {
    let tools = fixtures().await;
    assert_eq!(tools.len(), 14);
    for tool in tools {
        let arguments = arguments::fitting(&tool, None).unwrap_or_else(|| panic!("{} has none", tool.name));
        assert_eq!(tool.schema.check(&arguments), Ok(()), "{}: {arguments}", tool.name);
        let examples = of(&tool, None);
        assert!((2..=5).contains(&examples.len()), "{}", tool.name);
        for example in examples {
            assert_eq!(refused(&example.code), None, "{}:\n{}", tool.name, example.code);
            assert!(!example.code.contains("overdue"));
        }
    }
}

#[tokio::test]
async fn values_come_from_the_schema_and_the_description_before_they_are_made_up() {
    let tools = fixtures().await;
    let of = |name: &str| {
        let tool = tools.iter().find(|tool| &*tool.local_name == name).unwrap();
        arguments::fitting(tool, None).unwrap()
    };
    assert_eq!(of("read_query"), json!({"query": "SELECT 1"}));
    assert_eq!(of("get_file_contents"), json!({"owner": "octocat", "repo": "hello-world", "path": "/"}));
    assert_eq!(of("list_issues"), json!({"state": "open", "perPage": 1}));
    assert_eq!(of("list_everything"), json!({}));
    assert_eq!(of("search_code"), json!({"q": "addClass repo:jquery/jquery"}));
    assert_eq!(of("set_key"), json!({"project": "PROJ-1", "ttl": 0.5, "share": 10}));
    assert_eq!(of("send_payment"), json!({"to": {"kind": "mail", "mail": "ada@example.com"}, "amount": 10}));
    assert_eq!(of("find_person"), json!({"email": "ada@example.com"}));
    assert_eq!(of("write_cells"), json!({"range": [1, 1], "values": [["example"]]}));
    let event = of("create_event");
    assert_eq!(event["start"], json!({"dateTime": "2026-01-15T09:30:00Z", "timeZone": "Europe/Berlin"}));
    assert_eq!(event["guests"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn captions_are_the_tools_own_words() {
    let captions: Vec<String> = fixtures().await.iter().map(|tool| caption::of(tool)).collect();
    for caption in [
        "Execute a SELECT query on the SQLite database",
        "Get file contents",
        "Create a calendar event",
        "Pick",
    ] {
        assert!(captions.iter().any(|one| one == caption), "{caption}: {captions:#?}");
    }
}

#[tokio::test]
async fn expressions_of_a_schema_are_read_for_an_example_as_far_as_the_budget_reaches() {
    let dates = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("value{n}")).collect();
        let date = json!({"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"});
        let properties: JsonObject = names.iter().map(|name| (name.clone(), date.clone())).collect();
        json!({"type": "object", "properties": properties, "required": names})
    };
    assert!(arguments::fitting(&*with_schema(dates(10)).await, None).is_some());
    assert!(arguments::fitting(&*with_schema(dates(100)).await, None).is_none());
}

#[tokio::test]
async fn a_tool_whose_schema_refuses_every_candidate_has_no_generated_example() {
    for schema in [
        json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?:zq){7}$"}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"type": "string", "enum": ["x"], "minLength": 2}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": false}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"type": "nonsense"}}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/gone"}}, "required": ["a"]}),
    ] {
        assert!(of(&*with_schema(schema.clone()).await, None).is_empty(), "{schema}");
    }
}

#[tokio::test]
async fn a_schema_that_multiplies_itself_is_given_up_early() {
    let level = |next: usize| {
        let property = json!({"$ref": format!("#/$defs/l{next}")});
        let names: Vec<String> = (0..50).map(|n| format!("p{n}")).collect();
        let properties: serde_json::Map<String, Value> =
            names.iter().map(|name| (name.clone(), property.clone())).collect();
        json!({"type": "object", "properties": properties, "required": names})
    };
    let defs: serde_json::Map<String, Value> =
        (0..5).map(|n| (format!("l{n}"), level((n + 1) % 5))).collect();
    let schema = json!({"type": "object", "$defs": defs, "properties": {"a": {"$ref": "#/$defs/l0"}}, "required": ["a"]});
    assert!(of(&*with_schema(schema).await, None).is_empty());
}

#[tokio::test]
async fn values_of_a_schema_are_copied_into_a_candidate_as_far_as_there_is_room() {
    let nested = |levels: usize, leaf: Value| {
        let list = |items, _| json!({"type": "array", "minItems": 8, "items": items});
        json!({"type": "object", "required": ["a"], "properties": {"a": (0..levels).fold(leaf, list)}})
    };
    let text = |bytes: usize| json!({"type": "string", "default": "x".repeat(bytes)});
    let shared = |bytes: usize| {
        let names: Vec<String> = (0..240).map(|n| format!("p{n}")).collect();
        let property = |name: &String| (name.clone(), json!({"$ref": "#/$defs/text"}));
        let properties: JsonObject = names.iter().map(property).collect();
        json!({"type": "object", "properties": properties, "required": names, "$defs": {"text": text(bytes)}})
    };
    let long_names = json!({"type": "object", "required": ["a"], "properties": {"a": {
        "type": "array", "minItems": 8, "items": {"type": "array", "minItems": 8, "items": {
            "type": "object", "required": ["n".repeat(1_000)]}}}}});
    for schema in [nested(5, text(900)), nested(3, text(10_000)), shared(900), shared(100_000), long_names] {
        let tool = with_schema(schema.clone()).await;
        for value in [arguments::fitting(&tool, None), result(&tool, schema.as_object().unwrap())] {
            let bytes = value.map_or(0, |value| value.to_string().len());
            assert!(bytes < 40_000, "{bytes} bytes");
        }
    }
    assert!(arguments::fitting(&*with_schema(shared(100)).await, None).is_some());
    assert!(arguments::fitting(&*with_schema(nested(2, text(100))).await, None).is_some());
}

#[tokio::test]
async fn a_candidate_is_given_up_when_too_many_parts_of_its_schema_are_looked_at() {
    let wide = |parts: usize| {
        let names: Vec<String> = (0..30).map(|n| format!("p{n}")).collect();
        let property = |name: &String| (name.clone(), json!({"$ref": "#/$defs/all"}));
        let properties: JsonObject = names.iter().map(property).collect();
        let all = json!({"type": "object", "allOf": vec![json!({"$ref": "#/$defs/one"}); parts]});
        json!({"type": "object", "properties": properties, "required": names, "$defs": {"all": all, "one": {}}})
    };
    assert!(arguments::fitting(&*with_schema(wide(10)).await, None).is_some());
    assert!(arguments::fitting(&*with_schema(wide(400)).await, None).is_none());
}

#[tokio::test]
async fn full_has_at_most_five_examples_and_types_one_of_each_tool() {
    let own = |n: usize| json!({"description": format!("Own {n}"), "code": format!("return await callTool('t:many', {{ n: {n} }})")});
    let tool = |name: &str, count: usize| {
        json!({"name": name, "inputSchema": {"type": "object", "required": ["rows"], "properties": {"rows": {"type": "array"}}},
            "_meta": {"gatewright": {"examples": (0..count).map(own).collect::<Vec<_>>()}}})
    };
    let tools = entries(json!([tool("many", 9), tool("some_get", 4), tool("get_none", 0)])).await;
    let counts: Vec<usize> = tools.iter().map(|tool| of(tool, None).len()).collect();
    assert_eq!(counts, [3, 5, 5]);
    let shown: Vec<String> = tools.iter().map(|tool| call_worth_showing(tool, None).unwrap()).collect();
    assert_eq!(shown.len(), 3);
    let declared = tools.iter().zip(&shown).map(|(tool, example)| declare::Declared {
        tool,
        result: None,
        example: Some(example.clone()),
    });
    let types = declare::declarations(&declared.collect::<Vec<_>>());
    assert_eq!(types.matches("// e.g. ").count(), 3, "{types}");
    assert!(types.contains("{ n: 0 }") && !types.contains("{ n: 1 }"), "{types}");
}

#[tokio::test]
async fn types_of_accepted_inputs_are_used_as_far_as_the_schema_accepts_them() {
    let schema =
        json!({"type": "object", "required": ["filter"], "properties": {"filter": {"type": "object"}}});
    let tool = with_schema(schema).await;
    let seen = |filter: Value| {
        let seen = json!({"type": "object", "required": ["filter"], "properties": {"filter": filter}});
        serde_json::from_value::<JsonObject>(seen).unwrap()
    };
    let fitting =
        seen(json!({"type": "object", "required": ["email"], "properties": {"email": {"type": "string"}}}));
    assert_eq!(
        arguments::fitting(&tool, Some(&fitting)),
        Some(json!({"filter": {"email": "ada@example.com"}}))
    );
    let other = seen(json!({"type": "string"}));
    assert_eq!(arguments::fitting(&tool, Some(&other)), Some(json!({"filter": {}})));
}

/// Prints how many tools of a file get examples: `{name, description, inputSchema}`, one to a line, in the file that the
/// variable `TOOLS` names.
#[tokio::test]
#[ignore = "measures a file of tools"]
async fn how_many_tools_of_a_file_get_examples() {
    #[expect(clippy::disallowed_methods, reason = "a measurement that is started by hand")]
    let file = std::env::var("TOOLS").unwrap();
    let lines = std::fs::read_to_string(file).unwrap();
    let tools = lines.lines().enumerate().map(|(at, line)| {
        let mut tool: Value = serde_json::from_str(line).unwrap();
        let name = tool["name"].as_str().unwrap().rsplit(':').next().unwrap();
        tool["name"] = format!("{name}.{at}").into();
        tool
    });
    let tools = entries(tools.collect()).await;
    let (mut none, mut bad, mut examples) = (Vec::new(), Vec::new(), 0);
    for tool in &tools {
        let shown = of(tool, None);
        if shown.is_empty() {
            none.push(tool.name.to_string());
        }
        examples += shown.len();
        bad.extend(shown.iter().filter_map(|one| Some((tool.name.clone(), refused(&one.code)?))));
    }
    println!("{} tools, {examples} examples, {} tools without: {none:#?}", tools.len(), none.len());
    println!("{} refused by the validator: {bad:#?}", bad.len());
}

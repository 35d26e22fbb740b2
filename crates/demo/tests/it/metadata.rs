use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::Demo;

#[test]
fn there_are_at_least_thirty_tools_and_each_says_what_it_is() {
    let tools = Demo::new().tools();
    assert!(tools.len() >= 30, "{}", tools.len());
    for (name, tool) in tools {
        assert!(tool["title"].as_str().is_some_and(|title| !title.is_empty()), "{name}");
        assert!(tool["description"].as_str().unwrap().len() > 40, "{name}");
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{name}: {hint}");
        }
        assert!(
            !(tool["annotations"]["readOnlyHint"] == true && tool["annotations"]["destructiveHint"] == true)
        );
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{name}");
            assert!(jsonschema::meta::is_valid(&tool[schema]), "{name}: {schema}");
        }
    }
}

#[test]
fn every_tool_names_the_scope_its_hints_call_for() {
    for (name, tool) in Demo::new().tools() {
        let (app, _) = name.split_once(':').unwrap();
        let hints = &tool["annotations"];
        let action = match (&hints["readOnlyHint"], &hints["destructiveHint"]) {
            (Value::Bool(true), _) => "read",
            (_, Value::Bool(true)) => "delete",
            _ => "write",
        };
        let meta = &tool["_meta"]["gatewright"];
        assert_eq!(meta["scopes"], serde_json::json!([format!("{app}:{action}")]), "{name}");
        assert!(meta.get("visibleInListTools").is_none(), "the gateway's visibility mode decides: {name}");
    }
}

#[test]
fn author_written_examples_call_only_tools_that_exist() {
    let tools = Demo::new().tools();
    let names: BTreeSet<&str> = tools.iter().map(|(name, _)| name.as_str()).collect();
    let mut with_examples = 0;
    for (name, tool) in &tools {
        let examples = tool["_meta"]["gatewright"]["examples"].as_array().unwrap();
        with_examples += usize::from(!examples.is_empty());
        for example in examples {
            assert!(!example["description"].as_str().unwrap().is_empty(), "{name}");
            let code = example["code"].as_str().unwrap();
            let called: Vec<&str> =
                code.split("callTool('").skip(1).map(|rest| rest.split('\'').next().unwrap()).collect();
            assert!(called.contains(&name.as_str()), "the example of {name} does not call it");
            assert!(called.iter().all(|tool| names.contains(tool)), "{name}: {called:?}");
            assert!(code.contains("return "), "{name}");
        }
    }
    assert!(with_examples >= 8, "{with_examples}");
}

/// The schemas are those of the types that the tools take and return.
#[test]
fn schemas_are_closed_described_and_without_references() {
    fn walk(schema: &Value, at: &str) {
        if let Some(properties) = schema["properties"].as_object() {
            assert!(
                schema["additionalProperties"] == false || schema["additionalProperties"].is_object(),
                "{at}"
            );
            properties.iter().for_each(|(name, schema)| walk(schema, &format!("{at}/{name}")));
        }
        if schema["items"].is_object() {
            walk(&schema["items"], &format!("{at}/*"));
        }
    }
    for (name, tool) in Demo::new().tools() {
        for schema in ["inputSchema", "outputSchema"] {
            let text = tool[schema].to_string();
            assert!(!text.contains("$ref"), "{name}: {text}");
            walk(&tool[schema], &format!("{name} {schema}"));
        }
        for (argument, schema) in tool["inputSchema"]["properties"].as_object().into_iter().flatten() {
            assert!(schema["description"].as_str().is_some_and(|text| text.len() > 5), "{name}: {argument}");
        }
    }
}

#[test]
fn every_phrasing_expects_tools_that_exist_and_every_tool_has_one() {
    let tools = Demo::new().tools();
    let names: BTreeSet<&str> = tools.iter().map(|(name, _)| name.as_str()).collect();
    let mut expected = BTreeSet::new();
    let lines: Vec<Value> = include_str!("../../data/phrasings.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(lines.len() >= 30);
    for line in &lines {
        assert!(!line["query"].as_str().unwrap().is_empty());
        for tool in line["relevant"].as_array().unwrap() {
            assert!(names.contains(tool.as_str().unwrap()), "{tool}");
            expected.insert(tool.as_str().unwrap());
        }
    }
    assert_eq!(names.difference(&expected).collect::<Vec<_>>(), Vec::<&&str>::new());
}

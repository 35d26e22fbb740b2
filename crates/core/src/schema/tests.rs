//! Tests of [`super`].

use serde_json::json;

use super::*;

fn schema(value: Value) -> InputSchema {
    let Value::Object(object) = value else { panic!("an object") };
    InputSchema::new(Arc::new(object))
}

#[test]
fn names_each_bad_place() {
    let schema = schema(json!({"type": "object", "required": ["id"],
        "properties": {"id": {"type": "string"}, "limit": {"type": "integer", "maximum": 5}}}));
    assert!(schema.check(&json!({"id": "a", "limit": 2})).is_ok());
    let problems = schema.check(&json!({"limit": 9})).unwrap_err();
    assert!(problems.contains("/limit") && problems.contains("id"), "{problems}");
}

#[test]
fn long_keys_and_values_are_cut_in_what_is_said_of_them() {
    let schema = schema(json!({"type": "object", "additionalProperties": {"type": "integer"}}));
    let many: serde_json::Map<_, _> =
        (0..9).map(|n| (format!("{n}{}", "k".repeat(100_000)), json!("v".repeat(100_000)))).collect();
    let problems = schema.check(&Value::Object(many)).unwrap_err();
    assert!(problems.len() < 8_000 && problems.ends_with('…'), "{} bytes", problems.len());
}

#[test]
fn a_list_that_is_too_long_is_said_to_be_so_and_not_repeated() {
    let schema = schema(json!({"type": "object", "properties": {"a": {"type": "array", "maxItems": 100}}}));
    let problems = schema.check(&json!({"a": vec!["x"; 101]})).unwrap_err();
    assert!(problems.contains("/a") && problems.contains("100 items") && problems.len() < 100, "{problems}");
}

#[test]
fn problems_name_their_place_and_rule_and_say_what_depends_on_other_values() {
    let schema = schema(json!({"type": "object", "required": ["id", "page"], "additionalProperties": false,
        "properties": {"id": {"type": "string"}, "page": {"type": "integer", "default": 1}, "kind": {}, "list": {"$ref": "#/$defs/list"}},
        "$defs": {"list": {"type": "object", "required": ["a"], "properties": {"a": {"default": 0}}}},
        "if": {"properties": {"kind": {"const": "x"}}, "required": ["kind"]}, "then": {"required": ["extra"]}}));
    let found = schema.problems(&json!({"idd": 1, "kind": "x", "list": {}}), 9);
    let missing = |name: &str, has_default| BrokenRule::Missing { name: name.to_owned(), has_default };
    let has = |path: &str, rule: &BrokenRule, by_choice| {
        found.iter().any(|it| it.path == path && it.rule == *rule && it.by_choice == by_choice)
    };
    assert!(has("", &missing("id", false), false), "{found:#?}");
    assert!(has("", &missing("page", true), false) && has("/list", &missing("a", true), false), "{found:#?}");
    assert!(has("", &BrokenRule::Unexpected { names: vec!["idd".to_owned()] }, false), "{found:#?}");
    assert!(has("", &missing("extra", false), true), "{found:#?}");
    assert_eq!(schema.problems(&json!({"idd": 1}), 2).len(), 2);
    assert!(schema.problems(&json!({"id": "a", "page": 1}), 2).is_empty());
}

#[test]
fn arguments_that_lack_only_required_properties_with_a_default_pass() {
    let schema = schema(json!({"type": "object", "required": ["page", "id"],
        "properties": {"page": {"type": "integer", "default": 1}, "id": {"type": "string"}}}));
    let mut arguments = serde_json::Map::from_iter([("id".to_owned(), json!("a"))]);
    schema.fill_defaults(&mut arguments);
    assert_eq!(schema.check(&Value::Object(arguments.clone())), Ok(()));
    assert_eq!(arguments["page"], 1);
    let mut arguments = serde_json::Map::new();
    schema.fill_defaults(&mut arguments);
    let problems = schema.check(&Value::Object(arguments)).unwrap_err();
    assert!(problems.contains("id") && !problems.contains("page"), "{problems}");
}

#[test]
fn a_schema_whose_references_multiply_is_refused_and_not_followed() {
    let mut definitions = serde_json::Map::new();
    for n in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        definitions.insert(format!("d{n}"), json!({"allOf": [next, next]}));
    }
    definitions.insert("d40".to_owned(), json!({"type": "string"}));
    let schema = schema(json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}));
    assert_eq!(schema.check(&json!({})), Ok(()));
    for value in [json!(5), json!("valid")] {
        let problem = schema.check(&json!({"a": value})).unwrap_err();
        assert!(problem.contains("schemaValidation"), "{problem}");
        assert!(schema.problems(&json!({"a": value}), 5).is_empty());
    }
}

#[test]
fn nested_choices_are_checked_in_time_that_grows_with_the_input() {
    let operator = |name: &str| {
        json!({"required": ["op", "args"], "additionalProperties": false,
        "properties": {"args": {"type": "array", "items": {"$ref": "#/$defs/f"}}, "op": {"const": name}}})
    };
    let leaf = json!({"required": ["field", "eq"], "properties": {"field": {"type": "string"}, "eq": {"type": "string"}}});
    let schema = schema(json!({"properties": {"filter": {"$ref": "#/$defs/f"}},
        "$defs": {"f": {"anyOf": [operator("and"), operator("or"), leaf]}}}));
    let nested = |depth: usize, eq: Value| {
        let leaf = json!({"field": "a", "eq": eq});
        (0..depth)
            .fold(leaf, |inner, n| json!({"args": [inner], "op": if n % 2 == 0 { "and" } else { "or" }}))
    };
    for depth in [3, 40] {
        assert_eq!(schema.check(&json!({"filter": nested(depth, json!("x"))})), Ok(()));
        let problem = schema.check(&json!({"filter": nested(depth, json!(5))})).unwrap_err();
        let place = if depth == 3 { "/filter" } else { "/args/0/eq: 5 is not of type" };
        assert!(problem.contains(place), "{problem}");
    }
}

#[test]
fn alternatives_are_ruled_out_before_their_members_are_checked_however_they_are_written() {
    let args = json!({"type": "array", "items": {"$ref": "#/$defs/f"}});
    for more in [
        json!({}),
        json!({"required": ["op"]}),
        json!({"required": ["args"]}),
        json!({"required": ["a_op", "args", "op"]}),
        json!({"additionalProperties": false}),
        json!({"additionalProperties": false, "required": ["args"]}),
        json!({"additionalProperties": {"type": "string"}}),
        json!({"patternProperties": {"^x": {"type": "string"}}}),
        json!({"unevaluatedProperties": false}),
        json!({"minProperties": 1, "propertyNames": {"minLength": 1}}),
    ] {
        let operator = |name: &str| {
            let mut operator = more.clone();
            operator["properties"] = json!({"a_op": {}, "args": args, "op": {"const": name}});
            operator
        };
        for choice in ["anyOf", "oneOf"] {
            let schema = schema(json!({"properties": {"filter": {"$ref": "#/$defs/f"}},
                "$defs": {"f": {(choice): [operator("and"), operator("or"), operator("not"), {"type": "string"}]}}}));
            let nested = |leaf: Value| {
                (0..30).fold(
                    leaf,
                    |inner, n| json!({"args": [inner], "a_op": 1, "op": (["and", "or", "not"][n % 3])}),
                )
            };
            // A text fits every alternative of `oneOf`.
            let fits = choice == "anyOf";
            assert_eq!(schema.check(&json!({"filter": nested(json!("x"))})).is_ok(), fits, "{more} {choice}");
            let _ = schema.check(&json!({"filter": nested(json!(5))}));
        }
    }
}

#[test]
fn alternatives_that_only_values_tell_apart_are_refused_where_they_multiply() {
    let mut definitions = serde_json::Map::from_iter([("o8".to_owned(), json!({"type": "string"}))]);
    for level in 0..8 {
        let next = json!({"$ref": format!("#/$defs/o{}", level + 1)});
        let alternative = |n: u32| json!({"properties": {"child": next, "kind": {"pattern": format!("^{n}$")}}, "required": ["child"]});
        definitions
            .insert(format!("o{level}"), json!({"anyOf": (0..20).map(alternative).collect::<Vec<_>>()}));
    }
    let schema = schema(json!({"properties": {"a": {"$ref": "#/$defs/o0"}}, "$defs": definitions}));
    let value = (0..8).fold(json!("x"), |child, _| json!({"child": child, "kind": "19"}));
    assert!(schema.check(&json!({"a": value})).unwrap_err().contains("schemaValidation"));
}

#[test]
fn a_long_input_of_an_ordinary_schema_is_checked_and_its_first_problem_named() {
    let schema = schema(json!({"properties": {"rows": {"type": "array", "items": {"type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"$ref": "#/$defs/name"}}}}}, "$defs": {"name": {"type": "string"}}}));
    let mut rows = vec![json!({"id": 1, "name": "a"}); 60_000];
    assert_eq!(schema.check(&json!({"rows": rows})), Ok(()));
    rows[59_999]["id"] = json!("x");
    let problem = schema.check(&json!({"rows": rows})).unwrap_err();
    assert!(problem.contains("/rows/59999/id"), "{problem}");
}

#[test]
fn an_invalid_schema_is_said_to_be_the_servers_fault() {
    let schema = schema(json!({"type": "object", "properties": {"a": {"type": "any"}}}));
    assert!(schema.defect().is_some());
    assert!(schema.check(&json!({})).unwrap_err().contains("schemaValidation"));
}

#[test]
fn a_reference_to_another_host_is_not_fetched() {
    let schema = schema(json!({"$ref": "http://127.0.0.1:9/schema.json"}));
    assert!(schema.defect().is_some());
}

/// A directory of this many levels, in the form that a schema of files and directories has.
fn directory(levels: usize, leaf: &Value) -> Value {
    (0..levels).fold(
        leaf.clone(),
        |inner, n| json!({"name": format!("d{n}"), "entries": [inner, {"name": "f", "size": 1}]}),
    )
}

/// A schema of files and directories, with `choice` between them.
fn files(choice: &str) -> Value {
    let file = json!({"properties": {"size": {"type": "integer"}}, "required": ["size"]});
    let entries = json!({"properties": {"entries": {"type": "array", "items": {"$ref": "#/$defs/entry"}}}, "required": ["entries"]});
    json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/entry"}}, "$defs": {"entry": {
        "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
        (choice): [file, entries], "unevaluatedProperties": false}}})
}

#[test]
fn directory_trees_with_unevaluated_properties_are_checked_and_their_problems_named() {
    for choice in ["anyOf", "oneOf"] {
        let schema = schema(files(choice));
        for levels in [4, 16, 60] {
            assert_eq!(
                schema.check(&json!({"root": directory(levels, &json!({"name": "f", "size": 1}))})),
                Ok(())
            );
        }
        for levels in [16, 60] {
            let deep = format!("/root{}", "/entries/0".repeat(levels));
            for (leaf, place, said) in [
                (json!({"name": "f", "size": "x"}), "/size", "\"x\" is not of type"),
                (json!({"size": 1}), "", "\"name\" is a required"),
                (json!({"name": "f", "size": 1, "sizes": 2}), "", "Unevaluated properties"),
                (json!({"name": "f"}), "", "the value "),
                (json!({"name": "f", "entries": 5}), "/entries", "5 is not of type"),
            ] {
                let value = json!({"root": directory(levels, &leaf)});
                let found = schema.problems(&value, 5);
                assert_eq!(found.len(), 1, "{levels} {leaf} {:?}", schema.check(&value));
                assert_eq!(found[0].path, format!("{deep}{place}"), "{leaf}: {}", found[0].message);
                assert!(found[0].message.starts_with(said), "{leaf}: {}", found[0].message);
                assert!(schema.check(&value).unwrap_err().contains(&format!("/entries/0{place}: {said}")));
            }
        }
    }
}

#[test]
fn unions_that_only_required_members_tell_apart_are_checked_at_any_depth() {
    let operator = |name: &str| json!({"type": "object", "properties": {name: {"type": "array", "items": {"$ref": "#/$defs/f"}}, "note": {}}, "required": [name, "note"]});
    let alternatives: Vec<Value> =
        (0..20).map(|n| operator(&format!("op{n}"))).chain([json!({"type": "string"})]).collect();
    let schema =
        schema(json!({"properties": {"f": {"$ref": "#/$defs/f"}}, "$defs": {"f": {"anyOf": alternatives}}}));
    for levels in [5, 16, 60] {
        let nested = |leaf: Value| {
            (0..levels).fold(leaf, |inner, n| json!({format!("op{}", n % 20): [inner], "note": 1}))
        };
        assert_eq!(schema.check(&json!({"f": nested(json!("x"))})), Ok(()));
        let problem = schema.check(&json!({"f": nested(json!(5))})).unwrap_err();
        assert!(problem.contains("/0: 5 is not of types"), "{problem}");
    }
}

#[test]
fn alternatives_that_cannot_be_told_apart_are_named_as_a_choice() {
    let alternatives = json!([{"required": ["a"], "properties": {"a": {"pattern": "^x"}}}, {"required": ["a"], "properties": {"a": {"pattern": "^y"}}}]);
    let schema = schema(json!({"properties": {"rows": {"type": "array", "items": {"anyOf": alternatives}}}}));
    let mut rows = vec![json!({"a": "xy"}); 5_000];
    rows[4_321]["a"] = json!("z");
    let problem = schema.check(&json!({"rows": rows})).unwrap_err();
    assert_eq!(problem, "/rows/4321: the value fits none of the 2 alternatives of the schema");
    assert_eq!(schema.problems(&json!({"rows": rows}), 5)[0].path, "/rows/4321");
}

#[test]
fn the_problem_of_one_item_is_found_among_thousands_of_a_wide_union() {
    let alternative = |n: usize| json!({"type": "object", "properties": {"kind": {"const": format!("k{n}")}, "size": {"type": "integer"}}, "required": ["kind"]});
    let alternatives: Vec<Value> = (0..100).map(alternative).collect();
    for choice in ["anyOf", "oneOf"] {
        let schema =
            schema(json!({"properties": {"rows": {"type": "array", "items": {(choice): alternatives}}}}));
        let mut rows: Vec<Value> =
            (0..1_500).map(|n| json!({"kind": format!("k{}", n % 100), "size": n})).collect();
        assert_eq!(schema.check(&json!({"rows": rows})), Ok(()));
        rows[1_499]["size"] = json!("x");
        let problem = schema.check(&json!({"rows": rows})).unwrap_err();
        assert_eq!(problem, "/rows/1499/size: \"x\" is not of type \"integer\"");
        rows[1_499] = json!({"kind": "k100"});
        let problem = schema.check(&json!({"rows": rows})).unwrap_err();
        assert!(problem.starts_with("/rows/1499: the value"), "{problem}");
    }
}

#[test]
fn options_and_names_of_a_schema_are_counted_with_each_item_they_are_compared_with() {
    let options: Vec<Value> = (0..60_000).map(|n| json!(n)).collect();
    let numbers = schema(json!({"items": {"enum": options}}));
    assert_eq!(numbers.check(&json!([59_999, 1, 2])), Ok(()));
    let problem = numbers.check(&json!(vec![59_999; 60_000])).unwrap_err();
    assert!(problem.contains("schemaValidation"), "{problem}");
    let condition = schema(json!({"items": {"if": {"enum": options}, "then": {"maximum": 5}}}));
    let problem = condition.check(&json!(vec![59_999; 60_000])).unwrap_err();
    assert!(problem.contains("schemaValidation"), "{problem}");
    let containers: Vec<Value> = (0..500).map(|n| json!([vec![1; 500], n])).collect();
    let containers = schema(json!({"items": {"enum": containers}}));
    let problem = containers.check(&json!(vec![json!([vec![1; 500], -1]); 100])).unwrap_err();
    assert!(problem.contains("schemaValidation"), "{problem}");
}

#[test]
fn texts_of_a_long_list_and_members_of_many_properties_are_looked_up() {
    let texts: Vec<Value> = (0..60_000).map(|n| json!(format!("v{n}"))).collect();
    let properties: serde_json::Map<String, Value> =
        (0..20_000).map(|n| (format!("p{n}"), json!({"type": "integer"}))).collect();
    let schema = schema(
        json!({"properties": {"texts": {"items": {"enum": texts}}, "rows": {"items": {"properties": properties}}}}),
    );
    let mut value = json!({"texts": vec!["v59999"; 50_000], "rows": vec![json!({"p19999": 1}); 30_000]});
    let start = std::time::Instant::now();
    assert_eq!(schema.check(&value), Ok(()));
    // 3 * 10^9 comparisons took half a minute.
    assert!(start.elapsed() < std::time::Duration::from_secs(15), "{:?}", start.elapsed());
    value["rows"][29_999]["p19999"] = json!("x");
    assert!(schema.check(&value).unwrap_err().contains("/rows/29999/p19999"));
}

#[test]
fn schemas_that_depend_on_a_name_count_only_where_it_is() {
    let dependent: serde_json::Map<String, Value> = (0..200)
        .map(|n| (format!("k{n}"), json!({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}})))
        .collect();
    let schema = schema(json!({"items": {"dependentSchemas": dependent}}));
    assert_eq!(schema.check(&json!(vec![json!({"a": "x"}); 20_000])), Ok(()));
    assert!(schema.check(&json!([{"k7": 1, "b": 5}])).is_err());
}

#[test]
fn saying_that_other_members_may_be_anything_changes_no_verdict() {
    use super::located::tests::{Numbers, any_schema, any_value};
    let (mut changed, mut refused) = (0, 0);
    for seed in 0..1_000 {
        let numbers = &mut Numbers(seed);
        let mut given = any_schema(numbers, 3);
        given["$defs"] =
            json!({"0": any_schema(numbers, 1), "1": any_schema(numbers, 1), "2": any_schema(numbers, 0)});
        let mut bits = seed;
        walk::change_schemas(&mut given, &mut |schema| {
            schema.shift_remove("unevaluatedProperties");
            bits = bits.rotate_right(1);
            if bits & 1 == 0 && schema.contains_key("properties") {
                schema.shift_remove("additionalProperties");
                schema.insert("required".to_owned(), json!(["a", "b"]));
            }
        });
        let mut opened = given.clone();
        order::look_for_required_first(&mut opened);
        if opened == given {
            continue;
        }
        let Ok(validator) = jsonschema::validator_for(&given) else { continue };
        let opened = jsonschema::validator_for(&opened).unwrap();
        changed += 1;
        for _ in 0..10 {
            let value = any_value(numbers, 3);
            assert_eq!(opened.is_valid(&value), validator.is_valid(&value), "{given} {value}");
            refused += usize::from(!validator.is_valid(&value));
        }
    }
    assert!(changed > 100 && refused > 100, "{changed} schemas, {refused} values refused");
}

#[test]
fn the_problem_of_an_alternative_is_named_for_schemas_of_drafts_4_and_6() {
    for draft in ["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#"] {
        let file = json!({"properties": {"size": {"type": "integer", "minimum": 0}}, "required": ["size"]});
        let directory = json!({"properties": {"entries": {"items": {"$ref": "#/definitions/entry"}}}, "required": ["entries"]});
        let schema = schema(
            json!({"$schema": draft, "type": "object", "properties": {"root": {"$ref": "#/definitions/entry"}},
            "definitions": {"entry": {"anyOf": [file, directory]}}}),
        );
        for levels in [2, 60] {
            let value = json!({"root": directory_of(levels, &json!({"size": "x"}))});
            let found = schema.problems(&value, 5);
            assert_eq!(found.len(), 1, "{draft} {levels} {:?}", schema.check(&value));
            assert_eq!(found[0].path, format!("/root{}/size", "/entries/0".repeat(levels)));
        }
    }
}

fn directory_of(levels: usize, leaf: &Value) -> Value {
    (0..levels).fold(leaf.clone(), |inner, _| json!({"entries": [inner]}))
}

/// Bytes that a problem has of its own, with the problems of alternatives in it, which have copies of values.
fn owned(error: &ValidationError<'_>, is_within: bool) -> u64 {
    let of_kind = match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            context.iter().flatten().map(|error| owned(error, true)).sum()
        }
        ValidationErrorKind::Not { schema } => value_bytes(schema),
        ValidationErrorKind::Required { property } => value_bytes(property),
        _ => 0,
    };
    let of_value = if is_within { value_bytes(error.instance()) } else { 0 };
    error.instance_path().as_str().len() as u64 + of_kind + of_value
}

/// Checks that all problems of `value` own no more than they may, and that the message about them is short.
fn assert_little_is_owned(schema: &InputSchema, value: &Value) {
    let compiled = schema.compiled().unwrap();
    let all = compiled.finds_all(value).unwrap();
    let bytes: u64 = compiled.errors(value, all).map(|error| owned(&error, false)).sum();
    assert!(bytes <= 2 * OWNED, "{bytes} bytes");
    let problems = schema.check(value).unwrap_err();
    assert!(problems.len() < 5_000, "{}", problems.len());
}

#[test]
fn many_problems_below_a_long_name_do_not_repeat_it_without_end() {
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let choice = json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"oneOf": [{"type": "null"}, {"enum": ["a"]}]}]}});
    for items in [texts.clone(), choice, json!({"allOf": [texts.clone(), texts]})] {
        let schema = schema(json!({"type": "object", "additionalProperties": items}));
        for (name, number) in
            [(3_000_000, 9_900), (300_000, 1_000), (30_000, 2_000), (3_000, 3_000), (300, 3_000)]
        {
            assert_little_is_owned(&schema, &json!({"k".repeat(name): vec![1; number]}));
        }
    }
}

#[test]
fn many_problems_do_not_repeat_long_parts_of_the_schema_without_end() {
    let long = "d".repeat(100_000);
    for (items, item) in [
        (json!({"not": {"type": "integer", "description": long}}), json!(1)),
        (json!({"required": [long]}), json!({})),
        (json!({"dependentRequired": {"a": [long]}}), json!({"a": 1})),
        (json!({"$ref": "#/default"}), json!({})),
    ] {
        let schema = schema(json!({"properties": {"l": {"items": items}}, "default": {"required": [long]}}));
        assert_little_is_owned(&schema, &json!({"l": vec![item; 2_000]}));
    }
}

#[test]
fn problems_of_alternatives_do_not_repeat_a_long_value_without_end() {
    let alternative =
        |n: usize| json!({"required": (0..10).map(|m| format!("a{n}_{m}")).collect::<Vec<_>>()});
    let alternatives: Vec<Value> = (0..30).map(alternative).collect();
    for choice in ["anyOf", "oneOf"] {
        let schema = schema(json!({"properties": {"l": {(choice): alternatives}}}));
        assert_little_is_owned(&schema, &json!({"l": {"x": "y".repeat(1_000_000)}}));
        let problem = schema.check(&json!({"l": {}})).unwrap_err();
        assert!(problem.contains("/l: "), "{problem}");
    }
}

#[test]
fn a_large_schema_is_large_work_whatever_the_arguments() {
    let properties: serde_json::Map<String, Value> =
        (0..3_000).map(|n| (format!("p{n}"), json!({}))).collect();
    let size = |value: Value| schema(value).bulk();
    assert_eq!(size(json!({"properties": properties})), usize::MAX);
    assert!(size(json!({"description": "d".repeat(100_000)})) > 64 << 10);
    assert!(size(json!({"properties": {"a": {"type": "string"}}})) < 100);
}

/// A chain of definitions, each with twelve ways to the next.
fn multiplied(number: usize) -> Value {
    let definitions: JsonObject = (0..3)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            (format!("d{n}"), json!({"unevaluatedProperties": next, "anyOf": vec![next.clone(); 12]}))
        })
        .chain([("d3".to_owned(), json!({"type": "object"}))])
        .collect();
    json!({"$ref": "#/$defs/d0", "$defs": definitions, "title": format!("{number}")})
}

#[test]
fn validators_of_many_tools_have_a_limit_together() {
    let tools: Vec<_> = (0..60).map(|n| schema(multiplied(n))).collect();
    for tool in &tools {
        assert_eq!(tool.check(&json!({})), Ok(()));
        assert!(validators::bytes() <= 128 << 20);
    }
    let kept = validators::bytes();
    assert!(kept > 32 << 20, "{kept}");
    assert!(tools[0].check(&json!(7)).is_err(), "built again");
    drop(tools);
    assert!(validators::bytes() < kept / 100, "given up with their tools");
}

#[test]
fn a_value_that_is_none_of_many_options_hears_of_all_with_the_nearest_first() {
    let kinds = ["column", "line", "pie", "bar", "area", "scatter", "doughnut", "radar"];
    let schema = schema(json!({"properties": {"kind": {"enum": kinds}}}));
    assert_eq!(
        schema.check(&json!({"kind": "barchart"})).unwrap_err(),
        "/kind: \"barchart\" is not one of \"bar\", \"column\", \"line\", \"pie\", \"area\", \"scatter\", \"doughnut\" or \"radar\""
    );
}

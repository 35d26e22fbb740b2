//! Tests of [`super`]: what is counted is compared with the parts that a validator is built of.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde_json::json;

use super::*;
use crate::schema::{
    InputSchema,
    located::{
        located,
        tests::{Numbers, any_schema},
    },
    walk::change_schemas,
};

fn is_built_soon(schema: &Value) -> bool {
    work(schema).is_some()
}

/// Builds a validator of `schema`, and returns the number of schemas that it is built of; `None` where it is invalid.
fn built(schema: &Value) -> Option<u64> {
    let mut probed = schema.clone();
    change_schemas(&mut probed, &mut |schema| drop(schema.insert(PROBE.to_owned(), json!(1))));
    let counter = Arc::new(AtomicU64::new(0));
    let built = counter.clone();
    let validator = jsonschema::options()
        .with_keyword(PROBE, move |_: &JsonObject, _, _| {
            built.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(Nothing) as Box<dyn for<'i> jsonschema::Keyword<'i>>)
        })
        .build(&probed);
    validator.ok().map(|_| counter.load(Ordering::Relaxed))
}

const PROBE: &str = "x-probe";

struct Nothing;

impl<'i> jsonschema::Keyword<'i> for Nothing {
    fn validate(&self, _: &'i Value) -> Result<(), jsonschema::ValidationError<'i>> {
        Ok(())
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        true
    }
}

/// Asserts that building `schema` takes no more than is counted, where that is within the limit.
fn assert_counted(schema: &Value) -> Option<u64> {
    let counted = work(schema)?;
    let built = built(schema).unwrap_or_default();
    assert!(built <= counted, "{built} of {counted}: {schema}");
    Some(built)
}

/// Levels of schemas that each apply the next in two places, with an `unevaluated` keyword at each level or at the first.
fn levels(number: usize, keyword: &str, unevaluated: &str, at_each: bool, by: &str) -> Value {
    let leaf = json!({"properties": {"a": true}, "prefixItems": [true]});
    let level = |next: Value, other: Value, n: usize| {
        let mut level = match keyword {
            "if" => json!({"if": next, "then": other, "else": other}),
            "dependentSchemas" => json!({"dependentSchemas": {"a": next, "b": other}}),
            keyword => json!({keyword: [next, other]}),
        };
        if at_each || n == 0 {
            level[unevaluated] = json!(false);
        }
        level
    };
    if by == "nested" {
        let all = (0..number).rev().fold(leaf.clone(), |next, n| level(next, leaf.clone(), n));
        return json!({"type": "object", "properties": {"v": all}});
    }
    let mut definitions = JsonObject::new();
    for n in 0..=number {
        let name = n + 1;
        let next = match by {
            "$ref" => json!({"$ref": format!("#/$defs/d{name}")}),
            by => json!({by: format!("#d{name}")}),
        };
        let mut schema = if n == number { leaf.clone() } else { level(next.clone(), next, n) };
        if by == "$dynamicRef" {
            schema["$dynamicAnchor"] = json!(format!("d{n}"));
        }
        definitions.insert(format!("d{n}"), schema);
    }
    json!({"type": "object", "properties": {"v": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
}

const KEYWORDS: [&str; 5] = ["allOf", "anyOf", "oneOf", "if", "dependentSchemas"];

/// Calls `each` with all ways to multiply references below `unevaluatedProperties` and `unevaluatedItems`.
fn for_all_ways(each: impl Fn(&dyn Fn(usize) -> Value, &str, &str, &str)) {
    for keyword in KEYWORDS {
        for unevaluated in ["unevaluatedProperties", "unevaluatedItems"] {
            for at_each in [true, false] {
                for by in ["$ref", "$dynamicRef", "nested"] {
                    let of = |number| levels(number, keyword, unevaluated, at_each, by);
                    each(&of, keyword, unevaluated, by);
                }
            }
        }
    }
}

#[test]
fn no_validator_is_built_of_more_than_is_counted_however_references_multiply() {
    for_all_ways(|of, keyword, unevaluated, by| {
        let is_multiplied =
            by != "nested" && (keyword, unevaluated) != ("dependentSchemas", "unevaluatedItems");
        for number in [1, 3, 5, 7, 9, 12, 20, 40] {
            let schema = of(number);
            let most = MOST + MOST_FOR_EACH * weight(&schema);
            for schema in std::iter::once(schema.clone()).chain(located(&schema)) {
                let built = assert_counted(&schema);
                assert!(built.is_none_or(|built| built <= 3 * most), "{keyword} {unevaluated} {by}");
            }
            if number <= 5 {
                assert!(is_built_soon(&schema), "{keyword} {unevaluated} {by} {number}");
            }
            if number == 20 || (number == 40 && is_multiplied) {
                assert_eq!(is_built_soon(&schema), !is_multiplied, "{keyword} {unevaluated} {by} {number}");
            }
        }
    });
}

#[test]
fn inputs_are_judged_or_refused_where_references_multiply_and_never_built_for() {
    for_all_ways(|of, keyword, unevaluated, by| {
        for number in [3, 5, 8, 14, 40] {
            let Value::Object(schema) = of(number) else { unreachable!() };
            let schema = InputSchema::new(Arc::new(schema));
            let (good, bad) = match unevaluated {
                "unevaluatedItems" => (json!({"v": [1]}), json!({"v": [1, 2]})),
                _ => (json!({"v": {"a": 1}}), json!({"v": {"b": 1}})),
            };
            let said = |value: &Value| schema.check(value).err().unwrap_or_default();
            let (good, bad) = (said(&good), said(&bad));
            if number == 3 && keyword == "allOf" {
                assert_eq!(good, "", "{keyword} {unevaluated} {by}");
                assert!(bad.contains("/v"), "{bad}");
            }
            let is_endless = schema.defect().is_some();
            for text in [good, bad] {
                assert!(!is_endless || text.contains("schemaValidation"), "{text}");
            }
            assert_eq!(schema.problems(&json!({"v": {"b": 1}}), 5).is_empty() && is_endless, is_endless);
        }
    });
}

#[test]
fn no_validator_of_generated_schemas_is_built_of_more_than_is_counted() {
    let mut counted = 0;
    for seed in 0..1_000 {
        let numbers = &mut Numbers(seed);
        let mut schema = any_schema(numbers, 3);
        schema["$defs"] =
            json!({"0": any_schema(numbers, 2), "1": any_schema(numbers, 2), "2": any_schema(numbers, 1)});
        for schema in std::iter::once(schema.clone()).chain(located(&schema)) {
            counted += u32::from(assert_counted(&schema).is_some());
        }
    }
    assert!(counted > 1_900, "{counted}");
}

#[test]
fn a_long_schema_below_many_negations_is_not_built_since_each_has_a_copy() {
    let below = |negations: usize| {
        let inner = json!({"const": "x".repeat(100_000)});
        let schema = (0..negations).fold(inner, |schema, _| json!({"not": schema}));
        json!({"type": "object", "properties": {"a": schema}})
    };
    assert!(is_built_soon(&below(1)) && is_built_soon(&below(2)));
    assert!(!is_built_soon(&below(20)) && !is_built_soon(&below(100)));
}

#[test]
fn references_between_schemas_with_addresses_are_counted_for_each_way_that_leads_there() {
    let of = |number: usize| {
        let mut definitions = JsonObject::new();
        for n in 0..=number {
            for side in ["a", "b"] {
                let next =
                    ["a", "b"].map(|side| json!({"$ref": format!("https://example.com/{side}{}", n + 1)}));
                let inner = if n == number { json!({}) } else { json!({"anyOf": next}) };
                let mut schema = inner;
                schema["$id"] = json!(format!("https://example.com/{side}{n}"));
                definitions.insert(format!("{side}{n}"), schema);
            }
        }
        json!({"$ref": "https://example.com/a0", "$defs": definitions})
    };
    for number in [1, 4, 7, 12, 20, 30, 40] {
        assert_counted(&of(number));
    }
    assert!(is_built_soon(&of(4)) && !is_built_soon(&of(30)) && !is_built_soon(&of(40)));
}

#[test]
fn ordinary_schemas_with_unevaluated_properties_take_as_long_as_they_are() {
    let base: JsonObject = (0..50).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let part = |n: usize| {
        json!({"allOf": [{"$ref": "#/$defs/base"}], "unevaluatedProperties": false,
            "properties": {format!("own{n}"): {"$ref": "#/$defs/node"}}})
    };
    let parts: Vec<Value> = (0..20).map(part).collect();
    let schema = json!({"type": "object", "properties": {"v": {"$ref": "#/$defs/node"}},
        "$defs": {"base": {"properties": base}, "node": {"anyOf": parts, "unevaluatedProperties": false}}});
    assert!(assert_counted(&schema).is_some());
    let Value::Object(schema) = schema else { unreachable!() };
    let schema = InputSchema::new(Arc::new(schema));
    assert_eq!(schema.defect(), None);
    assert_eq!(schema.check(&json!({"v": {"own3": {"p1": "x", "own19": {}}}})), Ok(()));
    let problem = schema.check(&json!({"v": {"own3": {"p1": "x", "other": {}}}})).unwrap_err();
    assert!(problem.contains("/v"), "{problem}");
}

#[test]
fn long_chains_below_unevaluated_properties_are_refused_and_short_ones_built() {
    let chain = |number: usize| {
        let mut definitions = JsonObject::new();
        for n in 0..number {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            definitions.insert(format!("d{n}"), json!({"allOf": [next]}));
        }
        definitions.insert(format!("d{number}"), json!({"properties": {"a": true}}));
        json!({"$ref": "#/$defs/d0", "unevaluatedProperties": false, "$defs": definitions})
    };
    assert!(assert_counted(&chain(25)).is_some());
    assert!(!is_built_soon(&chain(100)));
}

/// Definitions that each apply the next ten times by `allOf` and offer it ten times by `keyword`.
fn offered(levels: usize, keyword: &str) -> Value {
    let mut definitions = JsonObject::new();
    for level in 0..levels {
        let next = vec![json!({"$ref": format!("#/$defs/d{}", level + 1)}); 10];
        definitions.insert(format!("d{level}"), json!({"allOf": next, keyword: next}));
    }
    definitions.insert(format!("d{levels}"), json!({"type": "string"}));
    json!({"type": "object", "$defs": definitions, "properties": {"a": {"$ref": "#/$defs/d0"}}})
}

#[test]
fn alternatives_are_not_told_apart_where_references_multiply_behind_them() {
    for keyword in ["anyOf", "oneOf"] {
        assert!(is_built_soon(&offered(3, keyword)));
        let schema = offered(30, keyword);
        assert!(!is_built_soon(&schema));
        let Value::Object(schema) = schema else { unreachable!() };
        let refused = InputSchema::new(Arc::new(schema)).check(&json!({"a": "x"}));
        assert!(refused.is_err(), "{keyword}: {refused:?}");
    }
}

#[test]
fn names_that_alternatives_require_are_counted_for_each_of_their_parts() {
    let of = |names: usize, parts: usize| {
        let names: Vec<String> = (0..names).map(|number| format!("n{number}")).collect();
        let alternative = json!({"required": names, "allOf": vec![json!({"properties": {}}); parts]});
        json!({"anyOf": [alternative, true, true]})
    };
    assert!(is_built_soon(&of(100, 100)));
    assert!(!is_built_soon(&of(5_000, 5_000)));
}

#[test]
fn large_unions_of_tagged_objects_are_built() {
    let kind = |number: usize| {
        let properties: JsonObject =
            (0..30).map(|at| (format!("p{at}"), json!({"type": "string"}))).collect();
        let names: Vec<&String> = properties.keys().collect();
        let tag = json!({"required": ["kind"], "properties": {"kind": {"const": format!("k{number}")}}});
        json!({"allOf": [{"$ref": "#/$defs/base"}, tag, {"required": names, "properties": properties}]})
    };
    let base = json!({"required": ["id"], "properties": {"id": {"type": "string"}}});
    let kinds: Vec<Value> = (0..300).map(kind).collect();
    assert!(is_built_soon(&json!({"oneOf": kinds, "$defs": {"base": base}})));
}

//! Tests of [`super`].

use serde_json::json;

use super::*;

/// A chain of definitions in which each refers `width` times to the next.
fn doubling(keyword: &str, depth: usize, width: usize) -> Value {
    let mut definitions = JsonObject::new();
    for n in 0..depth {
        let next = vec![json!({"$ref": format!("#/$defs/d{}", n + 1)}); width];
        definitions.insert(format!("d{n}"), json!({keyword: next}));
    }
    definitions.insert(format!("d{depth}"), json!({"type": "string"}));
    json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
}

#[test]
fn references_that_multiply_are_counted_without_being_followed_again() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let schema = doubling(keyword, 40, 2);
        assert_eq!(unrolled(&schema), Some(u64::MAX));
        assert_eq!(applications(&schema, &json!({"a": 5}), false), None);
        assert_eq!(applications(&schema, &json!({}), false), Some(1));
        let few = applications(&doubling(keyword, 3, 2), &json!({"a": 5}), true).unwrap();
        assert!((16..64).contains(&few), "{few}");
    }
    let nested = json!({"$ref": "#/$defs/node", "$defs": {"node": {"properties": {"next":
        {"allOf": [{"$ref": "#/$defs/node"}, {"$ref": "#/$defs/node"}]}}}}});
    let mut value = json!({});
    for _ in 0..40 {
        value = json!({"next": value});
    }
    // Validators remember what the first of both gave.
    let few = applications(&nested, &value, false).unwrap();
    assert!(few < 10_000, "{few}");
    assert_eq!(applications(&nested, &value, true), None);
}

#[test]
fn recursive_schemas_cost_as_much_as_their_values_are_long() {
    let tree = json!({"$id": "https://example.com/tree", "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#"}}, "name": {"$ref": "tree#/$defs/name"}},
        "$defs": {"name": {"type": "string"}, "other": {"$anchor": "it"}}, "not": {"$ref": "#it"}});
    assert_eq!(unrolled(&tree), Some(u64::MAX));
    let of = |children: usize| {
        let child = json!({"name": "a", "children": []});
        applications(&tree, &json!({"name": "b", "children": vec![child; children]}), true).unwrap()
    };
    let (one, many) = (of(100), of(200));
    assert!(many > one && many < 2 * one + 20 && many < 3_000, "{one} and {many}");
}

#[test]
fn schemas_that_refer_to_themselves_at_the_same_value_never_end() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}),
    ] {
        assert_eq!(applications(&schema, &json!({}), false), None);
    }
}

#[test]
fn long_chains_of_references_are_too_deep() {
    assert!(unrolled(&doubling("allOf", 100, 1)).is_some());
    assert_eq!(unrolled(&doubling("allOf", 100_000, 1)), None);
}

/// Counts how often a validator applies the keyword `x-probe`.
fn probed(schema: &Value) -> (jsonschema::Validator, std::sync::Arc<std::sync::atomic::AtomicU64>) {
    use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering};
    struct Probe(Arc<AtomicU64>);
    impl<'i> jsonschema::Keyword<'i> for Probe {
        fn validate(&self, _: &'i Value) -> Result<(), jsonschema::ValidationError<'i>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn is_valid(&self, _: &'i Value) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed);
            true
        }
    }
    let calls = Arc::new(AtomicU64::new(0));
    let counter = calls.clone();
    let validator = jsonschema::options()
        .with_keyword("x-probe", move |_: &JsonObject, _, _| {
            Ok(Box::new(Probe(counter.clone())) as Box<dyn for<'i> jsonschema::Keyword<'i>>)
        })
        .build(schema)
        .unwrap();
    (validator, calls)
}

#[test]
fn what_a_validator_does_is_no_more_than_what_is_counted_for_recursive_schemas() {
    let children = json!({"type": "array", "items": {"$ref": "#/$defs/node"}, "x-probe": 1});
    let branch = |n: u32| json!({"properties": {"children": children, "kind": {"pattern": format!("^{n}$")}}, "x-probe": 1});
    let branches: Vec<Value> = (0..4).map(branch).collect();
    for node in [
        json!({"anyOf": branches, "x-probe": 1}),
        json!({"oneOf": branches, "x-probe": 1}),
        json!({"anyOf": branches, "unevaluatedProperties": false, "x-probe": 1}),
        json!({"allOf": [{"anyOf": branches}], "unevaluatedProperties": false}),
        json!({"if": branches[0], "then": {"x-probe": 1}, "else": branches[3], "unevaluatedProperties": false}),
        json!({"allOf": [branches[3], {"$ref": "#/$defs/other"}], "unevaluatedProperties": false}),
    ] {
        let other = json!({"properties": {"children": {"items": {"$ref": "#/$defs/node"}}}, "x-probe": 1});
        let schema = json!({"properties": {"a": {"$ref": "#/$defs/node"}, "b": {"$ref": "#/$defs/other"}}, "$defs": {"node": node, "other": other}});
        let (validator, calls) = probed(&schema);
        for (levels, width) in [(1, 2), (4, 2), (20, 1), (30, 1)] {
            let tree = (0..levels)
                .fold(json!({"kind": "3"}), |inner, _| json!({"children": vec![inner; width], "kind": "3"}));
            let value = json!({"a": tree, "b": tree});
            calls.store(0, std::sync::atomic::Ordering::Relaxed);
            let _ = validator.is_valid(&value);
            let done = calls.load(std::sync::atomic::Ordering::Relaxed);
            let counted = applications(&schema, &value, false);
            assert!(
                counted.is_none_or(|counted| done <= counted),
                "{done} of {counted:?}: {levels} levels, {node}"
            );
            // Whether the outcome of a reference from `other` is remembered depends on the order of properties.
            assert!(
                counted.is_some() || node["allOf"][1]["$ref"].is_string(),
                "refused: {levels} levels, {node}"
            );
        }
    }
}

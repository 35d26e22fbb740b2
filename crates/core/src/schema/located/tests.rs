//! Tests of [`super`]: schemas with generated alternatives, and values that fit them but for one place.

use serde_json::{Value, json};

use super::located;

/// Numbers that look random.
pub(in crate::schema) struct Numbers(pub(in crate::schema) u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// A schema of nested operators: in which keyword, and by what, its alternatives are told apart, and what else they say.
#[derive(Debug, Clone, Copy)]
struct Shape {
    choice: &'static str,
    told_by: &'static str,
    more: &'static str,
    by_reference: bool,
}

impl Shape {
    fn any(numbers: &mut Numbers) -> Self {
        Self {
            choice: numbers.pick(&["anyOf", "oneOf"]),
            told_by: numbers.pick(&["const", "enum", "required", "names", "base", "member type"]),
            more: numbers.pick(&[
                "nothing",
                "additionalProperties",
                "unevaluatedProperties",
                "required",
                "minProperties",
            ]),
            by_reference: numbers.below(2) == 0,
        }
    }

    /// An operator with operands, in `args` or under its own name.
    fn operator(self, name: &str) -> Value {
        let operands = json!({"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/filter"}});
        let mut operator = match self.told_by {
            "const" => json!({"properties": {"args": operands, "op": {"const": name}}, "required": ["op"]}),
            "enum" => {
                json!({"properties": {"args": operands, "op": {"enum": [name, format!("{name}2")]}}, "required": ["op", "args"]})
            }
            "base" => {
                json!({"allOf": [{"properties": {"args": operands}}, {"properties": {"op": {"const": name}}, "required": ["op"]}]})
            }
            "member type" => {
                json!({"properties": {"args": operands, "op": {"type": if name == "and" { "string" } else { "boolean" }}}, "required": ["op"]})
            }
            "names" => {
                json!({"properties": {name: operands}, "additionalProperties": false, "minProperties": 1})
            }
            _ => json!({"properties": {name: operands}, "required": [name]}),
        };
        match self.more {
            "additionalProperties" if self.told_by != "base" => {
                operator["additionalProperties"] = json!(false)
            }
            "unevaluatedProperties" => operator["unevaluatedProperties"] = json!(false),
            "minProperties" => operator["minProperties"] = json!(1),
            _ => {}
        }
        operator
    }

    fn schema(self) -> Value {
        let leaf = json!({"type": "object", "properties": {"field": {"type": "string"}, "eq": {"type": "string"}},
            "required": ["field", "eq"], "additionalProperties": false});
        let definitions = json!({"and": self.operator("and"), "or": self.operator("or"), "leaf": leaf});
        let alternatives = ["and", "or", "leaf"].map(|name| match self.by_reference {
            true => json!({"$ref": format!("#/$defs/{name}")}),
            false => definitions[name].clone(),
        });
        json!({"type": "object", "properties": {"filter": {"$ref": "#/$defs/filter"}}, "required": ["filter"],
            "$defs": {"filter": {(self.choice): alternatives}, "and": definitions["and"], "or": definitions["or"], "leaf": definitions["leaf"]}})
    }

    /// A filter that fits, of so many levels, and the places of its texts.
    fn filter(self, numbers: &mut Numbers, depth: usize, place: &str, texts: &mut Vec<String>) -> Value {
        if depth == 0 {
            texts.push(format!("{place}/eq"));
            return json!({"field": "a", "eq": "b"});
        }
        let name = numbers.pick(&["and", "or"]);
        let own_name = matches!(self.told_by, "required" | "names");
        let operands = if own_name { name } else { "args" };
        let inner: Vec<Value> = (0..=numbers.below(2))
            .map(|n| self.filter(numbers, depth - 1, &format!("{place}/{operands}/{n}"), texts))
            .collect();
        if own_name {
            return json!({ name: inner });
        }
        let op = match self.told_by {
            "member type" if name == "or" => json!(true),
            _ => json!(name),
        };
        json!({"args": inner, "op": op})
    }
}

#[test]
fn the_place_of_a_generated_mistake_is_the_place_of_the_error() {
    for seed in 0..400 {
        let numbers = &mut Numbers(seed);
        let shape = Shape::any(numbers);
        let schema = shape.schema();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let written = located(&schema).unwrap();
        let located = jsonschema::validator_for(&written).unwrap();
        let mut texts = Vec::new();
        let depth = 1 + numbers.below(6);
        let mut value = json!({"filter": shape.filter(numbers, depth, "/filter", &mut texts)});
        assert!(validator.is_valid(&value), "{shape:?} {value}");
        assert_eq!(located.validate(&value).map_err(|it| it.to_string()), Ok(()), "{shape:?} {value}");
        let place = numbers.pick(&texts);
        *value.pointer_mut(&place).unwrap() = json!(5);
        assert!(!validator.is_valid(&value), "{shape:?} {value}");
        let error = located.validate(&value).unwrap_err();
        assert_eq!(error.instance_path().as_str(), place, "{shape:?} {value} {error}");
        // An operator that is not known.
        let object = place.rsplit_once("/eq").unwrap().0;
        *value.pointer_mut(object).unwrap() = json!({"op": ["nand"], "nand": []});
        assert!(!validator.is_valid(&value), "{shape:?} {value}");
        let error = located.validate(&value).unwrap_err();
        assert!(error.instance_path().as_str().starts_with(object), "{shape:?} {value} {error}");
    }
}

/// A small schema of any keywords, which may refer to three definitions.
pub(in crate::schema) fn any_schema(numbers: &mut Numbers, depth: usize) -> Value {
    let mut schema = json!({});
    for _ in 0..=numbers.below(3) {
        let inner = |numbers: &mut Numbers| any_schema(numbers, depth.saturating_sub(1));
        match numbers.below(if depth == 0 { 6 } else { 15 }) {
            0 => {
                schema["type"] = numbers.pick(&[
                    json!("object"),
                    json!("array"),
                    json!("string"),
                    json!(["integer", "null"]),
                ])
            }
            1 => schema["const"] = numbers.pick(&[json!("a"), json!(1), json!({"a": 1})]),
            2 => schema["enum"] = numbers.pick(&[json!(["a", "b"]), json!([1, null, true])]),
            3 => schema["required"] = numbers.pick(&[json!(["a"]), json!(["b"]), json!(["a", "c"])]),
            4 => schema["additionalProperties"] = json!(numbers.below(2) == 0),
            5 => schema["unevaluatedProperties"] = json!(false),
            6..=8 => schema["properties"] = json!({"a": inner(numbers), "b": inner(numbers)}),
            9 => schema["items"] = inner(numbers),
            10 => schema["allOf"] = json!([inner(numbers), inner(numbers)]),
            11 => schema["$ref"] = json!(format!("#/$defs/{}", numbers.below(3))),
            12 => schema["not"] = inner(numbers),
            13 => schema["oneOf"] = json!([inner(numbers), inner(numbers), inner(numbers)]),
            _ => schema["anyOf"] = json!([inner(numbers), inner(numbers)]),
        }
    }
    schema
}

pub(in crate::schema) fn any_value(numbers: &mut Numbers, depth: usize) -> Value {
    match numbers.below(if depth == 0 { 5 } else { 9 }) {
        0 => json!("a"),
        1 => json!("b"),
        2 => json!(1),
        3 => json!(null),
        4 => json!({}),
        5 => json!([any_value(numbers, depth - 1)]),
        6 => json!({"a": any_value(numbers, depth - 1)}),
        7 => json!({"b": any_value(numbers, depth - 1), "c": 1}),
        _ => json!({"a": any_value(numbers, depth - 1), "b": any_value(numbers, depth - 1)}),
    }
}

#[test]
fn a_located_schema_allows_the_same_values_and_its_error_is_mended_at_its_place() {
    let (mut refused, mut mended) = (0, 0);
    for seed in 0..1_500 {
        let numbers = &mut Numbers(seed);
        let definition = |numbers: &mut Numbers| any_schema(numbers, 1);
        let mut schema = any_schema(numbers, 3);
        schema["$defs"] =
            json!({"0": definition(numbers), "1": definition(numbers), "2": any_schema(numbers, 0)});
        let Ok(validator) = jsonschema::validator_for(&schema) else { continue };
        let written = located(&schema).unwrap();
        let located = jsonschema::validator_for(&written).unwrap();
        for _ in 0..4 {
            let value = any_value(numbers, 3);
            let error = located.validate(&value).err();
            assert_eq!(validator.is_valid(&value), error.is_none(), "{schema} {value} {error:?}");
            assert_eq!(located.is_valid(&value), error.is_none(), "{schema} {value}");
            let Some(error) = error else { continue };
            refused += 1;
            let place = error.instance_path().as_str();
            assert!(value.pointer(place).is_some(), "{schema} {value} {error}");
            mended += usize::from((0..200).any(|_| {
                let mut other = value.clone();
                *other.pointer_mut(place).unwrap() = any_value(numbers, 2);
                located.validate(&other).err().is_none_or(|it| it.instance_path().as_str() != place)
            }));
        }
    }
    // Some schemas allow no value at a place.
    assert!(refused > 500 && mended * 10 > refused * 5, "{mended} of {refused}");
}

#[test]
fn references_into_alternatives_still_lead_there() {
    let schema = json!({"properties": {
        "a": {"anyOf": [{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}, {"type": "null"}]},
        "b": {"$ref": "#/properties/a/anyOf/0"}, "c": {"$ref": "#/properties/a/anyOf/0/properties/n"}, "d": {"$ref": "#/properties/a"}}});
    let located = jsonschema::validator_for(&located(&schema).unwrap()).unwrap();
    for (value, place) in [
        (json!({"a": {"n": "x"}}), "/a/n"),
        (json!({"a": 5}), "/a"),
        (json!({"b": {"n": "x"}}), "/b/n"),
        (json!({"b": null}), "/b"),
        (json!({"c": "x"}), "/c"),
        (json!({"d": {"n": "x"}}), "/d/n"),
    ] {
        assert_eq!(located.validate(&value).unwrap_err().instance_path().as_str(), place, "{value}");
    }
    assert!(located.is_valid(&json!({"a": {"n": 1}, "b": {"n": 1}, "c": 1, "d": null})));
}

#[test]
fn schemas_of_draft_3_and_with_addresses_within_are_left_alone() {
    for schema in [
        json!({"$schema": "http://json-schema.org/draft-03/schema#", "anyOf": [{}]}),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"a": {"id": "https://example.com/a"}}}),
        json!({"properties": {"a": {"$id": "https://example.com/a"}}}),
    ] {
        assert_eq!(located(&schema), None);
    }
    let older = json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"type": "string"}},
        "properties": {"a": {"$ref": "#/definitions/a", "anyOf": [false]}, "b": {"anyOf": [{"$ref": "#/definitions/a"}, {"type": "null"}]}}});
    let validator = jsonschema::validator_for(&located(&older).unwrap()).unwrap();
    assert!(validator.is_valid(&json!({"a": "x", "b": null})));
    assert_eq!(validator.validate(&json!({"b": 5})).unwrap_err().instance_path().as_str(), "/b");
}

#[test]
fn a_schema_of_draft_4_refuses_nothing_more_in_draft_7() {
    let schema = json!({"$schema": "http://json-schema.org/draft-04/schema#", "id": "https://example.com/a", "properties": {
        "const": {"const": 5, "if": {}, "then": false}, "n": {"minimum": 1, "exclusiveMinimum": true, "maximum": 5, "exclusiveMaximum": false},
        "choice": {"anyOf": [{"type": "string"}, {"type": "null"}]}}});
    let validator = jsonschema::validator_for(&schema).unwrap();
    let located = jsonschema::validator_for(&located(&schema).unwrap()).unwrap();
    for value in [
        json!({"const": 6}),
        json!({"n": 1}),
        json!({"n": 2}),
        json!({"n": 5}),
        json!({"n": 6}),
        json!({"choice": 1}),
        json!({"choice": "a"}),
    ] {
        assert_eq!(located.is_valid(&value), validator.is_valid(&value), "{value}");
    }
}

#[test]
fn alternatives_that_all_refer_to_the_same_long_part_are_not_written() {
    let names: Vec<String> = (0..64).map(|n| format!("n{n:03}{}", "x".repeat(250))).collect();
    let properties: serde_json::Map<String, Value> =
        names.iter().map(|name| (name.clone(), json!({}))).collect();
    let texts: Vec<String> = (0..64).map(|n| format!("v{n}")).collect();
    for shared in [
        json!({"enum": texts}),
        json!({"required": names}),
        json!({"properties": properties, "additionalProperties": false}),
        json!({"type": texts}),
    ] {
        let of = |number: usize| {
            located(&json!({"anyOf": vec![json!({"$ref": "#/$defs/e"}); number], "$defs": {"e": shared}}))
        };
        assert!(of(3).is_some());
        assert!(of(3_000).is_none(), "{}", shared.to_string().len());
    }
}

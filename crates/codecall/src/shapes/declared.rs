//! Output schemas, read as descriptions of the unwrapped value.

use std::sync::Arc;

use gatewright_core::{ReadOutput, ReadSchemas, ToolEntry, rmcp::model::JsonObject};
use gatewright_shape::spell_long_integers;
use serde_json::{Value, json};

use super::{ResultShape, open_parts::leaves_open};

/// Name of the one property that SDKs wrap results in.
pub(crate) const RESULT: &str = "result";
/// Mark of FastMCP on an output schema whose results are wrapped.
const MARK: &str = "x-fastmcp-wrap-result";
/// Members of a schema that its references point into.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
/// Levels of a schema that are looked at.
const DEEPEST: usize = 32;

/// The shape that `tool` declares, unless it says nothing.
pub(crate) fn declared(tool: &ToolEntry) -> Option<ResultShape> {
    let schema = read(tool).output.as_ref()?.schema.clone();
    Some(ResultShape { schema, observed: None, text: None })
}

/// The schemas of `tool`, which are read once: each of its results asks for this.
pub(crate) fn read(tool: &ToolEntry) -> &ReadSchemas {
    tool.schemas_read_once(|tool| ReadSchemas {
        output: tool.output_schema.as_ref().and_then(|schema| {
            let seen = as_scripts_see_it(schema)?;
            let is_open = leaves_open(&seen);
            Some(ReadOutput { schema: seen, wraps: wraps(schema), is_text: is_text(schema), is_open })
        }),
        is_input_open: leaves_open(&tool.input_schema),
    })
}

/// Returns `true` if results of this schema are unwrapped: it has the mark of FastMCP, or `result` is its only property and required.
pub(crate) fn wraps(schema: &JsonObject) -> bool {
    let Some(Value::Object(properties)) = schema.get("properties") else { return false };
    let Some(_) = properties.get(RESULT) else { return false };
    if schema.get(MARK) == Some(&Value::Bool(true)) {
        return true;
    }
    let required = schema.get("required").and_then(Value::as_array);
    properties.len() == 1
        && required.is_some_and(|names| names.iter().any(|name| name == RESULT))
        && matches!(schema.get("additionalProperties"), None | Some(Value::Bool(false)))
        && !schema.contains_key("patternProperties")
}

/// The schema of the value that scripts get; `None` when it says nothing about it.
pub(crate) fn as_scripts_see_it(schema: &Arc<JsonObject>) -> Option<Arc<JsonObject>> {
    let mut inner = if wraps(schema) { Arc::new(unwrapped(schema)?) } else { schema.clone() };
    if is_vacuous(&inner) {
        return None;
    }
    if any_part(&inner, DEEPEST, is_long_integer) {
        allow_digits(Arc::make_mut(&mut inner), DEEPEST);
    }
    Some(inner)
}

/// Returns `true` if the value of this declared schema is text alone.
pub(crate) fn is_text(schema: &JsonObject) -> bool {
    let property = schema.get("properties").and_then(|properties| properties.get(RESULT));
    let of_value = if wraps(schema) { property.and_then(Value::as_object) } else { Some(schema) };
    of_value.and_then(|schema| schema.get("type")).is_some_and(|kind| kind == "string")
}

/// Returns `true` if `value`, a number, text, boolean or null, may be what this declared schema wraps.
pub(crate) fn admits_scalar(schema: &JsonObject, value: &Value) -> bool {
    let property = schema.get("properties").and_then(|properties| properties.get(RESULT));
    property.is_some_and(|inner| admits(inner, value, DEEPEST))
}

fn admits(schema: &Value, value: &Value, levels: usize) -> bool {
    let Value::Object(schema) = schema else { return *schema == Value::Bool(true) };
    let kinds: &[&str] = match value {
        Value::Null => &["null"],
        Value::Bool(_) => &["boolean"],
        Value::Number(_) => &["integer", "number"],
        Value::String(_) => &["string"],
        Value::Array(_) | Value::Object(_) => &[],
    };
    if schema.contains_key("type") && !kinds.iter().any(|kind| allows(schema, kind)) {
        return false;
    }
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return options.contains(value);
    }
    if let Some(only) = schema.get("const") {
        return only == value;
    }
    let mut choices = ["anyOf", "oneOf"].iter().filter_map(|keyword| schema.get(*keyword)?.as_array());
    choices.all(|parts| levels > 0 && parts.iter().any(|part| admits(part, value, levels - 1)))
}

fn unwrapped(schema: &JsonObject) -> Option<JsonObject> {
    let mut inner = schema.get("properties")?.get(RESULT)?.as_object()?.clone();
    for name in DEFINITIONS {
        if let Some(definitions) = schema.get(name) {
            inner.entry(name).or_insert_with(|| definitions.clone());
        }
    }
    Some(inner)
}

/// Returns `true` for a schema that any object, any array or any value fits.
pub(crate) fn is_vacuous(schema: &JsonObject) -> bool {
    const TELLING: [&str; 15] = [
        "$ref",
        "$dynamicRef",
        "anyOf",
        "oneOf",
        "allOf",
        "enum",
        "const",
        "if",
        "patternProperties",
        "prefixItems",
        "dependentSchemas",
        "required",
        "contains",
        "format",
        "pattern",
    ];
    let telling = |name: &&str| match schema.get(*name) {
        Some(Value::Array(parts)) => !parts.is_empty(),
        Some(_) => true,
        None => false,
    };
    let open = |name: &str| match schema.get(name) {
        None | Some(Value::Bool(true)) => true,
        Some(Value::Object(inner)) => is_vacuous(inner),
        Some(_) => false,
    };
    let has_properties =
        schema.get("properties").and_then(Value::as_object).is_some_and(|named| !named.is_empty());
    let kind_is_open = match schema.get("type") {
        None => true,
        Some(kind) => kind == "object" || kind == "array",
    };
    // An object that has no members at all is closed, which says something only of servers that mean it: few do.
    let members_open =
        open("additionalProperties") || schema.get("additionalProperties") == Some(&Value::Bool(false));
    kind_is_open && !has_properties && members_open && open("items") && !TELLING.iter().any(telling)
}

/// The greatest integer up to which every integer is a JavaScript number of its own.
const SAFE: f64 = 9_007_199_254_740_991.0;

/// Returns `true` for a schema that allows values of this type.
fn allows(schema: &JsonObject, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|own| own == kind),
        Some(own) => own == kind,
        None => false,
    }
}

/// Returns `true` for a schema of integers that JavaScript is likely to round: by its format or its range, or because it names one.
fn is_long_integer(schema: &JsonObject) -> bool {
    let beyond =
        |name: &str| schema.get(name).and_then(Value::as_f64).is_some_and(|bound| bound.abs() > SAFE);
    let long_format = schema.get("format").is_some_and(|format| format == "int64" || format == "uint64");
    let is_integer = allows(schema, "integer");
    is_integer && (beyond("maximum") || beyond("minimum"))
        || long_format && (is_integer || allows(schema, "number"))
        || beyond("const")
        || schema.get("enum").and_then(Value::as_array).into_iter().flatten().any(is_beyond)
}

fn is_beyond(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number.abs() > SAFE)
}

/// Returns `true` for a schema of numbers that says nothing of their range, so that an integer among them may be one that JavaScript rounds.
fn is_unbounded(schema: &JsonObject) -> bool {
    let bounded = |names: [&str; 2]| {
        names.iter().filter_map(|name| schema.get(*name)?.as_f64()).any(|bound| bound.abs() <= SAFE)
    };
    (allows(schema, "integer") || allows(schema, "number"))
        && !(bounded(["minimum", "exclusiveMinimum"]) && bounded(["maximum", "exclusiveMaximum"]))
        && !["enum", "const"].iter().any(|name| schema.contains_key(*name))
}

/// Returns `true` if `schema` or a part of it `is` so.
fn any_part(schema: &JsonObject, levels: usize, is: fn(&JsonObject) -> bool) -> bool {
    levels > 0
        && (is(schema)
            || schema.values().any(|value| match value {
                Value::Object(inner) => any_part(inner, levels - 1, is),
                Value::Array(items) => {
                    items.iter().filter_map(Value::as_object).any(|inner| any_part(inner, levels - 1, is))
                }
                _ => false,
            }))
}

/// Returns `true` if a number in a value of `schema` may be one that scripts get as text.
pub(crate) fn may_have_long_integers(schema: &JsonObject) -> bool {
    any_part(schema, DEEPEST, is_unbounded) || any_part(schema, DEEPEST, is_long_integer)
}

/// Returns `true` if this declared schema has decimals.
pub(crate) fn has_decimals(schema: &JsonObject) -> bool {
    any_part(schema, DEEPEST, |part| allows(part, "number"))
}

/// Adds `string` to the types of integers that JavaScript is likely to round: scripts get their digits.
fn allow_digits(schema: &mut JsonObject, levels: usize) {
    if levels == 0 {
        return;
    }
    let kinds = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.clone(),
        Some(kind) => vec![kind.clone()],
        None => Vec::new(),
    };
    if is_long_integer(schema) && !kinds.is_empty() {
        let kinds: Vec<Value> =
            kinds.into_iter().filter(|kind| kind != "string").chain([json!("string")]).collect();
        schema.insert("type".to_owned(), kinds.into());
    }
    for name in ["enum", "const"] {
        schema.get_mut(name).into_iter().for_each(spell_long_integers);
    }
    for value in schema.values_mut() {
        match value {
            Value::Object(inner) => allow_digits(inner, levels - 1),
            Value::Array(items) => {
                items
                    .iter_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(|inner| allow_digits(inner, levels - 1));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(schema: Value) -> Option<Value> {
        let Value::Object(schema) = schema else { panic!("an object") };
        as_scripts_see_it(&Arc::new(schema)).map(|schema| Value::Object((*schema).clone()))
    }

    #[test]
    fn a_wrapped_schema_is_that_of_its_result_with_the_definitions_it_refers_to() {
        let users = json!({"type": "array", "items": {"$ref": "#/$defs/User"}});
        let defs = json!({"User": {"type": "object", "properties": {"id": {"type": "integer"}}}});
        let wrapped = json!({"type": "object", "properties": {"result": users}, "required": ["result"],
            "$defs": defs, "x-fastmcp-wrap-result": true});
        let inner = seen(wrapped.clone()).unwrap();
        assert_eq!((&inner["items"]["$ref"], &inner["$defs"]), (&users["items"]["$ref"], &defs));
        let mut unmarked = wrapped;
        unmarked.as_object_mut().unwrap().shift_remove(MARK);
        assert_eq!(seen(unmarked), Some(inner));
    }

    #[test]
    fn a_result_among_other_properties_is_not_unwrapped() {
        let page = json!({"type": "object", "required": ["result"],
            "properties": {"result": {"type": "string"}, "next": {"type": "string"}}});
        assert_eq!(seen(page.clone()), Some(page));
    }

    #[test]
    fn a_schema_that_anything_fits_says_nothing() {
        for vacuous in [
            json!({}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {}, "additionalProperties": true}),
            json!({"type": "object", "properties": {"result": {}}, "required": ["result"]}),
            json!({"type": "object", "properties": {"result": {"type": "array", "items": {}}}, "required": ["result"]}),
            json!({"type": "object", "properties": {"result": {"type": "array", "items": {"type": "object"}}},
                "x-fastmcp-wrap-result": true}),
        ] {
            assert_eq!(seen(vacuous.clone()), None, "{vacuous}");
        }
        assert!(seen(json!({"type": "object", "additionalProperties": {"type": "integer"}})).is_some());
        assert!(seen(json!({"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]})).is_some());
    }

    #[test]
    fn integers_of_64_bits_may_be_text() {
        let schema = json!({"type": "object", "properties": {
            "id": {"type": "integer", "format": "int64"}, "age": {"type": "integer", "maximum": 150},
            "code": {"enum": [1, 9_007_199_254_740_993_u64]}, "n": {"type": ["number", "null"], "format": "uint64"}}});
        let seen = seen(schema).unwrap();
        assert_eq!(seen["properties"]["id"]["type"], json!(["integer", "string"]));
        assert_eq!(seen["properties"]["age"]["type"], "integer");
        assert_eq!(seen["properties"]["code"]["enum"], json!([1, "9007199254740993"]));
        assert_eq!(seen["properties"]["n"]["type"], json!(["number", "null", "string"]));
    }

    #[test]
    fn numbers_without_a_range_may_be_long_integers() {
        let may = |part: Value| {
            let schema = json!({"type": "object", "properties": {"a": {"anyOf": [part, {"type": "null"}]}}});
            may_have_long_integers(schema.as_object().unwrap())
        };
        for (part, expected) in [
            (json!({"type": "integer"}), true),
            (json!({"type": "number", "minimum": 0}), true),
            (json!({"type": "integer", "format": "int64"}), true),
            (json!({"type": "integer", "minimum": 0, "maximum": 1e17}), true),
            (
                json!({"type": "integer", "minimum": -9_007_199_254_740_991_i64, "maximum": 9_007_199_254_740_991_i64}),
                false,
            ),
            (json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}), false),
            (json!({"type": "integer", "enum": [1, 2]}), false),
            (json!({"type": "string"}), false),
        ] {
            assert_eq!(may(part.clone()), expected, "{part}");
        }
    }
}

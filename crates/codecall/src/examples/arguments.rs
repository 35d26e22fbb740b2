//! Arguments that fit a tool's input schema: its own examples and defaults first, then plausible values by type.

use gatewright_core::ToolEntry;
use serde_json::{Map, Value, json};

/// Depth at which a schema that contains itself is cut off.
const DEEPEST: usize = 6;

/// The required arguments, with values that the schema accepts; `None` when none can be made.
pub(super) fn fitting(tool: &ToolEntry) -> Option<Value> {
    let schema = Value::Object((**tool.input_schema()).clone());
    let whole =
        schema.get("examples").and_then(|examples| examples.get(0)).filter(|example| example.is_object());
    let candidates = [whole.cloned(), value(&schema, &schema, "", 0)];
    candidates
        .into_iter()
        .flatten()
        .find(|candidate| candidate.is_object() && tool.schema.check(candidate).is_ok())
}

fn value(root: &Value, schema: &Value, name: &str, depth: usize) -> Option<Value> {
    if depth > DEEPEST {
        return None;
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return value(root, root.pointer(target.strip_prefix('#')?)?, name, depth + 1);
    }
    let first = |key: &str| schema.get(key).and_then(|list| list.get(0)).cloned();
    let given =
        first("examples").or_else(|| schema.get("example").cloned()).or_else(|| schema.get("const").cloned());
    if let Some(given) = given.or_else(|| schema.get("default").cloned()).or_else(|| first("enum")) {
        return Some(given);
    }
    for union in ["oneOf", "anyOf"] {
        if let Some(options) = schema.get(union).and_then(Value::as_array)
            && schema.get("type").is_none()
        {
            return options.iter().find_map(|option| value(root, option, name, depth + 1));
        }
    }
    match kind(schema) {
        "object" => object(root, schema, depth),
        "array" => array(root, schema, name, depth),
        "integer" => Some(json!(number(schema, 1.0).ceil() as i64)),
        "number" => Some(json!(number(schema, 1.0))),
        "boolean" => Some(json!(true)),
        "null" => Some(Value::Null),
        _ => Some(json!(text(schema, name))),
    }
}

fn kind(schema: &Value) -> &str {
    let named = |value: &'_ Value| value.as_str().is_some_and(|kind| kind != "null");
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().find(|kind| named(kind)).and_then(Value::as_str).unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => "string",
    }
}

fn object(root: &Value, schema: &Value, depth: usize) -> Option<Value> {
    let mut object = Map::new();
    for name in
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        let property = schema.get("properties").and_then(|all| all.get(name)).unwrap_or(&Value::Null);
        object.insert(name.to_owned(), value(root, property, name, depth + 1)?);
    }
    Some(Value::Object(object))
}

fn array(root: &Value, schema: &Value, name: &str, depth: usize) -> Option<Value> {
    let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1).clamp(1, 8);
    let item = value(root, schema.get("items").unwrap_or(&Value::Null), name, depth + 1)?;
    Some(Value::Array(vec![item; usize::try_from(least).unwrap_or(1)]))
}

fn number(schema: &Value, plausible: f64) -> f64 {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let low = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|bound| bound + 1.0));
    let high = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|bound| bound - 1.0));
    let value = low.map_or(plausible, |low| plausible.max(low));
    high.map_or(value, |high| value.min(high))
}

fn text(schema: &Value, name: &str) -> String {
    let plausible = match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-01-15T09:30:00Z",
        Some("date") => "2026-01-15",
        Some("time") => "09:30:00Z",
        Some("email") => "ada@example.com",
        Some("uri" | "url") => "https://example.com/",
        Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
        Some("ipv4") => "192.0.2.1",
        Some("hostname") => "example.com",
        _ => by_name(name),
    };
    let length = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let mut text = plausible.to_owned();
    if let Some(least) = length("minLength").filter(|least| *least <= 1_000) {
        while text.chars().count() < least {
            text.push('x');
        }
    }
    match length("maxLength") {
        Some(most) => text.chars().take(most).collect(),
        None => text,
    }
}

fn by_name(name: &str) -> &'static str {
    let name = name.to_lowercase();
    let has = |part: &str| name.contains(part);
    match () {
        () if has("email") => "ada@example.com",
        () if has("url") || has("uri") => "https://example.com/",
        () if has("date") => "2026-01-15",
        () if has("path") || has("file") => "notes.txt",
        () if has("query") || has("search") => "overdue",
        () if has("title") || has("subject") => "Quarterly review",
        () if has("name") => "Ada",
        () if has("message") || has("body") || has("text") || has("content") => "Hello",
        () if name == "id" || name.ends_with("_id") || name.ends_with("id") => "1",
        () => "example",
    }
}

//! Memory that each problem of a value has of its own: `jsonschema` copies parts of the schema and of the value into it.

use serde_json::Value;

use super::cost;
use crate::value_bytes;

/// Returns the bytes of the schema that a problem may have a copy of: the schema of a `not`, a name that is required, an expression, and its place.
pub(super) fn heaviest(schema: &Value) -> u64 {
    cost::longest_place(schema) + copied(schema)
}

fn copied(schema: &Value) -> u64 {
    match schema {
        Value::Array(items) => items.iter().map(copied).max().unwrap_or_default(),
        // References lead anywhere, so that each object may be a schema.
        Value::Object(members) => {
            let of = |(keyword, given): (&String, &Value)| {
                let own = match keyword.as_str() {
                    "not" => value_bytes(given),
                    "required" | "dependentRequired" | "dependencies" | "pattern" => longest_text(given),
                    _ => 0,
                };
                own.max(copied(given))
            };
            members.iter().map(of).max().unwrap_or_default()
        }
        _ => 0,
    }
}

fn longest_text(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(longest_text).max().unwrap_or_default(),
        Value::Object(members) => members.values().map(longest_text).max().unwrap_or_default(),
        _ => 0,
    }
}

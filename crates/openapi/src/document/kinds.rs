//! Types of schemas, in all the ways in which versions of OpenAPI write them.

use serde_json::{Map, Value};

use super::sources::Node;

/// The types that a `type` names; none where it names none that JSON Schema knows.
pub(super) fn kinds(given: Option<&Value>) -> Option<Vec<&'static str>> {
    let kind = |name: &Value| {
        let known = ["string", "number", "integer", "boolean", "array", "object", "null"];
        match name.as_str()? {
            // Swagger 2.0.
            "file" => Some("string"),
            name => known.into_iter().find(|known| *known == name),
        }
    };
    match given? {
        // More than all types.
        Value::Array(names) if names.len() > 20 => None,
        Value::Array(names) => {
            let mut kinds: Vec<&str> = Vec::new();
            for name in names {
                let kind = kind(name)?;
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            (!kinds.is_empty()).then_some(kinds)
        }
        name => kind(name).map(|kind| vec![kind]),
    }
}

/// The types, and null if the value may be null.
pub(super) fn with_null(mut kinds: Vec<&'static str>, nullable: bool) -> Vec<&'static str> {
    if nullable && !kinds.contains(&"null") {
        kinds.push("null");
    }
    kinds
}

/// The types as the value of `type`.
pub(super) fn kinds_value(kinds: &[&str]) -> Value {
    match kinds {
        [one] => Value::String((*one).to_owned()),
        several => several.iter().map(|kind| Value::String((*kind).to_owned())).collect(),
    }
}

/// The type of a schema that has none, by its keywords, where no other is meant.
pub(super) fn implied_kind(map: &Map<String, Value>, out: &[(String, Value)]) -> Option<&'static str> {
    let is_composed = ["type", "enum", "const", "allOf", "anyOf", "oneOf", "$ref"];
    if is_composed.iter().any(|key| map.contains_key(*key)) {
        return None;
    }
    let has = |key: &str| out.iter().any(|(other, _)| other == key);
    has("properties").then_some("object").or_else(|| has("items").then_some("array"))
}

/// `nullable` of OpenAPI 3.0, and the extension that Swagger 2.0 has in its place.
pub(super) fn is_nullable(node: Node<'_>) -> bool {
    node.is("nullable") || node.is("x-nullable")
}

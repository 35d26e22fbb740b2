//! Parts of schemas that are written in another way than the document has them.

use serde_json::Value;

use super::{
    json::{is_shorter, object},
    sources::{Node, reference},
};

/// Longest texts together of a schema without parts that is written where it is used, in bytes.
const SMALL: usize = 240;

type Members = Vec<(String, Value)>;

/// The only part of an `allOf` with nothing beside it but annotations, where that is a reference.
pub(super) fn only_part(node: Node<'_>) -> Option<Node<'_>> {
    let parts = node.get("allOf")?;
    let [part] = parts.value.as_array()?.as_slice() else { return None };
    let is_note = |key: &str| {
        matches!(
            key,
            "allOf"
                | "description"
                | "title"
                | "nullable"
                | "readOnly"
                | "writeOnly"
                | "deprecated"
                | "default"
                | "example"
                | "examples"
                | "xml"
                | "externalDocs"
        ) || key.starts_with("x-")
    };
    let is_alone = node.members().all(|(key, _)| is_note(key));
    (is_alone && reference(part).is_some()).then(|| node.with(part))
}

/// Returns `true` for a schema that is short and has no parts: a copy of it costs less than a definition.
pub(super) fn is_small(node: Node<'_>) -> bool {
    let Some(map) = node.value.as_object() else { return true };
    let is_part = |key: &str| {
        matches!(
            key,
            "properties"
                | "items"
                | "prefixItems"
                | "allOf"
                | "anyOf"
                | "oneOf"
                | "not"
                | "if"
                | "contains"
                | "patternProperties"
                | "dependentSchemas"
                | "propertyNames"
                | "unevaluatedProperties"
                | "unevaluatedItems"
        )
    };
    let is_plain = |(key, value): (&String, &Value)| {
        !(is_part(key) || key == "additionalProperties" && value.is_object())
    };
    map.len() <= 12 && map.iter().all(is_plain) && is_shorter(node.value, SMALL)
}

/// `inner` or null, with `outer` beside it.
pub(super) fn or_null(inner: Members, outer: Members) -> Members {
    let null = object(vec![("type".to_owned(), "null".into())]);
    let either = vec![Value::Object(object(inner)), Value::Object(null)];
    let mut members = vec![("anyOf".to_owned(), Value::Array(either))];
    members.extend(outer);
    members
}

/// Takes what describes a value, and does not constrain it, out of the members of a schema.
pub(super) fn take_annotations(members: &mut Members) -> Members {
    let is_note = |key: &str| ["description", "title", "deprecated", "default", "examples"].contains(&key);
    members.extract_if(.., |(key, _)| is_note(key)).collect()
}

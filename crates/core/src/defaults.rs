//! Defaults of required properties, which servers fill in themselves when a caller leaves them out.
//!
//! Only objects that exist are filled. `$ref` within the document and `allOf` are followed, but not into a schema that is being read
//! already; what a value has to choose first (`anyOf`, `oneOf`, `if`) and the items of arrays are not.

use std::{collections::HashSet, ptr};

use rmcp::model::JsonObject;
use serde_json::Value;

/// Properties that are both required and have a default, by the objects that lack them.
#[derive(Debug, Default)]
pub(crate) struct Defaults {
    values: Vec<(String, Value)>,
    below: Vec<(String, Defaults)>,
}

/// Work and memory of one schema's defaults: bytes of text, and [`VALUE`] for each property and value. What is beyond is left out.
const ROOM: usize = 64 * 1024;
const VALUE: usize = 16;
/// Schemas within each other, with their parts.
const DEEPEST: usize = 32;

impl Defaults {
    pub(crate) fn of(schema: &JsonObject) -> Self {
        let mut room = ROOM;
        Self::read(schema, schema, &mut room, &mut Vec::new())
    }

    /// Reads `schema`, unless it is one of those that it is `within`.
    fn read<'s>(
        root: &'s JsonObject,
        schema: &'s JsonObject,
        room: &mut usize,
        within: &mut Vec<&'s JsonObject>,
    ) -> Self {
        let (mut defaults, parts) = (Self::default(), parts(root, schema, room));
        let outer = within.len();
        let repeats = parts.iter().any(|part| within.iter().any(|it| ptr::eq(*it, *part)));
        if repeats || outer > DEEPEST {
            return defaults;
        }
        let names = parts.iter().filter_map(|part| part.get("required")?.as_array()).flatten();
        let required: HashSet<&str> = names.take_while(|_| take(room, 0)).filter_map(Value::as_str).collect();
        let properties = || parts.iter().filter_map(|part| part.get("properties")?.as_object()).flatten();
        for (name, property) in properties().filter(|(name, _)| required.contains(name.as_str())) {
            let Some(property) = property.as_object() else { continue };
            let value = property.get("default").or_else(|| target(root, property)?.get("default"));
            if let Some(value) = value.filter(|value| take(room, name.len()) && fits(value, room)) {
                defaults.values.push((name.clone(), value.clone()));
            }
        }
        within.extend(&parts);
        for (name, property) in properties() {
            if !take(room, name.len()) {
                break;
            }
            let Some(property) = property.as_object() else { continue };
            let inner = Self::read(root, property, room, within);
            if !inner.is_empty() {
                defaults.below.push((name.clone(), inner));
            }
        }
        within.truncate(outer);
        defaults
    }

    fn is_empty(&self) -> bool {
        self.values.is_empty() && self.below.is_empty()
    }

    /// Adds the properties that `object`, and the objects in it, lack.
    pub(crate) fn fill(&self, object: &mut JsonObject) {
        for (name, value) in &self.values {
            if !object.contains_key(name) {
                object.insert(name.clone(), value.clone());
            }
        }
        for (name, inner) in &self.below {
            if let Some(Value::Object(object)) = object.get_mut(name) {
                inner.fill(object);
            }
        }
    }
}

/// The schemas that an object has to fit, whatever its values: `schema`, the members of its `allOf`, and what these refer to.
fn parts<'s>(root: &'s JsonObject, schema: &'s JsonObject, room: &mut usize) -> Vec<&'s JsonObject> {
    let all = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let own = std::iter::once(schema).chain(all.take_while(|_| take(room, 0)).filter_map(Value::as_object));
    own.flat_map(|part| [Some(part), target(root, part)]).flatten().collect()
}

/// The schema that `$ref` names within the document.
fn target<'s>(root: &'s JsonObject, schema: &JsonObject) -> Option<&'s JsonObject> {
    let pointer = schema.get("$ref")?.as_str()?.strip_prefix("#/")?;
    let (first, rest) = pointer.split_once('/')?;
    root.get(first)?.pointer(&format!("/{rest}"))?.as_object()
}

fn take(room: &mut usize, bytes: usize) -> bool {
    let left = room.checked_sub(bytes.saturating_add(VALUE));
    *room = left.unwrap_or(0);
    left.is_some()
}

/// Tests for a value that the room is left for, and takes that.
fn fits(value: &Value, room: &mut usize) -> bool {
    match value {
        Value::String(text) => take(room, text.len()),
        Value::Array(items) => take(room, 0) && items.iter().all(|item| fits(item, room)),
        Value::Object(members) => {
            take(room, 0) && members.iter().all(|(name, member)| take(room, name.len()) && fits(member, room))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => take(room, 0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(schema: Value, arguments: Value) -> Value {
        let (Value::Object(schema), Value::Object(mut arguments)) = (schema, arguments) else {
            panic!("objects")
        };
        Defaults::of(&schema).fill(&mut arguments);
        Value::Object(arguments)
    }

    #[test]
    fn only_what_is_required_and_missing_gets_its_default() {
        let schema = json!({"required": ["page", "id"], "properties": {
            "page": {"default": 1}, "limit": {"default": 10}, "id": {"type": "string"}}});
        assert_eq!(filled(schema.clone(), json!({})), json!({"page": 1}));
        assert_eq!(filled(schema, json!({"page": null, "id": "a"})), json!({"page": null, "id": "a"}));
    }

    #[test]
    fn objects_that_exist_are_filled_through_references_and_all_of() {
        let schema = json!({"required": ["mode", "box"], "properties": {
            "mode": {"$ref": "#/$defs/mode"}, "box": {"$ref": "#/$defs/a~1b"}, "other": {"allOf": [{"$ref": "#/$defs/a~1b"}]}},
            "$defs": {"mode": {"enum": ["x", "y"], "default": "x"},
                "a/b": {"required": ["size"], "properties": {"size": {"default": {"w": 1}}}}}});
        let size = json!({"w": 1});
        assert_eq!(filled(schema.clone(), json!({})), json!({"mode": "x"}));
        assert_eq!(
            filled(schema, json!({"mode": "y", "box": {"x": 2}, "other": {}})),
            json!({"mode": "y", "box": {"x": 2, "size": size}, "other": {"size": size}})
        );
    }

    #[test]
    fn alternatives_and_items_are_left_alone() {
        let object = json!({"required": ["a"], "properties": {"a": {"default": 1}}});
        for keyword in ["anyOf", "oneOf"] {
            let schema = json!({"properties": {"x": {keyword: [object]}}, keyword: [object]});
            assert_eq!(filled(schema, json!({"x": {}})), json!({"x": {}}), "{keyword}");
        }
        let schema = json!({"properties": {"x": {"items": object}}});
        assert_eq!(filled(schema, json!({"x": [{}]})), json!({"x": [{}]}));
    }

    #[test]
    fn a_schema_within_itself_is_read_once_and_what_stands_beside_it_too() {
        let schema = json!({"$ref": "#/$defs/node", "$defs": {"node": {"required": ["a"], "properties": {
            "left": {"$ref": "#/$defs/node"}, "right": {"$ref": "#/$defs/node"}, "a": {"default": 1},
            "z": {"required": ["b"], "properties": {"b": {"default": 2}}}}}}});
        assert_eq!(filled(schema, json!({"left": {}, "z": {}})), json!({"a": 1, "left": {}, "z": {"b": 2}}));
    }

    #[test]
    fn what_a_schema_adds_to_a_call_is_bounded() {
        let names: Vec<String> = (0..100).map(|n| format!("p{n}")).collect();
        let properties: JsonObject =
            names.iter().map(|name| (name.clone(), json!({"$ref": "#/$defs/long"}))).collect();
        let long = json!({"required": ["a"], "properties": {"a": {"default": "x".repeat(ROOM / 4)}}});
        let arguments: JsonObject = names.iter().map(|name| (name.clone(), json!({}))).collect();
        let schema = json!({"properties": properties, "$defs": {"long": long}});
        let filled = filled(schema, Value::Object(arguments)).to_string();
        assert!((ROOM / 4..2 * ROOM).contains(&filled.len()), "{} bytes", filled.len());
    }
}

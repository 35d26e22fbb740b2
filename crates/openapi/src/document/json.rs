//! Objects of JSON without room to spare, and about how long values are.

use gatewright_core::rmcp::model::JsonObject;
use serde_json::{Map, Value};

/// An object that takes no more memory than its members need.
pub(super) fn object(members: Vec<(String, Value)>) -> JsonObject {
    let mut object = Map::with_capacity(members.len());
    object.extend(members);
    object
}

/// Members up to which an object is searched from the start. To hash the key would take longer.
const FEW: usize = 8;

/// A member of an object.
pub(super) fn member<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    let members = value.as_object()?;
    match members.len() {
        0..=FEW => members.iter().find(|(name, _)| *name == key).map(|(_, value)| value),
        _ => members.get(key),
    }
}

/// About the bytes of a value as JSON.
pub(super) fn size_of_json(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 6,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| size_of_json(item) + 1).sum::<usize>(),
        Value::Object(members) => {
            2 + members.iter().map(|(key, value)| key.len() + 4 + size_of_json(value)).sum::<usize>()
        }
    }
}

/// Returns `true` if a value is at most `most` bytes long as JSON. Takes no longer than that.
pub(super) fn is_shorter(value: &Value, most: usize) -> bool {
    fn left(value: &Value, room: usize) -> Option<usize> {
        match value {
            Value::Array(items) => {
                items.iter().try_fold(room.checked_sub(2)?, |room, item| left(item, room.checked_sub(1)?))
            }
            Value::Object(members) => members.iter().try_fold(room.checked_sub(2)?, |room, (key, value)| {
                left(value, room.checked_sub(key.len() + 4)?)
            }),
            other => room.checked_sub(size_of_json(other)),
        }
    }
    left(value, most).is_some()
}

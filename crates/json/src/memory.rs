//! Memory that JSON takes once it is parsed.

use serde_json::Value;

/// A value, without what it refers to.
pub(crate) const VALUE: u64 = size_of::<Value>() as u64;
/// A member of an object: its key, its value and its hash.
const MEMBER: u64 = VALUE + size_of::<String>() as u64 + 8;
/// A member's place in the table of hashes.
const PLACE: u64 = 9;
/// Bytes that the text of a string takes beyond its own.
pub(crate) const TEXT: u64 = 16;

/// The memory of an array of so many items, without what they refer to.
pub(crate) fn array(items: u64) -> u64 {
    if items == 0 { 0 } else { items.next_power_of_two().max(4) * VALUE }
}

/// The memory of an object of so many members, without what they refer to.
pub(crate) fn object(members: u64) -> u64 {
    let places = match members {
        0 => return 0,
        1..=3 => 4,
        4..=7 => 8,
        more => (more * 8 / 7).next_power_of_two(),
    };
    (places - places.div_ceil(8)) * MEMBER + places * PLACE + TEXT
}

/// Memory of a JSON value, in bytes.
pub fn value_bytes(value: &Value) -> u64 {
    fn beyond(value: &Value) -> u64 {
        match value {
            Value::String(text) => text.len() as u64 + TEXT,
            Value::Array(items) => array(items.len() as u64) + items.iter().map(beyond).sum::<u64>(),
            Value::Object(members) => {
                let inner = members.iter().map(|(name, member)| name.len() as u64 + TEXT + beyond(member));
                object(members.len() as u64) + inner.sum::<u64>()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }
    VALUE + beyond(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_and_arrays_weigh_what_they_have_room_for() {
        let one = value_bytes(&json!({"a": 1}));
        assert!(one > 300 && value_bytes(&json!([1])) > 300 && value_bytes(&json!({})) < 100, "{one}");
        assert_eq!((object(5), array(5)), (7 * MEMBER + 8 * PLACE + TEXT, 8 * VALUE));
    }
}

//! Work of copying parts of schemas.

use serde_json::Value;

/// Bytes of texts and pointers that are copied as fast as a part is built.
pub(super) const BYTES_FOR_ONE: usize = 64;

/// Values in `value`, and bytes of their texts.
pub(super) fn weight(value: &Value) -> u64 {
    let of_member = |(name, value): (&String, &Value)| weight_of_text(name) - 1 + weight(value);
    match value {
        Value::Array(items) => 1 + items.iter().map(weight).sum::<u64>(),
        Value::Object(members) => 1 + members.iter().map(of_member).sum::<u64>(),
        Value::String(text) => weight_of_text(text),
        _ => 1,
    }
}

/// Work of copying a text.
pub(super) fn weight_of_text(text: &str) -> u64 {
    1 + (text.len() / BYTES_FOR_ONE) as u64
}

//! Memory that JSON takes once it is parsed, and the room that a caller has for an answer.

use std::{fmt, sync::Arc};

use serde_json::Value;

/// A value, without what it refers to.
const VALUE: u64 = size_of::<Value>() as u64;
/// A member of an object: its key, its value and its hash.
const MEMBER: u64 = VALUE + size_of::<String>() as u64 + 8;
/// A member's place in the table of hashes.
const PLACE: u64 = 9;
/// Bytes that the text of a string takes beyond its own.
const TEXT: u64 = 16;
/// Levels that are looked at. Deeper JSON is not parsed.
const DEEPEST: usize = 128;

/// Room for what is reserved, until it is dropped.
pub type Reserved = Box<dyn Send + Sync>;

/// Extension of a call's context: the memory that its answer may take once it is parsed.
#[derive(Clone)]
pub struct AnswerRoom(Arc<dyn Fn(u64) -> Result<Reserved, String> + Send + Sync>);

impl AnswerRoom {
    /// `reserve` takes a number of bytes, or returns why there is no room for them.
    pub fn new(reserve: impl Fn(u64) -> Result<Reserved, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(reserve))
    }

    /// Takes `bytes`.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn reserve(&self, bytes: u64) -> Result<Reserved, String> {
        (self.0)(bytes)
    }
}

impl fmt::Debug for AnswerRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerRoom")
    }
}

/// The memory of an array of so many items, without what they refer to.
fn array(items: u64) -> u64 {
    if items == 0 { 0 } else { items.next_power_of_two().max(4) * VALUE }
}

/// The memory of an object of so many members, without what they refer to.
fn object(members: u64) -> u64 {
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

/// Memory of the values in a JSON text once they are parsed, in bytes, found in one pass that builds nothing. Of a text that is not
/// JSON, any number.
pub fn parsed_bytes(json: &[u8]) -> u64 {
    let (mut bytes, mut open, mut depth) = (VALUE, [0_u64; DEEPEST], 0_usize);
    let (mut before, mut at) = (b' ', 0);
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => {
                let length = string(&json[at + 1..]);
                bytes += length as u64 + TEXT;
                at += length + 1;
            }
            b'[' | b'{' if depth == DEEPEST => return bytes,
            b'[' | b'{' => {
                open[depth] = 0;
                depth += 1;
            }
            b',' if depth > 0 => open[depth - 1] += 1,
            b']' | b'}' if depth > 0 => {
                depth -= 1;
                let parts = if matches!(before, b'[' | b'{') { 0 } else { open[depth] + 1 };
                bytes += if *byte == b']' { array(parts) } else { object(parts) };
            }
            b' ' | b'\n' | b'\r' | b'\t' => {
                at += 1;
                continue;
            }
            _ => {}
        }
        before = *byte;
        at += 1;
    }
    bytes
}

/// Bytes of a string before its closing quote.
fn string(json: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_weighs_what_its_values_do() {
        for value in [
            json!(7),
            json!("text, [with] {brackets}"),
            json!([]),
            json!({}),
            json!([1, [2, []], {}, {"a": 1}]),
            json!({"rows": vec![json!({"id": 1, "name": "a", "tags": ["x", null]}); 100]}),
            (0..1_000).map(|n| (format!("k{n}"), json!(n))).collect(),
        ] {
            let texts = [value.to_string(), serde_json::to_string_pretty(&value).unwrap()];
            for text in texts {
                assert_eq!(parsed_bytes(text.as_bytes()), value_bytes(&value), "{text}");
            }
        }
    }

    #[test]
    fn objects_and_arrays_weigh_what_they_have_room_for() {
        let one = value_bytes(&json!({"a": 1}));
        assert!(one > 300 && value_bytes(&json!([1])) > 300 && value_bytes(&json!({})) < 100, "{one}");
        assert_eq!((object(5), array(5)), (7 * MEMBER + 8 * PLACE + TEXT, 8 * VALUE));
    }

    #[test]
    fn texts_that_are_not_json_weigh_something() {
        for text in ["", "]]}", "\"", "\"\\", "[[[", "{]", ",,"] {
            assert!(parsed_bytes(text.as_bytes()) >= VALUE, "{text}");
        }
        parsed_bytes("[".repeat(1_000_000).as_bytes());
    }
}

//! JSON objects read strictly: a member that occurs twice is an error, not a choice of the reader.

use gatewright_core::{count_values, read_unique};
use serde_json::{Map, Value};

/// A reason to reject a text that should be a JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAnObject {
    /// The text is not JSON, or holds another value than an object.
    Malformed,
    /// An object in it names a member twice.
    Repeated,
}

/// Reads an object none of whose objects, at any depth, names a member twice.
pub(crate) fn object(text: &[u8]) -> Result<Map<String, Value>, NotAnObject> {
    count_values(text, usize::MAX).map_err(|_| NotAnObject::Malformed)?;
    match read_unique(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(NotAnObject::Malformed),
        // Every value is accepted, so the only data error is a repeated member.
        Err(error) if error.is_data() => Err(NotAnObject::Repeated),
        Err(_) => Err(NotAnObject::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_reads_as_it_would_without_the_check() {
        let text = r#"{"a": [1, -2, 3.5, "x\u00e9", null, true, {"b": {}}], "c": 18446744073709551615}"#;
        let plain: Value = serde_json::from_str(text).unwrap();
        assert_eq!(Value::Object(object(text.as_bytes()).unwrap()), plain);
    }

    #[test]
    fn a_repeated_member_at_any_depth_is_told_from_a_text_that_is_no_object() {
        for text in [r#"{"a": 1, "a": 1}"#, r#"{"x": [{"a": 1, "\u0061": 2}]}"#] {
            assert_eq!(object(text.as_bytes()), Err(NotAnObject::Repeated), "{text}");
        }
        for text in ["", "[]", "null", "{", r#"{"a": 1e999}"#, "{} {}", "\u{0}"] {
            assert_eq!(object(text.as_bytes()), Err(NotAnObject::Malformed), "{text}");
        }
    }
}

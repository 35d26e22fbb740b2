//! JSON objects read strictly: a member that occurs twice is an error, not a choice of the reader.

use std::fmt;

use gatewright_core::count_values;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
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
    match serde_json::from_slice(text) {
        Ok(Unique(Value::Object(object))) => Ok(object),
        Ok(Unique(_)) => Err(NotAnObject::Malformed),
        // Every value is accepted, so the only data error is the one below.
        Err(error) if error.is_data() => Err(NotAnObject::Repeated),
        Err(_) => Err(NotAnObject::Malformed),
    }
}

struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Self)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((name, Unique(value))) = members.next_entry::<String, Unique>()? {
            if object.insert(name, value).is_some() {
                return Err(A::Error::custom("a member occurs twice"));
            }
        }
        Ok(object.into())
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

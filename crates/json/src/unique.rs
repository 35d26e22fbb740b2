//! JSON in which no object names a key twice: readers of such a text disagree on which value counts.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads a JSON text whose objects name each key once. The error of a repeated key has its path and its line.
///
/// # Errors
/// The text is not JSON, or a key is repeated, which is a data error ([`serde_json::Error::is_data`]).
pub fn read_unique(text: &[u8]) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Place::Root.deserialize(&mut reader)?;
    reader.end().map(|()| value)
}

/// The place of a value in its text.
#[derive(Clone, Copy)]
enum Place<'p> {
    Root,
    Key(&'p Place<'p>, &'p str),
    Item(&'p Place<'p>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Self::Root, key) => f.write_str(key),
            Self::Key(around, key) => write!(f, "{around}.{key}"),
            Self::Item(around, at) => write!(f, "{around}[{at}]"),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
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
        while let Some(item) = items.next_element_seed(Place::Item(&self, list.len()))? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let place = Place::Key(&self, &key);
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key `{place}` is there twice")));
            }
            let value = members.next_value_seed(place)?;
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_reads_as_it_would_without_the_check() {
        for text in [
            r#"{"a": [1, -2, 3.5, "x\u00e9", null, true, {"b": {}}], "c": 18446744073709551615}"#,
            "\t[{\"a\": 1},\t{\"a\": 1}]\n",
            "null",
            "\"a\"",
        ] {
            assert_eq!(read_unique(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        }
        for text in ["", "{", "{} {}", "\u{0}", &"[".repeat(1_000)] {
            assert!(!read_unique(text.as_bytes()).unwrap_err().is_data(), "{text}");
        }
    }

    #[test]
    fn a_repeated_key_is_named_with_its_path_and_line() {
        for (text, path, line) in [
            ("{\"a\": 1,\n\"a\": 1}", "a", 2),
            ("{\"x\": [1,\n {\"y\": {\"a\": 1,\n \"\\u0061\": {}}}]}", "x[1].y.a", 3),
        ] {
            let error = read_unique(text.as_bytes()).unwrap_err();
            assert!(
                error.is_data() && error.to_string().contains(&format!("the key `{path}` is there twice"))
            );
            assert_eq!(error.line(), line, "{error}");
        }
    }
}

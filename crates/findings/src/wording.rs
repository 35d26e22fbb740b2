//! Advice in place of messages of parsers and validators.

use jsonschema::{error::TypeKind, types::JsonType};
use serde_json::Value;

/// Longest value that is shown, in bytes: nothing so short is a secret.
const SHOWN: usize = 3;

/// The type that a value must have, and how to write it; `None` for alternatives. `schema` is that of the value.
pub(crate) fn wrong_type(kind: &TypeKind, value: &Value, schema: &Value) -> Option<String> {
    let expected = match kind {
        TypeKind::Single(one) => *one,
        TypeKind::Multiple(set) => {
            let mut all = set.iter().filter(|one| *one != JsonType::Null);
            all.next().filter(|_| all.next().is_none())?
        }
    };
    let is_number = |text: &str| text.trim().parse::<f64>().is_ok();
    Some(match (expected, value) {
        (JsonType::Array, Value::String(text)) if text.len() <= SHOWN => {
            format!("must be a list, even of one value: write `[{text:?}]`")
        }
        (JsonType::Array, Value::String(_) | Value::Number(_) | Value::Bool(_)) => {
            "must be a list, even of one value: write it in brackets".to_owned()
        }
        (JsonType::Array, _) => "must be a list, such as `[\"a\", \"b\"]`".to_owned(),
        (JsonType::String, Value::Number(number)) if is_duration(schema) => {
            format!("must be a duration with its unit, such as `{number}s`")
        }
        (JsonType::String, Value::Number(_) | Value::Bool(_)) => "must be text: put it in quotes".to_owned(),
        (JsonType::String, _) => "must be text".to_owned(),
        (JsonType::Integer, Value::String(text)) if is_number(text) => {
            "must be a whole number, without quotes".to_owned()
        }
        (JsonType::Integer, _) => "must be a whole number".to_owned(),
        (JsonType::Number, Value::String(text)) if is_number(text) => {
            "must be a number, without quotes".to_owned()
        }
        (JsonType::Number, _) => "must be a number".to_owned(),
        (JsonType::Boolean, Value::String(_)) => "must be `true` or `false`, without quotes".to_owned(),
        (JsonType::Boolean, _) => "must be `true` or `false`".to_owned(),
        (JsonType::Object, Value::Null) => "must be a section with keys of its own; it is empty".to_owned(),
        (JsonType::Object, _) => "must be a section with keys of its own".to_owned(),
        (JsonType::Null, _) => return None,
    })
}

/// Durations are texts for a schema: their default or their description shows one.
fn is_duration(schema: &Value) -> bool {
    let begins_with_digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    let shown =
        text("description").split_once("such as `").is_some_and(|(_, shown)| begins_with_digit(shown));
    shown || begins_with_digit(text("default"))
}

/// The message of a parser of YAML, JSON or TOML without the place, which is known, and without the options of its library.
pub fn parser_problem(message: &str) -> &str {
    let ends = [" at line ", ", set ", "; set ", "; use ", ", use "];
    let message = message.trim();
    ends.iter().fold(message, |left, end| left.split_once(end).map_or(left, |(left, _)| left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parser_is_quoted_without_its_options_and_its_place() {
        for (message, told) in [
            (
                "duplicate mapping key: a, set DuplicateKeyPolicy in Options if acceptable at line 2, column 1",
                "duplicate mapping key: a",
            ),
            (
                "multiple YAML documents detected; use from_str_multiple or from_str_multiple_with_options at line 3, column 1",
                "multiple YAML documents detected",
            ),
            ("trailing comma at line 1 column 9", "trailing comma"),
            (
                "string values must be quoted, expected literal string",
                "string values must be quoted, expected literal string",
            ),
        ] {
            assert_eq!(parser_problem(message), told);
        }
    }
}

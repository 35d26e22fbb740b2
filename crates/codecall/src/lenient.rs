//! Inputs of the meta-tools as language models write them: a lone text for a list, JSON text for an object, `"5"` for a number,
//! `false` and null for what is not given. Each has one meaning only, so it is read and not refused.

use gatewright_core::{read_unique, rmcp::model::JsonObject};
use gatewright_json::{measure, weight};
use serde_json::{Number, Value};

/// Longest JSON text that is read as a list or an object, in bytes, and its keys and values: the limits of a message count a text as one value.
const MOST_BYTES: usize = 64 * 1024;
const MOST_VALUES: usize = 4_000;

/// Turns the members of `input` into the types that the properties of `schema` have. What has no clear meaning stays as it is, for the
/// schema to refuse.
pub(crate) fn read_as(schema: &JsonObject, input: &mut JsonObject) {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|own| own == name));
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (name, part) in properties {
        let (Some(part), Some(value)) = (part.as_object(), input.get_mut(name)) else { continue };
        if !is_required(name) && is_not_given(part, value) {
            input.shift_remove(name);
            continue;
        }
        if let Some(read) = value.as_str().and_then(|text| of_text(part, text)) {
            *value = read;
        }
        if let Value::Object(inner) = value {
            read_as(part, inner);
        }
    }
}

/// Returns `true` for a value that says that an optional parameter is not given: null, or `false` where there is nothing to turn off.
fn is_not_given(schema: &JsonObject, value: &Value) -> bool {
    let is_false = *value == Value::Bool(false) || value == "false";
    value.is_null() || is_false && schema.contains_key("enum")
}

/// The value of `text` where `schema` wants another type.
fn of_text(schema: &JsonObject, text: &str) -> Option<Value> {
    let allows_true = || {
        let values = schema.get("enum").and_then(Value::as_array);
        values.is_some_and(|values| values.contains(&Value::Bool(true)))
    };
    match schema.get("type").and_then(Value::as_str) {
        Some("number") => number(text),
        Some("boolean") => boolean(text),
        Some("object") => json(text).filter(Value::is_object),
        Some("array") => {
            let is_list = text.trim_ascii_start().starts_with('[');
            if is_list { json(text).filter(Value::is_array) } else { Some(vec![text].into()) }
        }
        None if text == "true" && allows_true() => Some(true.into()),
        _ => None,
    }
}

fn number(text: &str) -> Option<Value> {
    serde_json::from_str::<Number>(text.trim_ascii()).ok().map(Value::Number)
}

fn boolean(text: &str) -> Option<Value> {
    match text {
        "true" => Some(true.into()),
        "false" => Some(false.into()),
        _ => None,
    }
}

/// The list or object in `text`, within the limits of a message: each key once, and no integer that would be rounded.
fn json(text: &str) -> Option<Value> {
    if text.len() > MOST_BYTES || weight(text).is_err() {
        return None;
    }
    let measured = measure(text.as_bytes(), MOST_VALUES).ok()?;
    measured.rounded_integer.is_none().then(|| read_unique(text.as_bytes()).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(mut input: Value) -> Value {
        let schema = json!({"properties": {
            "number": {"type": "number"}, "list": {"type": "array"}, "object": {"type": "object"},
            "switch": {"type": "boolean"}, "dryRun": {"enum": [true, "offline"]}, "text": {"type": "string"},
            "must": {"type": "object"},
            "filter": {"type": "object", "properties": {"ids": {"type": "array"}}}},
            "required": ["must"]});
        read_as(schema.as_object().unwrap(), input.as_object_mut().unwrap());
        input
    }

    #[test]
    fn texts_become_the_type_of_their_parameter() {
        for (input, expected) in [
            (json!({"number": "5"}), json!({"number": 5})),
            (json!({"list": "git:git_log"}), json!({"list": ["git:git_log"]})),
            (json!({"list": " [\"a\", \"b\"]"}), json!({"list": ["a", "b"]})),
            (json!({"object": "{}"}), json!({"object": {}})),
            (json!({"must": "{\"a\": 1.5}"}), json!({"must": {"a": 1.5}})),
            (json!({"filter": "{\"ids\": \"crm\"}"}), json!({"filter": {"ids": ["crm"]}})),
            (json!({"filter": {"ids": "crm"}}), json!({"filter": {"ids": ["crm"]}})),
            (json!({"switch": "true", "dryRun": "true"}), json!({"switch": true, "dryRun": true})),
        ] {
            assert_eq!(read(input.clone()), expected, "{input}");
        }
    }

    #[test]
    fn null_and_a_rehearsal_that_is_false_are_not_given() {
        assert_eq!(read(json!({"dryRun": false, "number": null, "switch": false})), json!({"switch": false}));
        assert_eq!(read(json!({"dryRun": "false", "must": null})), json!({"must": null}));
    }

    #[test]
    fn what_has_no_clear_meaning_is_left_to_the_schema() {
        let many = format!("[{}0]", "0,".repeat(MOST_VALUES));
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(100), "]".repeat(100));
        for input in [
            json!({"number": "five", "list": "[1", "object": "a", "switch": "yes", "dryRun": "maybe"}),
            json!({"object": "[1]", "must": "null", "list": 5, "text": "{}", "other": "5"}),
            json!({"object": "{\"a\": 1, \"a\": 2}", "must": "{\"id\": 123456789012345678901}"}),
            json!({"list": many, "object": deep}),
            json!({"list": format!("[\"{}\"]", "a".repeat(MOST_BYTES))}),
            json!({"object": "{\"$serde_json::private::RawValue\": \"1\"}"}),
        ] {
            assert_eq!(read(input.clone()), input);
        }
    }
}

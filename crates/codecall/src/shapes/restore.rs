//! Numbers that scripts have as text, turned back into numbers where a tool's input schema wants one.

use gatewright_core::rmcp::model::JsonObject;
use gatewright_shape::loses_digits;
use serde_json::{Number, Value};

/// Levels of an input that are looked at.
const DEEPEST: usize = 8;

/// Turns texts such as `9007199254740993` and `1.10` in `arguments` into numbers where `schema` allows a number and no text.
pub(crate) fn restore_numbers(arguments: &mut JsonObject, schema: &JsonObject) {
    members(arguments, schema, DEEPEST);
}

fn members(arguments: &mut JsonObject, schema: &JsonObject, levels: usize) {
    let Some(Value::Object(properties)) = schema.get("properties") else { return };
    for (name, value) in arguments {
        if let Some(Value::Object(schema)) = properties.get(name) {
            restore(value, schema, levels);
        }
    }
}

fn restore(value: &mut Value, schema: &JsonObject, levels: usize) {
    match value {
        Value::String(text) if wants_number(schema) => {
            if let Some(number) = number(text) {
                *value = Value::Number(number);
            }
        }
        Value::Object(inner) if levels > 0 => members(inner, schema, levels - 1),
        Value::Array(items) if levels > 0 => {
            if let Some(Value::Object(schema)) = schema.get("items") {
                items.iter_mut().for_each(|item| restore(item, schema, levels - 1));
            }
        }
        _ => {}
    }
}

fn wants_number(schema: &JsonObject) -> bool {
    let is_number = |kind: &Value| kind == "integer" || kind == "number";
    match schema.get("type") {
        Some(Value::Array(kinds)) => {
            kinds.iter().any(is_number) && !kinds.iter().any(|kind| kind == "string")
        }
        Some(kind) => is_number(kind),
        None => false,
    }
}

/// The number with these digits, if it can be sent with all of them.
fn number(text: &str) -> Option<Number> {
    if !loses_digits(text) {
        return None;
    }
    if let Ok(number) = serde_json::from_str::<Number>(text)
        && !number.is_f64()
    {
        return Some(number);
    }
    let shorter = text.contains('.').then(|| text.trim_end_matches('0').trim_end_matches('.'))?;
    (!loses_digits(shorter)).then(|| serde_json::from_str(shorter).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_of_long_numbers_become_numbers_where_the_schema_wants_one_and_nothing_else_does() {
        let schema = json!({"properties": {
            "id": {"type": "integer"},
            "price": {"type": ["number", "null"]},
            "name": {"type": "string"},
            "either": {"type": ["integer", "string"]},
            "ids": {"type": "array", "items": {"type": "integer"}},
            "in": {"properties": {"id": {"type": "integer"}}},
        }});
        let long = "9007199254740993";
        let arguments = json!({"id": long, "price": "1.10", "name": long, "either": long, "ids": [long, "7", "x"],
            "in": {"id": long}, "unknown": long});
        let Value::Object(mut arguments) = arguments else { panic!() };
        restore_numbers(&mut arguments, schema.as_object().unwrap());
        let number = 9_007_199_254_740_993_u64;
        assert_eq!(
            Value::Object(arguments),
            json!({"id": number, "price": 1.1, "name": long, "either": long, "ids": [number, "7", "x"],
                "in": {"id": number}, "unknown": long})
        );
    }

    #[test]
    fn digits_that_cannot_be_sent_stay_text() {
        for text in ["12345678901234567890123", "0.12345678901234567890", "1e400", "7", "1.5"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}

//! Partial comparison of JSON, for mocked requests and HTTP bodies.

use serde_json::Value;

/// Returns true if `actual` contains everything in `expected`: objects may have more keys, at any depth; arrays must have the
/// same length and match item by item; other values must be equal. Numbers are compared by value, so `1` equals `1.0`.
pub fn is_subset(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            expected.iter().all(|(key, value)| actual.get(key).is_some_and(|found| is_subset(value, found)))
        }
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| is_subset(expected, actual))
        }
        (Value::Number(expected), Value::Number(actual)) => {
            expected == actual || expected.as_f64() == actual.as_f64()
        }
        (expected, actual) => expected == actual,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_match_by_subset_and_arrays_item_by_item() {
        let actual = json!({"a": {"b": 1, "c": 2}, "d": [{"e": 1, "f": 2}, 3]});
        assert!(is_subset(&json!({"a": {"b": 1.0}}), &actual));
        assert!(is_subset(&json!({"d": [{"e": 1}, 3]}), &actual));
        assert!(!is_subset(&json!({"d": [{"e": 1}]}), &actual));
        assert!(!is_subset(&json!({"a": {"x": null}}), &actual));
        assert!(!is_subset(&json!({"a": 1}), &json!([1])));
    }
}

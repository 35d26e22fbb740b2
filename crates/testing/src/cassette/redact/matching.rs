//! Compares a request with a recorded one, in which `[redacted]` stands for any text.

use serde_json::Value;

use super::REDACTED;

/// True if the recorded value is the actual one, with any scalar or text in place of a secret.
pub(crate) fn same_json(recorded: &Value, actual: &Value) -> bool {
    match (recorded, actual) {
        (Value::Object(recorded), Value::Object(actual)) => {
            recorded.len() == actual.len()
                && recorded
                    .iter()
                    .all(|(key, value)| actual.get(key).is_some_and(|found| same_json(value, found)))
        }
        (Value::Array(recorded), Value::Array(actual)) => {
            recorded.len() == actual.len()
                && recorded.iter().zip(actual).all(|(recorded, actual)| same_json(recorded, actual))
        }
        (Value::String(recorded), Value::String(actual)) => same_text(recorded, actual),
        (Value::String(recorded), Value::Number(_)) => recorded == REDACTED,
        (recorded, actual) => recorded == actual,
    }
}

/// True if the recorded text is the actual one, with any text in place of a secret.
pub(crate) fn same_text(recorded: &str, actual: &str) -> bool {
    // How forms were redacted once.
    let recorded = recorded.replace("%5Bredacted%5D", REDACTED);
    let mut parts = recorded.split(REDACTED);
    let (first, rest) = (parts.next().unwrap_or_default(), parts.collect::<Vec<_>>());
    let Some((last, middle)) = rest.split_last() else { return recorded == actual };
    let Some(actual) = actual.strip_prefix(first) else { return false };
    let Some(mut actual) = actual.strip_suffix(last) else { return false };
    for part in middle {
        match actual.find(part) {
            Some(at) => actual = &actual[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// As [`same_text`]; JSON is compared as JSON.
#[cfg(feature = "http-mock")]
pub(crate) fn same_body(recorded: &str, actual: &str) -> bool {
    let json = |text: &str| serde_json::from_str::<Value>(text).ok();
    match (json(recorded), json(actual)) {
        (Some(recorded), Some(actual)) => same_json(&recorded, &actual),
        _ => same_text(recorded, actual),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_redacted_place_matches_any_secret_and_nothing_else() {
        assert!(same_text("a [redacted] b [redacted]", "a one b two"));
        assert!(!same_text("a [redacted] b", "a one c"));
        assert!(same_text("?api_key=%5Bredacted%5D&q=1", "?api_key=k&q=1"));
        assert!(!same_text("?api_key=[redacted]&q=1", "?api_key=k&q=2"));
        let recorded = json!({"pin": "[redacted]", "n": 1, "list": ["x [redacted]"]});
        assert!(same_json(&recorded, &json!({"list": ["x y"], "pin": 1234, "n": 1})));
        assert!(!same_json(&recorded, &json!({"list": ["x y"], "pin": 1234, "n": 2})));
        assert!(!same_json(&recorded, &json!({"list": ["x y"], "pin": 1234, "n": 1, "more": 0})));
    }
}

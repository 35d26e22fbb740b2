//! Differences of two JSON values, path by path.

use serde_json::Value;

use crate::base::{json::is_subset, text::shorten};

/// Lists the paths at which `actual` lacks or contradicts `expected`, one line each. Further keys in `actual` are ignored, as in
/// [`is_subset`](crate::is_subset).
pub fn json_diff(expected: &Value, actual: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("$", expected, actual, false, &mut lines);
    lines
}

/// The same with further keys in `actual`, which are differences here.
pub(super) fn exact_diff(expected: &Value, actual: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    compare("$", expected, actual, true, &mut lines);
    lines
}

fn compare(path: &str, expected: &Value, actual: &Value, exact: bool, lines: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            let further = actual.iter().filter(|(key, _)| exact && !expected.contains_key(*key));
            for (key, value) in further {
                let value = shorten(&value.to_string(), 200);
                lines.push(format!("{path}.{key}: is not expected, is {value}"));
            }
            for (key, value) in expected {
                let path = format!("{path}.{key}");
                match actual.get(key) {
                    Some(found) => compare(&path, value, found, exact, lines),
                    None => {
                        let keys = actual.keys().map(String::as_str);
                        let nearest = gatewright_findings::nearest(key, keys);
                        let hint = nearest.map(|near| format!(" (there is `{near}`)")).unwrap_or_default();
                        lines.push(format!("{path}: expected {value}, is missing{hint}"));
                    }
                }
            }
        }
        (Value::Array(expected), Value::Array(actual)) => {
            for (at, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                compare(&format!("{path}[{at}]"), expected, actual, exact, lines);
            }
            if expected.len() != actual.len() {
                lines.push(format!("{path}: expected {} items, there are {}", expected.len(), actual.len()));
            }
        }
        (expected, actual) if is_subset(expected, actual) => {}
        (expected, actual) => {
            let actual = shorten(&actual.to_string(), 200);
            lines.push(format!("{path}: expected {expected}, is {actual}"));
        }
    }
}

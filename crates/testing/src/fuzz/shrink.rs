//! Smaller inputs.

use serde_json::{Value, json};

/// Inputs that are smaller than `value` in one place, the smallest first.
pub(super) fn smaller(value: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    match value {
        Value::Object(object) => {
            for key in object.keys() {
                let mut less = object.clone();
                less.shift_remove(key);
                found.push(Value::Object(less));
            }
            for (key, inner) in object {
                for inner in smaller(inner) {
                    let mut changed = object.clone();
                    changed.insert(key.clone(), inner);
                    found.push(Value::Object(changed));
                }
            }
        }
        Value::Array(items) => {
            found.push(json!([]));
            if items.len() > 1 {
                found.push(Value::Array(items[..1].to_vec()));
                found.push(Value::Array(items[..items.len() / 2].to_vec()));
            }
            if let [only] = items.as_slice() {
                found.extend(smaller(only).into_iter().map(|inner| Value::Array(vec![inner])));
            }
        }
        Value::String(text) if !text.is_empty() => {
            let count = text.chars().count();
            found.push(json!(""));
            if count > 1 {
                found.push(json!("a"));
                found.push(json!(text.chars().take(count / 2).collect::<String>()));
            }
        }
        Value::Number(number) if number.as_f64() != Some(0.0) => found.push(json!(0)),
        _ => {}
    }
    found.retain(|one| one != value);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leads_to_the_smallest_input_that_still_fails() {
        let fails = |value: &Value| value["a"].as_str().is_some_and(|text| text.len() >= 3);
        let mut input = json!({"a": "abcdefghijkl", "b": [1, 2, 3], "c": {"d": "e"}});
        while let Some(less) = smaller(&input).into_iter().find(fails) {
            input = less;
        }
        assert_eq!(input, json!({"a": "abc"}));
    }
}

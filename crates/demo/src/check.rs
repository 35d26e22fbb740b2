//! Checks arguments against a tool's input schema.
//!
//! Knows only the keywords the demo schemas use, which a test of the tables proves; it is no
//! general validator.

use serde_json::{Map, Value};

use crate::dataset::is_date;

/// The first thing wrong with `arguments`, in words that say how to put it right.
pub(crate) fn problem(schema: &Map<String, Value>, arguments: &Map<String, Value>) -> Option<String> {
    object(schema, arguments, "")
}

fn object(schema: &Map<String, Value>, given: &Map<String, Value>, path: &str) -> Option<String> {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if !given.contains_key(name) {
            return Some(format!("'{path}{name}' is required."));
        }
    }
    for (name, value) in given {
        let at = format!("{path}{name}");
        let Some(rules) = properties.get(name).and_then(Value::as_object) else {
            let known: Vec<&str> = properties.keys().map(String::as_str).collect();
            return Some(match known.is_empty() {
                true => format!("'{at}' is not an argument of this tool, which takes none."),
                false => format!("'{at}' is not known here. Known are: {}.", known.join(", ")),
            });
        };
        if let Some(wrong) = one(rules, value, &at) {
            return Some(wrong);
        }
    }
    None
}

fn one(rules: &Map<String, Value>, value: &Value, at: &str) -> Option<String> {
    let wanted = rules.get("type").and_then(Value::as_str).unwrap_or_default();
    let bound = |name: &str| rules.get(name).and_then(Value::as_u64);
    match (wanted, value) {
        ("string", Value::String(text)) => string(rules, text, at),
        ("boolean", Value::Bool(_)) => None,
        ("integer", Value::Number(number)) => {
            let least = bound("minimum").unwrap_or(0);
            let most = bound("maximum").unwrap_or(u64::from(u32::MAX));
            match number.as_u64() {
                Some(n) if (least..=most).contains(&n) => None,
                _ => Some(format!("'{at}' must be a whole number from {least} to {most}, not {number}.")),
            }
        }
        ("array", Value::Array(items)) => {
            if items.len() < bound("minItems").unwrap_or(0) as usize {
                return Some(format!("'{at}' must not be empty."));
            }
            let rules = rules.get("items").and_then(Value::as_object)?;
            items.iter().enumerate().find_map(|(n, item)| one(rules, item, &format!("{at}[{n}]")))
        }
        ("object", Value::Object(given)) => object(rules, given, &format!("{at}.")),
        _ => Some(format!("'{at}' must be of type {wanted}.")),
    }
}

fn string(rules: &Map<String, Value>, text: &str, at: &str) -> Option<String> {
    if let Some(values) = rules.get("enum").and_then(Value::as_array)
        && !values.iter().any(|value| value == text)
    {
        let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        return Some(format!("'{at}' must be one of: {}. '{text}' is not.", values.join(", ")));
    }
    if rules.contains_key("minLength") && text.trim().is_empty() {
        return Some(format!("'{at}' must not be empty."));
    }
    let most = rules.get("maxLength").and_then(Value::as_u64);
    if most.is_some_and(|most| text.chars().count() as u64 > most) {
        return Some(format!("'{at}' is longer than {} characters.", most.unwrap_or_default()));
    }
    match rules.get("format").and_then(Value::as_str) {
        Some("email") if !is_email(text) => {
            Some(format!("'{at}' must be an e-mail address such as ada@example.com. '{text}' is not."))
        }
        Some("date") if !is_date(text) => {
            Some(format!("'{at}' must be a day written YYYY-MM-DD. '{text}' is not."))
        }
        _ => None,
    }
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else {
        return false;
    };
    let plain = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric() || ".-_+".contains(c));
    let dotted = |part: &str| part.split('.').all(|label| !label.is_empty());
    plain(local) && dotted(local) && plain(domain) && dotted(domain) && domain.contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_has_one_at_sign_and_a_dotted_domain() {
        for right in ["a@b.co", "ada.l+x@example.com"] {
            assert!(is_email(right), "{right}");
        }
        for wrong in ["", "ada", "ada@", "@b.co", "a@b", "a@@b.co", "a b@c.de", "a@b..co"] {
            assert!(!is_email(wrong), "{wrong}");
        }
    }
}

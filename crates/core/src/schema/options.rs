//! The sentence about a value that is none of the options of an `enum`: it names them, those that are near first.

use serde_json::Value;

use crate::names::likeness;

/// Options that are named, and their bytes in all.
const MOST_NAMED: usize = 20;
const MOST_BYTES: usize = 600;
/// Longest value and longest option that is named, in bytes.
const LONGEST: usize = 100;
/// Options that the value is compared with: time grows with their number.
const MOST_COMPARED: usize = 1_000;
/// Least likeness of an option that is named before the others.
const ENOUGH: f64 = 0.75;

/// The sentence for `value`; `None` if it or all options are too long to be named.
pub(super) fn not_one_of(value: &Value, options: &Value) -> Option<String> {
    let options = options.as_array()?;
    let value_text = named(value)?;
    let wanted = value.as_str().map(str::to_lowercase);
    let near = |option: &Value| match (&wanted, option.as_str()) {
        (Some(wanted), Some(option)) => {
            Some(likeness(wanted, &option.to_lowercase())).filter(|it| *it >= ENOUGH)
        }
        _ => None,
    };
    let short = options.iter().take(MOST_COMPARED).filter(|option| is_short(option));
    let mut ranked: Vec<(f64, &Value)> =
        short.map(|option| (near(option).unwrap_or_default(), option)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut left = MOST_BYTES;
    let fits = |text: &String| left.checked_sub(text.len()).map(|rest| left = rest).is_some();
    let ranked = ranked.into_iter().take(MOST_NAMED);
    let mut names: Vec<String> = ranked.filter_map(|(_, option)| named(option)).take_while(fits).collect();
    let last = match options.len() - names.len() {
        0 => names.pop()?,
        _ if names.is_empty() => return None,
        1 => "1 other".to_owned(),
        others => format!("{others} others"),
    };
    let or = if names.is_empty() { "" } else { " or " };
    Some(format!("{value_text} is not one of {}{or}{last}", names.join(", ")))
}

fn named(value: &Value) -> Option<String> {
    is_short(value).then(|| value.to_string())
}

fn is_short(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= LONGEST,
        Value::Array(_) | Value::Object(_) => false,
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_are_named_and_those_that_are_near_come_first() {
        for (value, options, expected) in [
            (json!("pie"), json!(["bar", "line"]), "\"pie\" is not one of \"bar\" or \"line\""),
            (json!("x"), json!(["a"]), "\"x\" is not one of \"a\""),
            (
                json!("barchart"),
                json!(["column", "line", "pie", "bar", "area"]),
                "\"barchart\" is not one of \"bar\", \"column\", \"line\", \"pie\" or \"area\"",
            ),
            (json!("Closed"), json!(["open", "closed"]), "\"Closed\" is not one of \"closed\" or \"open\""),
            (json!(4), json!([1, "2", null]), "4 is not one of 1, \"2\" or null"),
            (json!("x"), json!(["a", {"b": 1}]), "\"x\" is not one of \"a\" or 1 other"),
        ] {
            assert_eq!(not_one_of(&value, &options).as_deref(), Some(expected));
        }
    }

    #[test]
    fn few_of_many_options_are_named_and_no_long_ones() {
        let options: Vec<Value> = (0..500).map(|n| json!(format!("option {n}"))).collect();
        let sentence = not_one_of(&json!("optoin 499"), &options.into()).unwrap();
        assert!(sentence.starts_with("\"optoin 499\" is not one of \"option 499\", "), "{sentence}");
        assert!(sentence.ends_with(" or 480 others"), "{sentence}");
        let long: Vec<Value> = (0..9).map(|n| json!(format!("{n}{}", "é".repeat(45)))).collect();
        let sentence = not_one_of(&json!(1), &long.into()).unwrap();
        assert!(sentence.len() < MOST_BYTES + LONGEST && sentence.ends_with(" or 3 others"), "{sentence}");
        let too_long = json!(["a".repeat(LONGEST + 1), [1]]);
        assert_eq!(not_one_of(&json!(1), &too_long), None);
        assert_eq!(not_one_of(&too_long[0], &json!([1])), None);
    }
}

//! The values of a configuration file, variables filled in, to compare two versions of it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::shown;

/// The file as one object. It contains secrets: no `Debug`, no `Display`.
#[derive(Clone, Default, PartialEq)]
pub struct Source {
    value: Value,
    /// Pointers of values that variables filled in.
    filled: BTreeSet<String>,
}

impl Source {
    pub(super) fn of(value: &Value, filled: BTreeSet<String>) -> Self {
        Self { value: value.clone(), filled }
    }

    /// The keys with their values, sorted, for people: without secrets, and without what variables filled in.
    pub fn shown(&self) -> Vec<(String, String)> {
        shown::shown(&self.value, &self.filled)
    }

    /// The same with the contents of policy files: they count as a part of `policies`.
    pub(super) fn with_policies(mut self, texts: &[String]) -> Self {
        if let Some(policies) = self.value.get_mut("policies").and_then(Value::as_array_mut) {
            policies.extend(texts.iter().map(|text| Value::from(text.as_str())));
        }
        self
    }

    /// The same with the text of the file of pins, as the part `pins`.
    pub(super) fn with_pins(mut self, text: &str) -> Self {
        if let Some(file) = self.value.as_object_mut() {
            file.insert("pins".to_owned(), text.into());
        }
        self
    }

    /// The paths, such as `http.port`, whose values differ. Lists count as one value. Sorted.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut paths = Vec::new();
        compare(&self.value, &other.value, "", &mut paths);
        paths.sort_unstable();
        paths
    }
}

fn compare(a: &Value, b: &Value, path: &str, paths: &mut Vec<String>) {
    if a == b {
        return;
    }
    let empty = Map::new();
    let (a, b) = match (a, b) {
        (Value::Object(a), Value::Object(b)) => (a, b),
        (Value::Object(a), Value::Null) if !a.is_empty() => (a, &empty),
        (Value::Null, Value::Object(b)) if !b.is_empty() => (&empty, b),
        _ => {
            paths.push(path.to_owned());
            return;
        }
    };
    let more = b.keys().filter(|key| !a.contains_key(*key));
    for key in a.keys().chain(more) {
        let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let value = |object: &Map<String, Value>| object.get(key).cloned().unwrap_or_default();
        compare(&value(a), &value(b), &below, paths);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn source(value: Value) -> Source {
        Source::of(&value, BTreeSet::new())
    }

    #[test]
    fn differences_are_named_at_the_deepest_place_that_both_can_have() {
        let old = source(json!({"http": {"port": 1, "path": "/mcp"}, "apps": {"a": {"args": [1, 2]}}}));
        let new = source(
            json!({"http": {"port": 2, "path": "/mcp"}, "apps": {"a": {"args": [1]}}, "info": {"name": "x"}}),
        );
        assert_eq!(old.differences(&new), ["apps.a.args", "http.port", "info.name"]);
        assert_eq!(new.differences(&old), old.differences(&new));
        assert!(old.differences(&old).is_empty());
    }

    #[test]
    fn a_section_that_comes_or_goes_is_named_by_its_keys() {
        let (none, some) = (source(json!({})), source(json!({"logging": {"level": "debug"}})));
        assert_eq!(none.differences(&some), ["logging.level"]);
        assert_eq!(some.differences(&none), ["logging.level"]);
    }
}

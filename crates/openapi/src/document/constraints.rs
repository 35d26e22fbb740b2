//! Constraints of a schema: allowed values, bounds and the like.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    json::{is_shorter, size_of_json},
    schema::{Members, Pass},
    sources::Node,
};

/// Longest regular expression, in bytes.
const LONGEST_PATTERN: usize = 1_000;

impl<'d> Pass<'_, 'd> {
    pub(super) fn choices(&mut self, out: &mut Members, values: &[Value], nullable: bool) {
        // Longer lists are not even copied.
        if values.len() > self.limit {
            self.size += values.len();
            return;
        }
        let mut choices = Vec::with_capacity(values.len() + 1);
        let mut texts = HashSet::with_capacity(values.len());
        let mut room = self.limit;
        for value in values {
            let Some(left) = room.checked_sub(1).filter(|room| is_shorter(value, *room)) else {
                self.size += self.limit + 1;
                return;
            };
            room = left - size_of_json(value).min(left);
            // Equal texts are the common mistake; other values are few.
            if value.as_str().is_none_or(|text| texts.insert(text)) {
                choices.push(value.clone());
            }
        }
        if nullable && !choices.contains(&Value::Null) {
            choices.push(Value::Null);
        }
        choices.shrink_to_fit();
        self.put(out, "enum", Value::Array(choices));
    }

    pub(super) fn constraint(&mut self, out: &mut Members, key: &str, part: Node<'d>, depth: usize) {
        match (key, part.value) {
            ("pattern", Value::String(pattern)) if pattern.len() <= LONGEST_PATTERN => {
                self.put(out, key, part.value.clone());
            }
            ("pattern", _) => {}
            (_, Value::Object(_) | Value::Bool(_)) => {
                let depth = if key == "contains" { depth + 1 } else { depth };
                self.child(out, key, part, depth);
            }
            _ => {}
        }
    }

    pub(super) fn number(&mut self, out: &mut Members, node: Node<'d>, key: &str, value: &Value) {
        let is_exclusive = |key: &str| node.is(key);
        match key {
            // OpenAPI 3.0 says with a boolean that the bound itself is excluded.
            "minimum" if is_exclusive("exclusiveMinimum") => {
                self.put(out, "exclusiveMinimum", value.clone());
            }
            "maximum" if is_exclusive("exclusiveMaximum") => {
                self.put(out, "exclusiveMaximum", value.clone());
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" if value.is_number() => {
                self.put(out, key, value.clone());
            }
            "multipleOf" if value.as_f64().is_some_and(|step| step > 0.0) => {
                self.put(out, key, value.clone())
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
            | "minContains" | "maxContains"
                if value.is_u64() =>
            {
                self.put(out, key, value.clone());
            }
            "uniqueItems" if *value == Value::Bool(true) && node.text("type") != Some("string") => {
                self.put(out, key, value.clone());
            }
            _ => {}
        }
    }
}

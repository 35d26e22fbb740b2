//! Work of keywords that go through a list of the schema, or through a text.

use std::collections::HashMap;

use serde_json::Value;

use crate::schema::{cost::values, pattern};

/// Options of an `enum`, members and other short comparisons that take as long as one application of a schema.
const FOR_ONE: u64 = 16;
/// Bytes of a text that are counted as fast.
const BYTES_FOR_ONE: u64 = 1_024;
/// Instructions of an expression that are tried with a character as fast.
const INSTRUCTIONS_FOR_ONE: u64 = 64;

/// Lists that have been looked at.
#[derive(Default)]
pub(super) struct Lists<'s> {
    enums: HashMap<*const Value, Options>,
    instructions: HashMap<&'s str, u64>,
    /// Work of reading the patterns.
    effort: usize,
}

/// The kinds of an `enum`'s options.
#[derive(Clone, Copy)]
struct Options {
    /// Only texts and `null`, which validators look up.
    is_looked_up: bool,
    has_containers: bool,
}

impl<'s> Lists<'s> {
    /// Returns the work of `keyword` for `value` besides the one application that every schema takes.
    pub(super) fn work(&mut self, keyword: &str, given: &'s Value, value: Option<&Value>) -> u64 {
        match (keyword, given, value) {
            ("enum", Value::Array(options), value) => self.options(options, value),
            ("required", Value::Array(names), Some(Value::Object(members))) => {
                names.len().min(members.len()) as u64 / FOR_ONE
            }
            ("dependentRequired" | "dependentSchemas" | "dependencies", Value::Object(names), _) => {
                names.len() as u64 / FOR_ONE
            }
            ("minLength" | "maxLength" | "format", _, Some(Value::String(text))) => {
                text.len() as u64 / BYTES_FOR_ONE
            }
            ("patternProperties", Value::Object(patterns), Some(Value::Object(members))) => {
                let names: u64 = members.keys().map(|name| name.len() as u64).sum();
                let work = |sum: u64, pattern: &'s String| {
                    sum.saturating_add(names.saturating_mul(self.instructions(pattern)))
                };
                patterns.keys().fold(0, work) / INSTRUCTIONS_FOR_ONE
            }
            _ => 0,
        }
    }

    fn options(&mut self, options: &[Value], value: Option<&Value>) -> u64 {
        let number = options.len() as u64;
        if number < FOR_ONE {
            return 0;
        }
        let kinds = *self.enums.entry(options.as_ptr()).or_insert_with(|| Options {
            is_looked_up: options.iter().all(|it| it.is_string() || it.is_null()),
            has_containers: options.iter().any(|it| it.is_array() || it.is_object()),
        });
        let size = match value {
            _ if kinds.is_looked_up => return 0,
            Some(value) if kinds.has_containers => values(value),
            _ => 1,
        };
        number.saturating_mul(size) / FOR_ONE
    }

    /// Returns the instructions of a pattern; `u64::MAX` where there are more patterns to read than a schema has that were checked.
    fn instructions(&mut self, pattern: &'s str) -> u64 {
        if let Some(known) = self.instructions.get(pattern) {
            return *known;
        }
        let instructions = match pattern::compared(pattern) {
            Some(comparisons) => comparisons,
            None => {
                self.effort += pattern::least_effort(pattern);
                if self.effort > pattern::MOST_EFFORT {
                    return u64::MAX;
                }
                pattern::instructions(pattern)
            }
        };
        self.instructions.insert(pattern, instructions);
        instructions
    }
}

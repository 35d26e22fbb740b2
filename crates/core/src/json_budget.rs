//! Size of JSON values, counted up to a limit.

use rmcp::model::JsonObject;
use serde_json::Value;

/// Most values within each other, and about the most bytes as JSON, of a value. Characters that JSON escapes count as one byte.
#[derive(Debug, Clone, Copy)]
pub struct JsonBudget {
    /// The value itself included.
    pub values: usize,
    /// Names and punctuation included.
    pub bytes: usize,
}

impl JsonBudget {
    /// Returns `true` if `value` is within the budget. Takes time in proportion to the budget, however large the value is.
    pub fn has_room_for(mut self, value: &Value) -> bool {
        self.take(value).is_some()
    }

    /// [`Self::has_room_for`] for an object.
    pub fn has_room_for_object(mut self, object: &JsonObject) -> bool {
        self.take_object(object).is_some()
    }

    fn take(&mut self, value: &Value) -> Option<()> {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => self.take_one(4),
            Value::String(text) => self.take_one(text.len() + 2),
            Value::Array(items) => {
                self.take_one(items.len() + 1)?;
                items.iter().try_for_each(|item| self.take(item))
            }
            Value::Object(object) => self.take_object(object),
        }
    }

    fn take_object(&mut self, object: &JsonObject) -> Option<()> {
        self.take_one(object.len() + 1)?;
        object.iter().try_for_each(|(name, value)| {
            self.bytes = self.bytes.checked_sub(name.len() + 3)?;
            self.take(value)
        })
    }

    fn take_one(&mut self, bytes: usize) -> Option<()> {
        self.values = self.values.checked_sub(1)?;
        self.bytes = self.bytes.checked_sub(bytes)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_and_bytes_are_counted_up_to_the_budget() {
        let value = json!({"a": [1, "xy", {"b": null}]});
        let fits = |values, bytes| JsonBudget { values, bytes }.has_room_for(&value);
        assert!(fits(6, value.to_string().len() + 8));
        assert!(!fits(5, 1_000));
        assert!(!fits(1_000, 10));
        assert!(!JsonBudget { values: 9, bytes: 100 }.has_room_for(&json!({"n".repeat(100): 1})));
        assert!(JsonBudget { values: 1, bytes: 2 }.has_room_for_object(&JsonObject::new()));
    }
}

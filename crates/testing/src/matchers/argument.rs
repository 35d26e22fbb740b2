//! Arguments of matchers in suites.

use serde_json::{Value, json};

/// The argument of a matcher. `()` for a matcher without one, `Option` for one that may be left out.
pub(super) trait Argument: Sized {
    /// JSON Schema of the argument, without its description.
    fn schema() -> Value;

    /// Converts the argument of a suite.
    ///
    /// # Errors
    /// The requirement that the value does not meet.
    fn from_json(value: &Value) -> Result<Self, &'static str>;
}

/// A text argument; numbers and booleans are converted.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn is_text(value: &Value) -> bool {
    value.is_string() || value.is_number() || value.is_boolean()
}

impl Argument for () {
    fn schema() -> Value {
        json!({"type": "null"})
    }

    fn from_json(value: &Value) -> Result<Self, &'static str> {
        if value.is_null() { Ok(()) } else { Err("takes no argument") }
    }
}

impl Argument for String {
    fn schema() -> Value {
        json!({"type": ["string", "number", "boolean"]})
    }

    fn from_json(value: &Value) -> Result<Self, &'static str> {
        if is_text(value) { Ok(text(value)) } else { Err("takes a text") }
    }
}

impl Argument for Option<String> {
    fn schema() -> Value {
        json!({"type": ["string", "number", "boolean", "null"]})
    }

    fn from_json(value: &Value) -> Result<Self, &'static str> {
        match value {
            Value::Null => Ok(None),
            value if is_text(value) => Ok(Some(text(value))),
            _ => Err("takes a text, or nothing"),
        }
    }
}

impl Argument for i64 {
    fn schema() -> Value {
        json!({"type": ["integer", "string"]})
    }

    fn from_json(value: &Value) -> Result<Self, &'static str> {
        value.as_i64().ok_or("takes a whole number, such as -32602")
    }
}

impl Argument for Option<i64> {
    fn schema() -> Value {
        json!({"type": ["integer", "string", "null"]})
    }

    fn from_json(value: &Value) -> Result<Self, &'static str> {
        match value {
            Value::Null => Ok(None),
            value => value.as_i64().map(Some).ok_or("takes a whole number, such as -32602, or nothing"),
        }
    }
}

impl Argument for usize {
    fn schema() -> Value {
        json!({"type": ["integer", "string"], "minimum": 0})
    }

    fn from_json(value: &Value) -> Result<Self, &'static str> {
        let count = value.as_u64().ok_or("takes a whole number of 0 or more")?;
        Ok(count.try_into().unwrap_or(usize::MAX))
    }
}

impl Argument for Value {
    fn schema() -> Value {
        json!({})
    }

    fn from_json(value: &Value) -> Result<Self, &'static str> {
        Ok(value.clone())
    }
}

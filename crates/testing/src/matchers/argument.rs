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

fn as_text(value: &Value) -> Option<String> {
    (value.is_string() || value.is_number() || value.is_boolean()).then(|| text(value))
}

fn as_count(value: &Value) -> Option<usize> {
    value.as_u64().map(|count| count.try_into().unwrap_or(usize::MAX))
}

fn optional<T>(value: &Value, convert: fn(&Value) -> Option<T>) -> Option<Option<T>> {
    if value.is_null() { Some(None) } else { convert(value).map(Some) }
}

/// Types of arguments, with their schema, their conversion, and the requirement of the conversion.
macro_rules! arguments {
    ($($argument:ty: $schema:tt, |$value:ident| $convert:expr, $requirement:literal;)+) => {$(
        impl Argument for $argument {
            fn schema() -> Value {
                json!($schema)
            }

            fn from_json($value: &Value) -> Result<Self, &'static str> {
                $convert.ok_or($requirement)
            }
        }
    )+};
}

arguments! {
    (): {"type": "null"}, |value| value.is_null().then_some(()), "takes no argument";
    String: {"type": ["string", "number", "boolean"]}, |value| as_text(value), "takes a text";
    Option<String>: {"type": ["string", "number", "boolean", "null"]}, |value| optional(value, as_text),
        "takes a text, or nothing";
    i64: {"type": ["integer", "string"]}, |value| value.as_i64(), "takes a whole number, such as -32602";
    Option<i64>: {"type": ["integer", "string", "null"]}, |value| optional(value, Value::as_i64),
        "takes a whole number, such as -32602, or nothing";
    usize: {"type": ["integer", "string"], "minimum": 0}, |value| as_count(value),
        "takes a whole number of 0 or more";
    Value: {}, |value| Some(value.clone()), "";
}

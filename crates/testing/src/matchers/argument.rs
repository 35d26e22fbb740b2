//! Arguments of matchers in suites.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    arguments::{
        ItemMatcher, JsonSchema, Latency, LogMessage, Message, NumberRange, PERCENTILES, Path, Pattern,
        Snapshot, Times,
    },
    vocabulary::{All, Problem, Vocabulary},
};

/// The argument of a matcher. `()` for a matcher without one, `Option` for one that may be left out.
pub(super) trait Argument: Sized {
    /// JSON Schema of the argument, without its description.
    fn schema() -> Value;

    /// Converts the argument of a suite.
    ///
    /// # Errors
    /// The requirement that the value does not meet.
    fn read(value: &Value, vocabulary: &Vocabulary<'_>) -> Result<Self, BadArgument>;
}

/// The reason why a value is no argument of a matcher.
#[derive(Debug)]
pub(crate) enum BadArgument {
    /// The requirement, to be continued with the value.
    Takes(&'static str),
    /// The whole problem.
    Problem(String),
    /// Problems of expectations within the value.
    Within(Vec<Problem>),
}

impl From<String> for BadArgument {
    fn from(problem: String) -> Self {
        Self::Problem(problem)
    }
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

fn optional<T>(value: &Value, convert: impl Fn(&Value) -> Option<T>) -> Option<Option<T>> {
    if value.is_null() { Some(None) } else { convert(value).map(Some) }
}

/// A number, or `{min, max}` with at least one of them.
fn as_range(value: &Value) -> Option<NumberRange> {
    if let Some(number) = value.as_f64() {
        return Some(number.into());
    }
    let fields = known(value, &["min", "max"])?;
    let end = |key: &str| fields.get(key).map_or(Some(None), |value| value.as_f64().map(Some));
    let range = NumberRange { min: end("min")?, max: end("max")? };
    (range.min.is_some() || range.max.is_some()).then_some(range)
}

/// The fields of an object that has no others than these.
fn known<'v>(value: &'v Value, keys: &[&str]) -> Option<&'v Map<String, Value>> {
    value.as_object().filter(|fields| fields.keys().all(|key| keys.contains(&key.as_str())))
}

/// A text, or an object with these keys only.
fn text_or(value: &Value, keys: &[&str]) -> Option<(Option<String>, Map<String, Value>)> {
    match value {
        Value::String(text) => Some((Some(text.clone()), Map::new())),
        value => known(value, keys).map(|fields| (None, fields.clone())),
    }
}

fn as_message(value: &Value) -> Option<Message> {
    let (method, fields) = text_or(value, &["method", "params", "times"])?;
    let mut message = Message::of(method.or_else(|| Some(fields.get("method")?.as_str()?.to_owned()))?);
    if let Some(params) = fields.get("params") {
        message = message.params(params.clone());
    }
    if let Some(times) = fields.get("times") {
        message = message.times(as_range(times)?);
    }
    Some(message)
}

fn as_log_message(value: &Value) -> Option<LogMessage> {
    let (text, fields) = text_or(value, &["text", "level", "logger", "times"])?;
    let field = |key: &str| {
        fields.get(key).map_or(Some(None), |value| value.as_str().map(|text| Some(text.to_owned())))
    };
    let mut message = LogMessage::with_text(text.or(field("text")?).unwrap_or_default());
    (message.level, message.logger) = (field("level")?, field("logger")?);
    if let Some(times) = fields.get("times") {
        message = message.times(as_range(times)?);
    }
    Some(message)
}

const TEXT: [&str; 3] = ["string", "number", "boolean"];

fn range_schema() -> Value {
    json!({"anyOf": [
        {"type": ["number", "string"]},
        {"type": "object", "properties": {"min": {"type": ["number", "string"]}, "max": {"type": ["number", "string"]}},
            "additionalProperties": false, "minProperties": 1},
    ]})
}

/// Types of arguments, with their schema, their conversion, and the requirement of the conversion.
macro_rules! arguments {
    ($($argument:ty: $schema:expr, |$value:ident| $convert:expr, $requirement:literal;)+) => {$(
        impl Argument for $argument {
            fn schema() -> Value {
                $schema
            }

            fn read($value: &Value, _: &Vocabulary<'_>) -> Result<Self, BadArgument> {
                $convert.ok_or(BadArgument::Takes($requirement))
            }
        }
    )+};
}

arguments! {
    (): json!({"enum": [null, true]}), |value| (value.is_null() || *value == true).then_some(()), "takes no argument";
    String: json!({"type": TEXT}), |value| as_text(value), "takes a text";
    Option<String>: json!({"type": ["string", "number", "boolean", "null"]}), |value| optional(value, as_text),
        "takes a text, or nothing";
    i64: json!({"type": ["integer", "string"]}), |value| value.as_i64(), "takes a whole number, such as -32602";
    Option<i64>: json!({"type": ["integer", "string", "null"]}), |value| optional(value, Value::as_i64),
        "takes a whole number, such as -32602, or nothing";
    usize: json!({"type": ["integer", "string"], "minimum": 0}), |value| as_count(value),
        "takes a whole number of 0 or more";
    NumberRange: range_schema(), |value| as_range(value), "takes a number or a range, such as {min: 1, max: 5}";
    Times: json!({"anyOf": [{"type": "null"}, range_schema()]}),
        |value| optional(value, as_range).map(|times| times.map(Times).unwrap_or_default()),
        "takes a number, a range such as {min: 1, max: 5}, or nothing";
    Path: json!({"type": TEXT}), |value| as_text(value).map(Path::from),
        "takes a path, such as structuredContent.items.0.name";
    Message: json!({"type": ["string", "object"], "properties": {"method": {"type": "string"}, "params": {},
            "times": range_schema()}, "required": ["method"], "additionalProperties": false}),
        |value| as_message(value), "takes a method, or {method, params, times}";
    LogMessage: json!({"type": ["string", "object"], "properties": {"text": {"type": "string"},
            "level": {"type": "string"}, "logger": {"type": "string"}, "times": range_schema()},
            "additionalProperties": false}),
        |value| as_log_message(value), "takes a text, or {text, level, logger, times}";
    Value: json!({}), |value| Some(value.clone()), "";
}

impl Argument for Pattern {
    fn schema() -> Value {
        json!({"type": TEXT})
    }

    fn read(value: &Value, _: &Vocabulary<'_>) -> Result<Self, BadArgument> {
        let pattern = Self::from(as_text(value).ok_or(BadArgument::Takes("takes a regular expression"))?);
        match &pattern.0 {
            Ok(_) => Ok(pattern),
            Err(problem) => Err(format!("is no regular expression: {problem}").into()),
        }
    }
}

/// A schema, or the name of a file with one.
impl Argument for JsonSchema {
    fn schema() -> Value {
        json!({"type": ["object", "boolean", "string"]})
    }

    fn read(value: &Value, vocabulary: &Vocabulary<'_>) -> Result<Self, BadArgument> {
        Ok(vocabulary.json_schema(value)?)
    }
}

impl Argument for ItemMatcher {
    fn schema() -> Value {
        json!({"$ref": "#/$defs/Expectations"})
    }

    fn read(value: &Value, vocabulary: &Vocabulary<'_>) -> Result<Self, BadArgument> {
        let all = vocabulary.expectations_or_value(value).map_err(BadArgument::Within)?;
        Ok(Self(Arc::new(All(all))))
    }
}

impl Argument for Snapshot {
    fn schema() -> Value {
        json!({"type": ["string", "object"], "properties": {"name": {"type": "string"},
            "mask": {"type": "array", "items": {"type": "string"}}}, "required": ["name"], "additionalProperties": false})
    }

    fn read(value: &Value, vocabulary: &Vocabulary<'_>) -> Result<Self, BadArgument> {
        const TAKES: BadArgument = BadArgument::Takes("takes a name, or {name, mask: [paths]}");
        let (name, fields) = text_or(value, &["name", "mask"]).ok_or(TAKES)?;
        let name = name.or_else(|| Some(fields.get("name")?.as_str()?.to_owned())).ok_or(TAKES)?;
        let mut snapshot = Self::kept(vocabulary.files.named(&name, "json")?);
        if let Some(paths) = fields.get("mask") {
            for path in paths.as_array().ok_or(TAKES)? {
                snapshot = snapshot.mask(path.as_str().ok_or(TAKES)?);
            }
        }
        Ok(snapshot)
    }
}

/// A limit of every duration, or limits of percentiles.
impl Argument for Latency {
    fn schema() -> Value {
        let number = json!({"type": ["number", "string"]});
        let mut properties: Map<String, Value> =
            PERCENTILES.into_iter().map(|(name, _)| (name.to_owned(), number.clone())).collect();
        properties.insert("baseline".into(), json!({"type": "string"}));
        properties.insert("tolerance".into(), number);
        json!({"type": ["number", "string", "object"], "properties": properties, "additionalProperties": false,
            "minProperties": 1})
    }

    fn read(value: &Value, vocabulary: &Vocabulary<'_>) -> Result<Self, BadArgument> {
        const TAKES: BadArgument = BadArgument::Takes(
            "takes milliseconds, or some of {p50, p75, p90, p95, p99, max, baseline: name, tolerance: percent}",
        );
        if let Some(ms) = value.as_f64() {
            return Ok(ms.into());
        }
        let mut latency = Self::default();
        let fields = value.as_object().ok_or(TAKES)?;
        if fields.keys().all(|key| key == "tolerance") {
            return Err(TAKES);
        }
        for (key, value) in fields {
            latency = match (key.as_str(), value.as_f64(), value.as_str()) {
                ("baseline", _, Some(name)) => {
                    latency.baseline_in(vocabulary.files.named(name, "latency.json")?)
                }
                ("tolerance", Some(percent), _) => latency.tolerance(percent),
                (name, Some(ms), _) => latency.limit(name, ms).ok_or(TAKES)?,
                _ => return Err(TAKES),
            };
        }
        Ok(latency)
    }
}

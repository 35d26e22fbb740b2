//! Turning what a tool answered into the value that scripts get, the same way each time.

use std::{borrow::Cow, sync::Arc};

use gatewright_core::{ToolEntry, rmcp::model::JsonObject};
use gatewright_json::{value_bytes, weight};
use gatewright_shape::{Digits, keep_digits, spell_long_integers};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use super::declared::{self, RESULT};

/// Plain texts after which a tool that never answered with JSON is one that answers with text.
const SETTLED: u32 = 3;

/// The rules by which answers of a tool are unwrapped.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// An object whose only member is `result` stands for that member.
    pub(crate) unwraps: bool,
    pub(crate) text: Text,
    /// The output schema, if it says something.
    pub(crate) declared: Option<Arc<JsonObject>>,
}

/// A value that was read.
#[derive(Debug, Clone)]
pub(crate) enum Read {
    Value(Value),
    /// An object or an array as the JSON text it was written in, from which nothing was built.
    Json(Box<RawValue>),
}

impl Read {
    /// The value; of a JSON text whose values would take more than `most` bytes, the text.
    pub(crate) fn into_value_within(self, most: u64) -> Value {
        match self {
            Self::Json(json) if weight(json.get()).is_ok_and(|bytes| bytes > most) => {
                Value::String(Box::<str>::from(json).into())
            }
            read => read.into_value(),
        }
    }

    /// Bytes of memory that [`Self::into_value_within`] takes with the same limit.
    pub(crate) fn bytes_within(&self, most: u64) -> u64 {
        match self {
            Self::Value(value) => value_bytes(value),
            Self::Json(json) => {
                let text = json.get().len() as u64;
                weight(json.get()).ok().filter(|bytes| *bytes <= most).unwrap_or(text)
            }
        }
    }

    /// The value.
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Value(value) => value,
            Self::Json(json) => {
                serde_json::from_str(json.get()).unwrap_or_else(|_| json.get().to_owned().into())
            }
        }
    }
}

/// The treatment of an answer that is one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    /// JSON is parsed, scalars as far as the output schema admits them.
    Json,
    /// Objects and arrays are parsed. `42`, `true` and `null` are text.
    Records,
    /// It stays text.
    Plain,
}

/// Lone texts that a tool answered a caller with.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Texts {
    /// No JSON.
    plain: u32,
    /// JSON objects and arrays.
    records: u32,
}

impl Texts {
    /// The treatment of texts after these answers.
    pub(crate) fn reading(self) -> Text {
        match self {
            Self { plain: SETTLED.., records: 0 } => Text::Plain,
            _ => Text::Records,
        }
    }

    /// Counts a text that was read as `value`. A tool whose answers are known to be text stays one.
    pub(crate) fn count(&mut self, value: Option<&Value>) {
        match value {
            None => self.plain = self.plain.saturating_add(1),
            Some(Value::Object(_) | Value::Array(_)) => self.records = self.records.saturating_add(1),
            Some(_) => {}
        }
    }
}

impl Reading {
    /// The reading of a tool: its output schema decides, and where that says nothing, the texts it answered with before.
    pub(crate) fn of(tool: &ToolEntry, before: impl FnOnce() -> Texts) -> Self {
        let Some(read) = &declared::read(tool).output else { return Self::after(before()) };
        let (unwraps, text) = match read {
            read if read.is_text => (true, Text::Plain),
            read if read.wraps => (true, Text::Json),
            _ => (false, Text::Records),
        };
        Self { unwraps, text, declared: tool.tool.output_schema.clone() }
    }

    /// The reading of a tool that declares nothing, after answers with these texts.
    pub(crate) fn after(texts: Texts) -> Self {
        Self { unwraps: true, text: texts.reading(), declared: None }
    }

    /// The value in `structuredContent`.
    pub(crate) fn structured(&self, value: Value) -> Value {
        let mut value = self.unwrapped(value);
        spell_long_integers(&mut value);
        value
    }

    /// The value in `structuredContent`, to look at.
    pub(crate) fn structured_ref<'v>(&self, value: &'v Value) -> &'v Value {
        match value {
            Value::Object(members) if self.unwraps && members.len() == 1 => {
                members.get(RESULT).unwrap_or(value)
            }
            _ => value,
        }
    }

    /// The value of an answer that is one text.
    pub(crate) fn lone_text(&self, text: String) -> Read {
        self.read(&text).unwrap_or(Read::Value(Value::String(text)))
    }

    /// The JSON in `text`, if it is read as JSON. Numbers keep their digits, as text where a JavaScript number loses them; decimals of
    /// a tool that declares numbers are numbers.
    pub(crate) fn read(&self, text: &str) -> Option<Read> {
        if self.text == Text::Plain {
            return None;
        }
        if text.trim_ascii_start().starts_with(['{', '[']) {
            return self.container(text);
        }
        if self.text == Text::Records {
            return None;
        }
        let value: Value = serde_json::from_str(text).ok()?;
        if self.declared.as_deref().is_some_and(|schema| !declared::admits_scalar(schema, &value)) {
            return None;
        }
        match value {
            value @ Value::Number(_) => {
                let (written, digits) = (text.trim(), self.digits());
                // Alone, `1.0` is a version as likely as a number.
                let is_version = digits == Digits::All && written.ends_with(".0");
                (!digits.are_lost(written) && !is_version).then_some(Read::Value(value))
            }
            scalar => Some(Read::Value(scalar)),
        }
    }

    fn container(&self, text: &str) -> Option<Read> {
        // Deeper JSON does not reach scripts.
        weight(text).ok()?;
        let _: &RawValue = serde_json::from_str(text).ok()?;
        if has_half_of_a_pair(text) {
            return None;
        }
        let mut kept = keep_digits(text, Digits::All);
        if matches!(kept, Cow::Owned(_)) && self.digits() != Digits::All {
            kept = keep_digits(text, self.digits());
        }
        // A list of one item would be read as the members of the object in their order.
        if self.unwraps
            && kept.trim_ascii_start().starts_with('{')
            && let Ok(Wrapped { result }) = serde_json::from_str(&kept)
        {
            let is_container = result.get().starts_with(['{', '[']);
            return match is_container {
                true => Some(Read::Json(result.to_owned())),
                false => serde_json::from_str(result.get()).ok().map(Read::Value),
            };
        }
        RawValue::from_string(kept.into_owned()).ok().map(Read::Json)
    }

    fn digits(&self) -> Digits {
        match &self.declared {
            Some(schema) if declared::has_decimals(schema) => Digits::OfIntegers,
            _ => Digits::All,
        }
    }

    fn unwrapped(&self, value: Value) -> Value {
        match value {
            Value::Object(mut members) if self.unwraps && members.len() == 1 => {
                match members.shift_remove(RESULT) {
                    Some(inner) => inner,
                    None => Value::Object(members),
                }
            }
            other => other,
        }
    }
}

/// Returns `true` if an escape in valid JSON is half of a surrogate pair, which no text can hold. That is not looked at where no values are
/// built.
fn has_half_of_a_pair(json: &str) -> bool {
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut at = 0;
    while let Some(next) = json[at..].find('\\') {
        at += next;
        at += match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => return true,
            (Some(_), _) => 6,
            (None, _) => 2,
        };
    }
    false
}

/// Returns `true` for the JSON of a number, a text, a boolean or null. Such an answer does not tell whether a tool answers with JSON.
pub(crate) fn is_scalar(text: &str) -> bool {
    !text.trim_ascii_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// An object that stands for its only member.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapped<'j> {
    #[serde(borrow)]
    result: &'j RawValue,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FRESH: Reading = Reading { unwraps: true, text: Text::Json, declared: None };

    fn read(reading: &Reading, text: &str) -> Value {
        reading.lone_text(text.to_owned()).into_value()
    }

    #[test]
    fn a_lone_result_is_unwrapped_once_in_structured_content_and_in_text_alike() {
        let wrapped = json!({"result": {"result": [1]}});
        assert_eq!(FRESH.structured(wrapped.clone()), json!({"result": [1]}));
        assert_eq!(read(&FRESH, &wrapped.to_string()), json!({"result": [1]}));
        let page = json!({"result": [1], "next": 2});
        assert_eq!(FRESH.structured(page.clone()), page);
        let declared = Reading { unwraps: false, ..FRESH };
        assert_eq!(declared.structured(json!({"result": 1})), json!({"result": 1}));
    }

    #[test]
    fn numbers_keep_their_digits_as_text() {
        assert_eq!(read(&FRESH, "[1.10, 9007199254740993, 2.5]"), json!(["1.10", "9007199254740993", 2.5]));
        assert_eq!(FRESH.structured(json!({"id": u64::MAX})), json!({"id": "18446744073709551615"}));
        for text in ["1.10", "1.0", "12345678901234567890"] {
            assert_eq!(read(&FRESH, text), json!(text));
        }
        assert_eq!(read(&FRESH, "42"), json!(42));
    }

    #[test]
    fn a_lone_text_is_a_number_a_boolean_or_null_only_if_the_output_schema_says_so() {
        let undeclared = Reading::after(Texts::default());
        for text in ["9\n", "42", "true", "null", "\"a\"", "1.10"] {
            assert!(is_scalar(text));
            assert_eq!(read(&undeclared, text), text, "{text}");
        }
        assert_eq!(read(&undeclared, "{\"n\": 9}"), json!({"n": 9}));
        let declared = |inner: Value| {
            let schema = json!({"type": "object", "properties": {"result": inner}, "required": ["result"]});
            Reading { declared: Some(Arc::new(schema.as_object().unwrap().clone())), ..FRESH }
        };
        for (inner, text, value) in [
            (json!({"type": "integer"}), "9\n", json!(9)),
            (json!({"type": "number"}), "9", json!(9)),
            (json!({"type": ["boolean", "null"]}), "null", json!(null)),
            (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), "9", json!(9)),
            (json!({"$ref": "#/$defs/n"}), "9", json!(9)),
            (json!({"enum": [1, 2]}), "2", json!(2)),
            (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "9", json!("9")),
            (json!({"type": "integer"}), "true", json!("true")),
            (json!({"type": "array"}), "9", json!("9")),
            (json!({"enum": [1, 2]}), "3", json!("3")),
        ] {
            assert_eq!(read(&declared(inner.clone()), text), value, "{inner} {text}");
        }
    }

    #[test]
    fn decimals_of_a_tool_that_declares_numbers_are_numbers_and_long_integers_stay_text() {
        let declared = |schema: Value| {
            let declared = Some(Arc::new(schema.as_object().unwrap().clone()));
            Reading { declared, ..FRESH }
        };
        let prices =
            declared(json!({"properties": {"price": {"anyOf": [{"type": "number"}, {"type": "null"}]}}}));
        let text = r#"{"price": 1.10, "rate": 0.12345678901234567890, "id": 9007199254740993, "far": 1e400}"#;
        assert_eq!(
            read(&prices, text),
            json!({"price": 1.1, "rate": 0.123_456_789_012_345_68, "id": "9007199254740993", "far": "1e400"})
        );
        let price = declared(json!({"properties": {"result": {"type": "number"}}, "required": ["result"]}));
        assert_eq!((read(&price, "1.10"), read(&price, "1.0")), (json!(1.1), json!(1.0)));
        let ids = declared(json!({"properties": {"id": {"type": "integer"}}}));
        assert_eq!(read(&ids, text)["price"], "1.10");
    }

    #[test]
    fn texts_that_are_no_json_or_that_scripts_cannot_read_stay_text() {
        let deep = format!("{}{}", "[".repeat(101), "]".repeat(101));
        for text in ["[1, 2", "{a: 1}", "[1] [2]", r#"["\ud800"]"#, r#"["\udc00\ud800"]"#, &deep, "\u{a0}[1]"]
        {
            assert_eq!(read(&FRESH, text), text, "{text}");
        }
        for (text, value) in [
            (" [1,\n 2] ", json!([1, 2])),
            (r#"["\ud83d\ude00\\ud800"]"#, json!(["\u{1f600}\\ud800"])),
            (r#"{"a": 1, "a": 2}"#, json!({"a": 2})),
            ("[1]", json!([1])),
            (r#"{"result": "one"}"#, json!("one")),
            (r#"{"result": 1.10}"#, json!("1.10")),
        ] {
            assert_eq!(read(&FRESH, text), value, "{text}");
        }
    }

    #[test]
    fn a_json_text_whose_values_take_too_much_memory_stays_text() {
        let text = format!("[{}0]", "[],".repeat(1_000));
        let within = |most| FRESH.lone_text(text.clone()).into_value_within(most);
        assert_eq!(within(1 << 20).as_array().map(Vec::len), Some(1_001));
        assert_eq!(within(1 << 16), json!(text));
        assert_eq!(FRESH.lone_text("plain".to_owned()).into_value_within(0), json!("plain"));
    }

    #[test]
    fn a_tool_that_answered_with_plain_text_keeps_scalars_and_later_everything_as_text() {
        let mut texts = Texts::default();
        let read = |texts: Texts, text: &str| Reading::after(texts).read(text).map(Read::into_value);
        texts.count(None);
        assert_eq!(read(texts, "42"), None);
        assert!(read(texts, "[42]").is_some());
        texts.count(None);
        texts.count(None);
        assert_eq!(read(texts, "[42]"), None, "a file that happens to be JSON");
    }

    #[test]
    fn a_tool_that_answered_with_json_has_its_json_parsed_however_often_it_answers_with_plain_text() {
        let mut texts = Texts::default();
        texts.count(Some(&json!([1])));
        (0..10).for_each(|_| texts.count(None));
        assert_eq!(texts.reading(), Text::Records);
    }
}

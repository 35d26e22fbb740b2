//! Turning what a tool answered into the value that scripts get, the same way each time.

use gatewright_core::{ToolEntry, read_json};
use gatewright_shape::{keep_digits, loses_digits, spell_long_integers};
use serde_json::Value;

use super::declared::{self, RESULT};

/// Plain texts after which a tool that never answered with JSON is one that answers with text.
const SETTLED: u32 = 3;

/// The rules by which answers of a tool are unwrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// An object whose only member is `result` stands for that member.
    pub(crate) unwraps: bool,
    pub(crate) text: Text,
}

/// The treatment of an answer that is one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    /// JSON is parsed.
    Json,
    /// Objects and arrays are parsed. The tool has answered with plain text before, so `42` is text.
    Records,
    /// It stays text.
    Plain,
}

/// Lone texts that a tool answered with.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Texts {
    /// No JSON.
    #[serde(rename = "p")]
    plain: u32,
    /// JSON objects and arrays.
    #[serde(rename = "j")]
    records: u32,
}

impl Texts {
    /// The treatment of texts after these answers.
    pub(crate) fn reading(self) -> Text {
        match self {
            Self { plain: SETTLED.., records: 0 } => Text::Plain,
            Self { plain: 1.., .. } => Text::Records,
            _ => Text::Json,
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

    pub(crate) fn add(&mut self, other: Self) {
        self.plain = self.plain.saturating_add(other.plain);
        self.records = self.records.saturating_add(other.records);
    }
}

impl Reading {
    /// The reading of a tool: its output schema decides, and where that says nothing, the texts it answered with before.
    pub(crate) fn of(tool: &ToolEntry, before: impl FnOnce() -> Texts) -> Self {
        match tool.tool.output_schema.as_deref().filter(|schema| declared::tells(schema)) {
            Some(schema) if declared::is_text(schema) => Self { unwraps: true, text: Text::Plain },
            Some(schema) => Self { unwraps: declared::wraps(schema), text: Text::Json },
            None => Self { unwraps: true, text: before().reading() },
        }
    }

    /// The value in `structuredContent`.
    pub(crate) fn structured(self, value: Value) -> Value {
        let mut value = self.unwrapped(value);
        spell_long_integers(&mut value);
        value
    }

    /// The value in `structuredContent`, to look at.
    pub(crate) fn structured_ref(self, value: &Value) -> &Value {
        match value {
            Value::Object(members) if self.unwraps && members.len() == 1 => {
                members.get(RESULT).unwrap_or(value)
            }
            _ => value,
        }
    }

    /// The value of an answer that is one text.
    pub(crate) fn lone_text(self, text: String) -> Value {
        self.parsed(&text).unwrap_or(Value::String(text))
    }

    /// The JSON in `text`, if it is read as JSON. Numbers keep their digits, as text where a JavaScript number loses them.
    pub(crate) fn parsed(self, text: &str) -> Option<Value> {
        if self.text == Text::Plain {
            return None;
        }
        let value: Value = read_json(text).ok()?;
        match value {
            Value::Object(_) | Value::Array(_) => {
                let kept = keep_digits(text);
                let value = match kept {
                    std::borrow::Cow::Borrowed(_) => value,
                    std::borrow::Cow::Owned(kept) => serde_json::from_str(&kept).ok()?,
                };
                Some(self.unwrapped(value))
            }
            _ if self.text == Text::Records => None,
            Value::Number(_) => {
                let written = text.trim();
                // Alone, `1.0` is a version as likely as a number.
                let is_exact = !loses_digits(written) && !written.ends_with(".0");
                is_exact.then_some(value)
            }
            scalar => Some(scalar),
        }
    }

    fn unwrapped(self, value: Value) -> Value {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FRESH: Reading = Reading { unwraps: true, text: Text::Json };

    #[test]
    fn a_lone_result_is_unwrapped_once_in_structured_content_and_in_text_alike() {
        let wrapped = json!({"result": {"result": [1]}});
        assert_eq!(FRESH.structured(wrapped.clone()), json!({"result": [1]}));
        assert_eq!(FRESH.lone_text(wrapped.to_string()), json!({"result": [1]}));
        let page = json!({"result": [1], "next": 2});
        assert_eq!(FRESH.structured(page.clone()), page);
        let declared = Reading { unwraps: false, ..FRESH };
        assert_eq!(declared.structured(json!({"result": 1})), json!({"result": 1}));
    }

    #[test]
    fn numbers_keep_their_digits_as_text() {
        assert_eq!(
            FRESH.lone_text("[1.10, 9007199254740993, 2.5]".into()),
            json!(["1.10", "9007199254740993", 2.5])
        );
        assert_eq!(FRESH.structured(json!({"id": u64::MAX})), json!({"id": "18446744073709551615"}));
        for text in ["1.10", "1.0", "12345678901234567890"] {
            assert_eq!(FRESH.lone_text(text.into()), json!(text));
        }
        assert_eq!(FRESH.lone_text("42".into()), json!(42));
    }

    #[test]
    fn a_tool_that_answered_with_plain_text_keeps_scalars_and_later_everything_as_text() {
        let mut texts = Texts::default();
        let read = |texts: Texts, text: &str| Reading { unwraps: true, text: texts.reading() }.parsed(text);
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

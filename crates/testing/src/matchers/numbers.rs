//! Matchers of numbers and lengths.

use serde_json::Value;

use super::{
    matching::Match,
    mismatch::{Mismatch, Outcome},
    registry::{HasLength, IsInRange},
    subject::Subject,
};

impl Match for IsInRange {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        match subject.data().as_f64() {
            Some(number) if self.0.contains(number) => Ok(()),
            Some(number) => Err(Mismatch::new(format!("a number of {}", self.0), number.to_string())),
            None => Err(subject.unsupported("a number")),
        }
    }
}

/// Counts items of a list, keys of an object, characters of a text.
impl Match for HasLength {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let data = subject.data();
        let (count, unit) = match &data {
            Value::Array(items) => (items.len(), "items"),
            Value::Object(fields) if matches!(subject, Subject::Json(_)) => (fields.len(), "keys"),
            Value::String(text) => (text.chars().count(), "characters"),
            _ => return Err(subject.unsupported("a list, an object or a text (name it with `at`)")),
        };
        match self.0.contains(count as f64) {
            true => Ok(()),
            false => Err(Mismatch::new(format!("{} {unit}", self.0), format!("{count}: {subject}"))),
        }
    }
}

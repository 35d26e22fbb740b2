//! Matchers of every item, or of some item, of a list.

use serde_json::Value;

use super::{
    matching::Match,
    mismatch::{Mismatch, Outcome},
    registry::{Containing, Each},
    subject::Subject,
};

/// An empty list does not match, so that a test whose list is unexpectedly empty fails.
impl Match for Each {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let items = items(subject)?;
        if items.is_empty() {
            let mut mismatch = Mismatch::new("a list with items", "an empty list");
            mismatch.unsupported = true;
            return Err(mismatch);
        }
        for (at, item) in items.iter().enumerate() {
            self.0.0.check(&Subject::Json(item)).map_err(|mismatch| Mismatch {
                expected: format!("of item {at}: {}", mismatch.expected),
                ..mismatch
            })?;
        }
        Ok(())
    }
}

impl Match for Containing {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let items = items(subject)?;
        let mut mismatches = Vec::new();
        for item in &items {
            match self.0.0.check(&Subject::Json(item)) {
                Ok(()) => return Ok(()),
                Err(mismatch) => mismatches.push(mismatch),
            }
        }
        // An item may lack what the matcher looks at, but if all do, it looks at the wrong place.
        let at = mismatches.iter().position(|one| !one.unsupported);
        let Some(first) = mismatches.into_iter().nth(at.unwrap_or_default()) else {
            return Err(Mismatch::new("a matching item", "an empty list"));
        };
        Err(Mismatch {
            expected: format!("an item with {}", first.expected),
            actual: format!("none of {} items matches; the first: {}", items.len(), first.actual),
            ..first
        })
    }
}

fn items(subject: &Subject<'_>) -> Result<Vec<Value>, Mismatch> {
    match subject.data() {
        Value::Array(items) => Ok(items),
        _ => Err(subject.unsupported("a list (name it with `at`)")),
    }
}

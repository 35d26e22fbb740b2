//! Matchers of any value: equality, regular expressions, properties, JSON Schema.

use serde_json::Value;

use super::{
    arguments::Path,
    diff::{exact_diff, json_diff},
    matching::Match,
    mismatch::{Mismatch, Outcome},
    registry::{Equals, HasProperty, MatchesJson, MatchesRegex, MatchesSchema},
    subject::Subject,
};
use crate::base::text::shorten;

/// Most differences and violations that a mismatch lists.
const MOST_LISTED: usize = 20;

/// The mismatch of a matcher that cannot be used.
fn unusable(problem: &str) -> Mismatch {
    let mut mismatch = Mismatch::new("a usable matcher", problem);
    mismatch.unsupported = true;
    mismatch
}

/// Compares with the data of a value (`structuredContent`, or JSON in a text), and with the whole of it.
impl Match for Equals {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        compare(&self.0, subject, exact_diff)
    }

    fn expects_success(&self) -> Option<bool> {
        names_failure(&self.0)
    }
}

/// Compares with the data of a value (`structuredContent`, or JSON in a text), and with the whole of it.
impl Match for MatchesJson {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        compare(&self.0, subject, json_diff)
    }

    fn expects_success(&self) -> Option<bool> {
        names_failure(&self.0)
    }
}

/// `Some(false)` for a whole result that is an error.
fn names_failure(expected: &Value) -> Option<bool> {
    (expected["isError"] == true || expected["error"].is_object() && expected["error"]["code"].is_i64())
        .then_some(false)
}

fn compare(
    expected: &Value,
    subject: &Subject<'_>,
    differences: fn(&Value, &Value) -> Vec<String>,
) -> Outcome {
    let (data, whole) = (subject.data(), subject.json());
    let of_data = differences(expected, &data);
    if of_data.is_empty() {
        return Ok(());
    }
    let of_whole = differences(expected, &whole);
    if of_whole.is_empty() {
        return Ok(());
    }
    // The one that is meant has the expected keys.
    let shared = |value: &Value| {
        let keys = expected.as_object().into_iter().flat_map(|fields| fields.keys());
        keys.filter(|key| value.get(key.as_str()).is_some()).count()
    };
    let (mut lines, actual) = match shared(&whole) > shared(&data) {
        true => (of_whole, whole),
        false => (of_data, data),
    };
    let more = lines.len().saturating_sub(MOST_LISTED);
    lines.truncate(MOST_LISTED);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    Err(Mismatch::new(shorten(&expected.to_string(), 800), shorten(&actual.to_string(), 800))
        .hint(Some(lines.join("\n          "))))
}

/// Searches texts of content, the message of an error, and plain texts, numbers and booleans.
impl Match for MatchesRegex {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let regex = self.0.0.as_ref().map_err(|problem| unusable(problem))?;
        let texts = subject.texts().ok_or_else(|| subject.unsupported("something with text"))?;
        match texts.iter().any(|text| regex.is_match(text)) {
            true => Ok(()),
            false => {
                let actual = match texts.as_slice() {
                    [] => format!("no text: {subject}"),
                    texts => shorten(&format!("{texts:?}"), 800),
                };
                Err(Mismatch::new(format!("a text that matches /{regex}/"), actual))
            }
        }
    }
}

impl Match for HasProperty {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let (data, whole) = (subject.data(), subject.json());
        let path: &Path = &self.0;
        match path.find(&whole) {
            Ok(_) => Ok(()),
            Err(_) if path.find(&data).is_ok() => Ok(()),
            Err(mut mismatch) => {
                mismatch.unsupported = false;
                Err(mismatch.hint(None))
            }
        }
    }
}

/// Checks the data of a value: `structuredContent`, or JSON in a text.
impl Match for MatchesSchema {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let schema = self.0.0.as_ref().map_err(|problem| unusable(problem))?;
        let data = subject.data();
        let findings = schema.findings(&data);
        if findings.is_empty() {
            return Ok(());
        }
        let mut lines: Vec<String> = findings.iter().take(MOST_LISTED).map(ToString::to_string).collect();
        if findings.len() > MOST_LISTED {
            lines.push(format!("and {} more", findings.len() - MOST_LISTED));
        }
        let actual = shorten(&data.to_string(), 800);
        Err(Mismatch::new("a value that the schema allows", actual).hint(Some(lines.join("\n          "))))
    }
}

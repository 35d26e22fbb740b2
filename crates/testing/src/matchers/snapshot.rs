//! Snapshots: whole results, kept in files.

use serde_json::Value;

use super::{
    arguments::KeptFile,
    diff::exact_diff,
    matching::Match,
    mismatch::{Mismatch, Outcome},
    registry::MatchesSnapshot,
    subject::Subject,
};
use crate::base::text::shorten;

/// Most differences that a mismatch lists.
const MOST_LISTED: usize = 20;

/// Stands in the file for a part that changes with every run.
const MASKED: &str = "[masked]";

impl Match for MatchesSnapshot {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        let mut actual = subject.json();
        actual.sort_all_objects();
        for mask in &self.0.masks {
            if mask.replace(&mut actual, &MASKED.into()) == 0 {
                mask.find(&actual)?;
            }
        }
        let kept = &self.0.kept;
        let KeptFile::Read(expected) = kept.read_or_write("the snapshot", &actual)? else { return Ok(()) };
        let mut lines = exact_diff(&expected, &actual);
        if lines.is_empty() {
            return Ok(());
        }
        let count = lines.len();
        lines.truncate(MOST_LISTED);
        if count > MOST_LISTED {
            lines.push(format!("and {} more", count - MOST_LISTED));
        }
        lines.push(format!(
            "when that is right, {}; `mask` names parts that change with every run",
            kept.how_to_update()
        ));
        let of = |value: &Value| shorten(&value.to_string(), 400);
        Err(Mismatch::new(format!("as in {kept}: {}", of(&expected)), of(&actual))
            .hint(Some(lines.join("\n          "))))
    }
}

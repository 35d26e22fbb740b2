//! Matchers applied to a part of a value.

use super::{
    arguments::Path,
    matching::{Match, apply},
    mismatch::{Mismatch, Outcome},
    subject::Subject,
};

/// Applies a matcher to every part of the value at `path`: in its wire form, or if that has no such part, in its data.
pub(crate) fn apply_at(path: &Path, matcher: &dyn Match, negated: bool, subject: &Subject<'_>) -> Outcome {
    let (whole, data) = (subject.json(), subject.data());
    let parts = match (path.find(&whole), path.find(&data)) {
        (Ok(parts), _) | (Err(_), Ok(parts)) => parts,
        (Err(missing), Err(_)) => return Err(missing),
    };
    for (place, part) in parts {
        apply(matcher, negated, &Subject::Json(part)).map_err(|mismatch| Mismatch {
            expected: format!("at `{place}`: {}", mismatch.expected),
            ..mismatch
        })?;
    }
    Ok(())
}

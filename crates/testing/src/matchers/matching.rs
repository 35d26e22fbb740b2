//! The trait of matchers.

use super::{
    mismatch::{Mismatch, Outcome},
    subject::Subject,
};

/// A condition on a value under test. Implemented by closures too.
pub trait Match {
    /// Checks the value.
    ///
    /// # Errors
    /// The value does not match; the mismatch says what was expected and what was found.
    fn check(&self, subject: &Subject<'_>) -> Outcome;

    /// `Some(true)` for a matcher that only a success satisfies, `Some(false)` for one that only a failure satisfies, otherwise
    /// `None`. A suite accepts a failed step only if a matcher expects the failure.
    fn expects_success(&self) -> Option<bool> {
        None
    }

    /// True for a matcher of durations. A suite gives it those of all repetitions of a step at once.
    fn is_of_durations(&self) -> bool {
        false
    }
}

impl<F: Fn(&Subject<'_>) -> Outcome> Match for F {
    fn check(&self, subject: &Subject<'_>) -> Outcome {
        self(subject)
    }
}

/// Applies a matcher, inverted if `negated`. A type of value the matcher does not support stays a failure.
pub(crate) fn apply(matcher: &dyn Match, negated: bool, subject: &Subject<'_>) -> Outcome {
    match (matcher.check(subject), negated) {
        (outcome, false) => outcome,
        (Err(mismatch), true) if mismatch.unsupported => Err(mismatch),
        (Err(_), true) => Ok(()),
        (Ok(()), true) => Err(Mismatch::new("the opposite", subject.to_string())),
    }
}

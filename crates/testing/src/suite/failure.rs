//! The failure of a step or of what surrounds it, as reports need it.

use super::results::FailureDetails;
use crate::matchers::Mismatch;

/// A failure: its text, and the parts that machine-readable reports have.
#[derive(Debug, Clone, Default)]
pub(super) struct Failure {
    /// The whole text, for people.
    pub(super) text: String,
    pub(super) details: FailureDetails,
}

impl Failure {
    /// An expectation that was not met.
    pub(super) fn mismatch(text: String, mismatch: &Mismatch) -> Self {
        let (expected, actual) = (mismatch.expected.clone(), mismatch.actual.clone());
        let details =
            FailureDetails { expected: Some(expected), actual: Some(actual), ..FailureDetails::default() };
        Self { text, details }
    }

    /// Puts text before the failure.
    #[must_use]
    pub(super) fn within(mut self, place: &str) -> Self {
        self.text.insert_str(0, place);
        self
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self { text, details: FailureDetails::default() }
    }
}

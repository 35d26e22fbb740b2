//! The outcome of a matcher.

/// The outcome of a matcher.
pub type Outcome = Result<(), Mismatch>;

/// The difference between an expectation and the actual value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The expectation.
    pub expected: String,
    /// The actual value.
    pub actual: String,
    /// Further help: the nearest candidate, a diff.
    pub hint: Option<String>,
    /// True if the matcher cannot check values of this type. Such a mismatch is not inverted by `not`.
    pub unsupported: bool,
}

impl Mismatch {
    /// A mismatch without a hint.
    pub fn new(expected: impl Into<String>, actual: impl Into<String>) -> Self {
        Self { expected: expected.into(), actual: actual.into(), hint: None, unsupported: false }
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "expected: {}\n  actual: {}", self.expected, self.actual)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n    hint: {hint}"))
    }
}

impl std::error::Error for Mismatch {}

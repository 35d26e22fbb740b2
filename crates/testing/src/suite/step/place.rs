//! The place of a step, for reports.

/// A step that runs.
#[derive(Debug, Clone, Default)]
pub(in crate::suite) struct Place {
    /// The beginning of its failures; empty before the first step.
    pub(in crate::suite) prefix: String,
    pub(in crate::suite) line: Option<usize>,
    pub(super) step: String,
}

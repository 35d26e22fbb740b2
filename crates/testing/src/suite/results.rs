//! Results of a run.

use std::time::Duration;

/// The outcome of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestOutcome {
    /// Every expectation was met.
    Passed,
    /// Not run, for this reason.
    Skipped(String),
    /// Failed; the text names the failure, the requests and the server's log.
    Failed(String),
}

/// The report of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestReport {
    /// The name.
    pub name: String,
    /// The line in the file, from 1.
    pub line: Option<usize>,
    /// The outcome.
    pub outcome: TestOutcome,
    /// The duration.
    pub duration: Duration,
    /// Protocol violations in a test that passed: text on standard output that is not JSON, responses to no request.
    pub notes: Vec<String>,
}

/// The report of a suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteReport {
    /// The name.
    pub name: String,
    /// The file.
    pub file: String,
    /// The tests, in the order of the file; then `teardown` and `HTTP mocks` if they failed.
    pub tests: Vec<TestReport>,
    /// The number of tests excluded by a filter, a tag or `only`.
    pub left_out: usize,
}

impl SuiteReport {
    /// True if no test failed.
    pub fn passed(&self) -> bool {
        !self.tests.iter().any(|test| matches!(test.outcome, TestOutcome::Failed(_)))
    }
}

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

/// Parts of a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailureDetails {
    /// The line of the step that failed, from 1. Absent if no step did, such as when the server did not start.
    pub line: Option<usize>,
    /// The step that failed, such as `step 2 (call)`.
    pub step: Option<String>,
    /// The problem, without requests and logs.
    pub message: String,
    /// The expectation that was not met.
    pub expected: Option<String>,
    /// What was found instead.
    pub actual: Option<String>,
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
    /// Parts of the failure, if the test failed.
    pub failure: Option<FailureDetails>,
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
    /// True if the run was stopped before its end. Tests that had not begun are reported as skipped.
    pub interrupted: bool,
}

impl SuiteReport {
    /// True if no test failed and the run was not interrupted.
    pub fn passed(&self) -> bool {
        !self.interrupted && !self.tests.iter().any(|test| matches!(test.outcome, TestOutcome::Failed(_)))
    }
}

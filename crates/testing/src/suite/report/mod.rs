//! Reports: readable, TAP 14, JUnit XML, JSON and annotations of GitHub. `live` writes those that need no end as tests end.

mod github;
mod json;
mod junit;
mod live;
mod readable;
mod tap;

pub use json::json;
pub use junit::junit;
pub use live::{Live, LiveFormat};
pub use readable::readable;
pub use tap::tap;

use super::results::{SuiteReport, TestOutcome};

impl SuiteReport {
    /// Panics with the readable report if a test failed.
    ///
    /// # Panics
    /// A test failed.
    #[track_caller]
    pub fn assert_passed(&self) {
        assert!(self.passed(), "{}", readable(std::slice::from_ref(self), false));
    }
}

/// Numbers of tests by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Totals {
    passed: usize,
    failed: usize,
    skipped: usize,
    left_out: usize,
}

impl Totals {
    fn of(reports: &[SuiteReport]) -> Self {
        let mut totals = Self::default();
        for report in reports {
            totals.left_out += report.left_out;
            for test in &report.tests {
                *match test.outcome {
                    TestOutcome::Passed => &mut totals.passed,
                    TestOutcome::Failed(_) => &mut totals.failed,
                    TestOutcome::Skipped(_) => &mut totals.skipped,
                } += 1;
            }
        }
        totals
    }

    fn tests(self) -> usize {
        self.passed + self.failed + self.skipped
    }
}

//! A report in JSON.

use serde_json::{Value, json};

use super::Totals;
use crate::{
    base::text::shorten,
    suite::results::{FailureDetails, SuiteReport, TestOutcome, TestReport},
};

/// Longest text of a failure's part, in characters.
const LONGEST: usize = 10_000;

/// A report in JSON: `{passed, interrupted, totals, suites: [{name, file, leftOut, tests: [{name, line, outcome, message, failure, durationMs,
/// notes}]}]}`. `failure` is `{line, step, message, expected, actual}`.
pub fn json(reports: &[SuiteReport]) -> Value {
    let totals = Totals::of(reports);
    let suite = |report: &SuiteReport| {
        let tests: Vec<Value> = report.tests.iter().map(test).collect();
        json!({"name": report.name, "file": report.file, "leftOut": report.left_out, "tests": tests})
    };
    json!({
        "passed": reports.iter().all(SuiteReport::passed),
        "interrupted": reports.iter().any(|report| report.interrupted),
        "totals": {
            "tests": totals.tests(),
            "passed": totals.passed,
            "failed": totals.failed,
            "skipped": totals.skipped,
            "leftOut": totals.left_out,
        },
        "suites": reports.iter().map(suite).collect::<Vec<_>>(),
    })
}

fn test(test: &TestReport) -> Value {
    let (outcome, message) = match &test.outcome {
        TestOutcome::Passed => ("passed", None),
        TestOutcome::Skipped(why) => ("skipped", Some(why)),
        TestOutcome::Failed(why) => ("failed", Some(why)),
    };
    let ms = (test.duration.as_secs_f64() * 1e6).round() / 1e3;
    json!({
        "name": test.name,
        "line": test.line,
        "outcome": outcome,
        "message": message,
        "failure": test.failure.as_ref().map(failure),
        "durationMs": ms,
        "notes": test.notes,
    })
}

fn failure(details: &FailureDetails) -> Value {
    let short = |text: &Option<String>| text.as_ref().map(|text| shorten(text, LONGEST));
    json!({
        "line": details.line,
        "step": details.step,
        "message": shorten(&details.message, LONGEST),
        "expected": short(&details.expected),
        "actual": short(&details.actual),
    })
}

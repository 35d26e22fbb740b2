//! A report in TAP, version 14.

use gatewright_findings::printable_lines;

use super::Totals;
use crate::suite::results::{SuiteReport, TestOutcome, TestReport};

/// The first line.
pub(super) const VERSION: &str = "TAP version 14\n";

/// A report in TAP, version 14.
pub fn tap(reports: &[SuiteReport]) -> String {
    let mut text = format!("{VERSION}{}", plan(reports));
    let tests = reports.iter().flat_map(|report| report.tests.iter().map(move |test| (report, test)));
    for (number, (report, test)) in tests.enumerate() {
        text.push_str(&line(number + 1, &report.name, &report.file, test));
    }
    if reports.iter().any(|report| report.interrupted) {
        text.push_str(INTERRUPTED);
    }
    text
}

/// The last line of a run that was interrupted.
pub(super) const INTERRUPTED: &str = "Bail out! the run was interrupted\n";

/// The number of tests.
pub(super) fn plan(reports: &[SuiteReport]) -> String {
    format!("1..{}\n", Totals::of(reports).tests())
}

/// The lines of a test.
pub(super) fn line(number: usize, suite: &str, file: &str, test: &TestReport) -> String {
    let name = format!("{suite} > {}", test.name);
    let name = name.replace('\\', "\\\\").replace('#', "\\#").replace('\n', " ");
    let lines = match &test.outcome {
        TestOutcome::Passed => {
            let note = |note: &String| format!("# {}\n", note.replace('\n', " "));
            let notes: String = test.notes.iter().map(note).collect();
            format!("ok {number} - {name}\n{notes}")
        }
        TestOutcome::Skipped(why) => format!("ok {number} - {name} # SKIP {}\n", why.replace('\n', " ")),
        TestOutcome::Failed(why) => {
            let why = why.replace('\n', "\n    ");
            let line = test.failure.as_ref().and_then(|failure| failure.line).or(test.line);
            let at = line.map_or_else(String::new, |line| format!("\n  at: {file}:{line}"));
            format!("not ok {number} - {name}\n  ---\n  message: |\n    {why}{at}\n  ...\n")
        }
    };
    printable_lines(&lines).into_owned()
}

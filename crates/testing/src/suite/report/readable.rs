//! A report for people.

use std::{fmt::Write as _, time::Duration};

use gatewright_findings::printable_lines;

use super::Totals;
use crate::base::text::one_line;
use crate::suite::results::{SuiteReport, TestOutcome, TestReport};

/// A report for people, with `colours` for a terminal.
pub fn readable(reports: &[SuiteReport], colours: bool) -> String {
    let style = Style { colours };
    let mut text = String::new();
    for report in reports {
        text.push_str(&style.suite(&report.name, &report.file));
        for test in &report.tests {
            text.push_str(&style.test("", test));
        }
        text.push('\n');
    }
    text.push_str(&style.totals(reports));
    text
}

/// The look of a report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) colours: bool,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        match self.colours {
            true => format!("\x1b[{code}m{}\x1b[0m", printable_lines(text)),
            false => printable_lines(text).into_owned(),
        }
    }

    pub(super) fn suite(self, name: &str, file: &str) -> String {
        let file = if name == file { String::new() } else { self.paint("2", &format!("  {file}")) };
        format!("{}{file}\n", self.paint("1", name))
    }

    /// The lines of a test; `suite` stands before its name.
    pub(super) fn test(self, suite: &str, test: &TestReport) -> String {
        let took = self.paint("2", &format!("({})", duration(test.duration)));
        let name = one_line(&format!("{suite}{}", test.name));
        match &test.outcome {
            TestOutcome::Passed => {
                let note =
                    |note: &String| format!("\n      {} {}", self.paint("33", "!"), printable_lines(note));
                let notes: String = test.notes.iter().map(note).collect();
                format!("  {} {name} {took}{notes}\n", self.paint("32", "✓"))
            }
            TestOutcome::Failed(why) => {
                let why = printable_lines(why).replace('\n', "\n      ");
                format!("  {} {name} {took}\n      {why}\n", self.paint("31", "✗"))
            }
            TestOutcome::Skipped(why) => {
                let why = self.paint("2", &format!("(skipped: {why})"));
                format!("  {} {name} {why}\n", self.paint("33", "-"))
            }
        }
    }

    /// The last line: the numbers of tests.
    pub(super) fn totals(self, reports: &[SuiteReport]) -> String {
        let totals = Totals::of(reports);
        let mut text = format!("{} passed", totals.passed);
        let more = [(totals.failed, "failed"), (totals.skipped, "skipped"), (totals.left_out, "left out")];
        for (count, what) in more.into_iter().filter(|(count, _)| *count > 0) {
            // A `String` takes everything.
            let _ = write!(text, ", {count} {what}");
        }
        if reports.iter().any(|report| report.interrupted) {
            text.push_str("; interrupted");
        }
        let colour = if reports.iter().all(SuiteReport::passed) { "32" } else { "31" };
        format!("{}\n", self.paint(colour, &text))
    }
}

fn duration(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.1} s"),
        seconds => format!("{:.0} ms", seconds * 1e3),
    }
}

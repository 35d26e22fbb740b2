//! A report in JUnit XML.

use std::fmt::Write as _;

use super::Totals;
use crate::suite::results::{SuiteReport, TestOutcome, TestReport};

/// A report in JUnit XML as pytest and Jest write it: `file` and `line` of each test, totals, and in a failure what was expected and
/// found.
pub fn junit(reports: &[SuiteReport]) -> String {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"gatewright test\" {}>\n",
        totals(reports)
    );
    for report in reports {
        // A `String` takes everything.
        let _ = writeln!(
            text,
            "  <testsuite name=\"{}\" {} file=\"{}\">",
            escaped(&report.name),
            totals(std::slice::from_ref(report)),
            escaped(&report.file),
        );
        for test in &report.tests {
            text.push_str(&case(report, test));
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn totals(reports: &[SuiteReport]) -> String {
    let totals = Totals::of(reports);
    let tests = reports.iter().flat_map(|report| &report.tests);
    let seconds: f64 = tests.map(|test| test.duration.as_secs_f64()).sum();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{seconds:.3}\"",
        totals.tests(),
        totals.failed,
        totals.skipped,
    )
}

fn case(report: &SuiteReport, test: &TestReport) -> String {
    let line = test.failure.as_ref().and_then(|failure| failure.line).or(test.line);
    let line = line.map_or_else(String::new, |line| format!(" line=\"{line}\""));
    let head = format!(
        "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\" file=\"{}\"{line}",
        escaped(&report.name),
        escaped(&test.name),
        test.duration.as_secs_f64(),
        escaped(&report.file),
    );
    match &test.outcome {
        TestOutcome::Passed if test.notes.is_empty() => format!("{head}/>\n"),
        TestOutcome::Passed => {
            format!("{head}><system-out>{}</system-out></testcase>\n", escaped(&test.notes.join("\n")))
        }
        TestOutcome::Skipped(why) => format!("{head}><skipped message=\"{}\"/></testcase>\n", escaped(why)),
        TestOutcome::Failed(why) => {
            let details = test.failure.as_ref();
            let kind = match details {
                Some(details) if details.expected.is_some() => "expectation",
                _ => "failure",
            };
            let first = escaped(why.lines().next().unwrap_or_default());
            format!(
                "{head}><failure type=\"{kind}\" message=\"{first}\">{}</failure></testcase>\n",
                escaped(why)
            )
        }
    }
}

fn escaped(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => clean.push_str("&amp;"),
            '<' => clean.push_str("&lt;"),
            '>' => clean.push_str("&gt;"),
            '"' => clean.push_str("&quot;"),
            '\n' | '\t' => clean.push(c),
            // XML 1.0 §2.2 does not allow other control characters.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => clean.push('\u{fffd}'),
            c => clean.push(c),
        }
    }
    clean
}

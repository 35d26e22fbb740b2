//! Reports for machines: TAP 14 and JUnit XML.

use std::fmt::Write;

use super::{SuiteReport, TestOutcome};

/// TAP, version 14.
pub fn tap(reports: &[SuiteReport]) -> String {
    let count: usize = reports.iter().map(|report| report.tests.len()).sum();
    let mut text = format!("TAP version 14\n1..{count}\n");
    let mut number = 0;
    for report in reports {
        for test in &report.tests {
            number += 1;
            let name = format!("{} > {}", report.name, test.name).replace('#', "\\#");
            let _ = match &test.outcome {
                TestOutcome::Passed => writeln!(text, "ok {number} - {name}"),
                TestOutcome::Skipped(why) => writeln!(text, "ok {number} - {name} # SKIP {why}"),
                TestOutcome::Failed(why) => {
                    let why = why.replace('\n', "\n    ");
                    writeln!(text, "not ok {number} - {name}\n  ---\n  message: |\n    {why}\n  ...")
                }
            };
        }
    }
    text
}

/// JUnit XML, as CI systems read it.
pub fn junit(reports: &[SuiteReport]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for report in reports {
        let count = |wanted: fn(&TestOutcome) -> bool| {
            report.tests.iter().filter(|test| wanted(&test.outcome)).count()
        };
        let seconds: f64 = report.tests.iter().map(|test| test.duration.as_secs_f64()).sum();
        let _ = writeln!(
            text,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{seconds:.3}\">",
            escaped(&report.name),
            report.tests.len(),
            count(|outcome| matches!(outcome, TestOutcome::Failed(_))),
            count(|outcome| matches!(outcome, TestOutcome::Skipped(_))),
        );
        for test in &report.tests {
            let head = format!(
                "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
                escaped(&report.name),
                escaped(&test.name),
                test.duration.as_secs_f64()
            );
            let _ = match &test.outcome {
                TestOutcome::Passed => writeln!(text, "{head}/>"),
                TestOutcome::Skipped(why) => {
                    writeln!(text, "{head}><skipped message=\"{}\"/></testcase>", escaped(why))
                }
                TestOutcome::Failed(why) => {
                    let first = why.lines().next().unwrap_or_default();
                    let (first, why) = (escaped(first), escaped(why));
                    writeln!(text, "{head}><failure message=\"{first}\">{why}</failure></testcase>")
                }
            };
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
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
            // XML 1.0 has no place for the others.
            c if c.is_control() => clean.push('\u{fffd}'),
            c => clean.push(c),
        }
    }
    clean
}

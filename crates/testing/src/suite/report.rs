//! Reports: readable, TAP 14, JUnit XML and JSON.

use std::{fmt::Write, time::Duration};

use serde_json::{Value, json};

use super::results::{SuiteReport, TestOutcome};

/// A report for people, with `colours` for a terminal.
pub fn readable(reports: &[SuiteReport], colours: bool) -> String {
    let paint = |code: &str, text: &str| match colours {
        true => format!("\x1b[{code}m{text}\x1b[0m"),
        false => text.to_owned(),
    };
    let (mut text, mut counts, mut left_out) = (String::new(), [0; 3], 0);
    for report in reports {
        left_out += report.left_out;
        let file = if report.name == report.file {
            String::new()
        } else {
            paint("2", &format!("  {}", report.file))
        };
        let _ = writeln!(text, "{}{file}", paint("1", &report.name));
        for test in &report.tests {
            let took = paint("2", &format!("({})", duration(test.duration)));
            let _ = match &test.outcome {
                TestOutcome::Passed => {
                    counts[0] += 1;
                    let notes: String = test
                        .notes
                        .iter()
                        .map(|note| format!("\n      {} {note}", paint("33", "!")))
                        .collect();
                    writeln!(text, "  {} {} {took}{notes}", paint("32", "✓"), test.name)
                }
                TestOutcome::Failed(why) => {
                    counts[1] += 1;
                    let why = why.replace('\n', "\n      ");
                    writeln!(text, "  {} {} {took}\n      {why}", paint("31", "✗"), test.name)
                }
                TestOutcome::Skipped(why) => {
                    counts[2] += 1;
                    writeln!(
                        text,
                        "  {} {} {}",
                        paint("33", "-"),
                        test.name,
                        paint("2", &format!("(skipped: {why})"))
                    )
                }
            };
        }
        text.push('\n');
    }
    let [passed, failed, skipped] = counts;
    let mut parts = vec![format!("{passed} passed")];
    let more = [(failed, "failed"), (skipped, "skipped"), (left_out, "left out")];
    parts.extend(
        more.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
    );
    let colour = if failed > 0 { "31" } else { "32" };
    let _ = writeln!(text, "{}", paint(colour, &parts.join(", ")));
    text
}

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

fn duration(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.1} s"),
        seconds => format!("{:.0} ms", seconds * 1e3),
    }
}

/// A report in TAP, version 14.
pub fn tap(reports: &[SuiteReport]) -> String {
    let count: usize = reports.iter().map(|report| report.tests.len()).sum();
    let mut text = format!("TAP version 14\n1..{count}\n");
    let mut number = 0;
    for report in reports {
        for test in &report.tests {
            number += 1;
            let name = format!("{} > {}", report.name, test.name);
            let name = name.replace('\\', "\\\\").replace('#', "\\#").replace('\n', " ");
            let _ = match &test.outcome {
                TestOutcome::Passed => {
                    let notes: String =
                        test.notes.iter().map(|note| format!("\n# {}", note.replace('\n', " "))).collect();
                    writeln!(text, "ok {number} - {name}{notes}")
                }
                TestOutcome::Skipped(why) => {
                    writeln!(text, "ok {number} - {name} # SKIP {}", why.replace('\n', " "))
                }
                TestOutcome::Failed(why) => {
                    let why = why.replace('\n', "\n    ");
                    let at =
                        test.line.map_or_else(String::new, |line| format!("\n  at: {}:{line}", report.file));
                    writeln!(text, "not ok {number} - {name}\n  ---\n  message: |\n    {why}{at}\n  ...")
                }
            };
        }
    }
    text
}

/// A report in JUnit XML, valid for Jenkins (`junit-10.xsd` of its xUnit plugin) and for Surefire.
pub fn junit(reports: &[SuiteReport]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for report in reports {
        let count = |wanted: fn(&TestOutcome) -> bool| {
            report.tests.iter().filter(|test| wanted(&test.outcome)).count()
        };
        let seconds: f64 = report.tests.iter().map(|test| test.duration.as_secs_f64()).sum();
        let _ = writeln!(
            text,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{seconds:.3}\" file=\"{}\">",
            escaped(&report.name),
            report.tests.len(),
            count(|outcome| matches!(outcome, TestOutcome::Failed(_))),
            count(|outcome| matches!(outcome, TestOutcome::Skipped(_))),
            escaped(&report.file),
        );
        for test in &report.tests {
            let head = format!(
                "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
                escaped(&report.name),
                escaped(&test.name),
                test.duration.as_secs_f64(),
            );
            let _ = match &test.outcome {
                TestOutcome::Passed if test.notes.is_empty() => writeln!(text, "{head}/>"),
                TestOutcome::Passed => {
                    let notes = escaped(&test.notes.join("\n"));
                    writeln!(text, "{head}><system-out>{notes}</system-out></testcase>")
                }
                TestOutcome::Skipped(why) => {
                    writeln!(text, "{head}><skipped message=\"{}\"/></testcase>", escaped(why))
                }
                TestOutcome::Failed(why) => {
                    let first = why.lines().next().unwrap_or_default();
                    let (first, why) = (escaped(first), escaped(why));
                    writeln!(
                        text,
                        "{head}><failure type=\"expectation\" message=\"{first}\">{why}</failure></testcase>"
                    )
                }
            };
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

/// A report in JSON: `{passed, suites: [{name, file, leftOut, tests: [{name, line, outcome, message, durationMs, notes}]}]}`.
pub fn json(reports: &[SuiteReport]) -> Value {
    let suite = |report: &SuiteReport| {
        let tests = report.tests.iter().map(|test| {
            let (outcome, message) = match &test.outcome {
                TestOutcome::Passed => ("passed", None),
                TestOutcome::Skipped(why) => ("skipped", Some(why)),
                TestOutcome::Failed(why) => ("failed", Some(why)),
            };
            let ms = (test.duration.as_secs_f64() * 1e6).round() / 1e3;
            json!({"name": test.name, "line": test.line, "outcome": outcome, "message": message, "durationMs": ms, "notes": test.notes})
        });
        json!({"name": report.name, "file": report.file, "leftOut": report.left_out, "tests": tests.collect::<Vec<_>>()})
    };
    json!({
        "passed": reports.iter().all(SuiteReport::passed),
        "suites": reports.iter().map(suite).collect::<Vec<_>>(),
    })
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

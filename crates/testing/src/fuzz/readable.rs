//! The report of a run as text.

use std::fmt::Write as _;

use gatewright_findings::printable_lines;

use super::finding::{FuzzReport, Severity};
use crate::base::text::{one_line, shorten};

/// The report as text for people, with control characters escaped: much of it is text of the server.
pub fn readable(report: &FuzzReport) -> String {
    let mut text = String::new();
    let called = report.tools.iter().filter(|tool| tool.left_out.is_none());
    let (valid, invalid) =
        called.clone().fold((0, 0), |sum, tool| (sum.0 + tool.valid, sum.1 + tool.invalid));
    let _ = writeln!(
        text,
        "{} of {} tools called: {valid} times with valid and {invalid} times with invalid input (seed {})",
        called.count(),
        report.tools.len(),
        report.seed
    );
    for one in &report.findings {
        let severity = match one.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let times = if one.times == 1 { String::new() } else { format!(" ({} inputs)", one.times) };
        let _ = writeln!(text, "\n{severity}: {}: {}{times}", one_line(&one.tool), one_line(&one.problem));
        let _ = writeln!(text, "  with {}", shorten(&one.arguments.to_string(), 600));
        if !one.answer.is_empty() {
            let _ = writeln!(text, "  answer: {}", one.answer.replace('\n', "\n    "));
        }
    }
    let left_out: Vec<_> = report.tools.iter().filter(|tool| tool.left_out.is_some()).collect();
    if !left_out.is_empty() {
        text.push_str("\nnot called:\n");
    }
    for tool in left_out {
        let _ = writeln!(
            text,
            "  {}: {}",
            one_line(&tool.name),
            one_line(tool.left_out.as_deref().unwrap_or_default())
        );
    }
    if let Some(stopped) = &report.stopped {
        let _ = writeln!(text, "\nstopped early: {}", one_line(stopped));
    }
    printable_lines(&text).into_owned()
}

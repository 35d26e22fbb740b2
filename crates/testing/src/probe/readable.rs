//! The report of a probe as text.

use std::fmt::Write as _;

use gatewright_findings::printable_lines;

use super::report::ProbeReport;
use crate::{
    base::text::{one_line, shorten},
    fuzz::Severity,
};

/// The report as text for people, with control characters escaped: much of it is text of the server.
pub fn readable(report: &ProbeReport) -> String {
    let mut text = String::new();
    let server = &report.server;
    let grade = report.grade.map_or_else(|| "none".to_owned(), |grade| format!("{grade:?}"));
    let _ = writeln!(text, "{}", one_line(&report.target));
    if report.is_reached() {
        let info = &server["info"];
        let _ = writeln!(
            text,
            "{} {}, revision {} (also {}), {} tools, {} resources, {} prompts",
            one_line(info["name"].as_str().unwrap_or("?")),
            one_line(info["version"].as_str().unwrap_or("?")),
            one_line(server["revision"].as_str().unwrap_or("?")),
            one_line(&list(&server["revisions"])),
            server["tools"],
            server["resources"],
            server["prompts"],
        );
    }
    let _ = writeln!(text, "\ngrade {grade} ({:.0} s)", report.seconds);
    for one in &report.areas {
        let grade = one.grade.map_or_else(|| "–".to_owned(), |grade| format!("{grade:?}"));
        let of_area = report.findings.iter().filter(|finding| finding.area == one.area);
        let count = |severity| of_area.clone().filter(|finding| finding.severity == severity).count();
        let told = match (&one.left_out, one.grade) {
            (Some(reason), None) => one_line(reason),
            (None, None) => "not tried".to_owned(),
            _ => format!(
                "{} checks: {} errors, {} warnings, {} notes",
                one.checks,
                count(Severity::Error),
                count(Severity::Warning),
                count(Severity::Note)
            ),
        };
        let _ = writeln!(text, "  {:<10} {grade}  {told}", one.area.name());
    }
    for one in &report.findings {
        let severity = match one.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let _ = writeln!(text, "\n{severity} ({}): {}", one.area.name(), one_line(&one.problem));
        if !one.request.is_null() {
            let _ = writeln!(text, "  request: {}", shorten(&one.request.to_string(), 600));
        }
        if !one.answer.is_empty() {
            let _ = writeln!(text, "  answer:  {}", one.answer.trim().replace('\n', "\n           "));
        }
    }
    let left_out = report.fuzz.iter().flat_map(|fuzz| &fuzz.tools).filter(|tool| tool.left_out.is_some());
    let left_out: Vec<&str> = left_out.map(|tool| tool.name.as_str()).collect();
    if !left_out.is_empty() {
        let _ = writeln!(
            text,
            "\ntools that were not called, since they may change something: {}",
            shorten(&one_line(&left_out.join(", ")), 600)
        );
    }
    if let Some(stopped) = &report.stopped {
        let _ = writeln!(text, "\nended early: {}", one_line(stopped));
    }
    printable_lines(&text).into_owned()
}

fn list(revisions: &serde_json::Value) -> String {
    let names = revisions.as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

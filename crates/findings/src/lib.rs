//! Problems in files that people write (configurations, test suites): every bad field, its line, and a suggestion.
//!
//! A [`Schema`] finds violations of a JSON Schema, callers add findings of their own, and [`Lines`] maps each to its line.
//!
//! ```
//! use gatewright_findings::{Format, Lines, Schema, with_lines};
//! use serde_json::json;
//!
//! let schema = Schema::new(json!({"properties": {"port": {"type": "integer"}}, "additionalProperties": false})).unwrap();
//! let findings = schema.findings(&json!({"prot": 3000}));
//! let findings = with_lines(findings, &Lines::of("# mine\nprot: 3000\n", Format::Yaml));
//! assert_eq!(findings[0].to_string(), "line 2: prot: unknown key; did you mean `port`?");
//! ```
#![forbid(unsafe_code)]

mod lines;
mod printable;
mod schema;
mod wording;

use std::{fmt, path::Path};

pub use lines::{Format, Lines};
pub use printable::{must_be_escaped, printable, printable_lines, write_printable};
pub use schema::{Schema, SchemaError};
use serde::Serialize;
pub use wording::parser_problem;

/// One bad field. Its texts may repeat keys and values of the file: they are printed and serialized with control characters escaped, and
/// shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// JSON pointer of the field (RFC 6901).
    #[serde(skip)]
    pub pointer: String,
    /// The same as people write it: `apps.crm.url`.
    #[serde(serialize_with = "printable::serialize::<_, LONGEST_PATH>")]
    pub path: String,
    /// The file, where it is not the one that is looked at; see [`Finding::in_file`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in the file, from 1.
    pub line: Option<usize>,
    /// The problem, and how to fix it.
    #[serde(serialize_with = "printable::serialize::<_, LONGEST_PROBLEM>")]
    pub problem: String,
}

impl Finding {
    /// A finding at a JSON pointer, without a line.
    pub fn new(pointer: &str, problem: impl Into<String>) -> Self {
        let path: Vec<String> = pointer.split('/').skip(1).map(unescape).collect();
        Self {
            pointer: pointer.to_owned(),
            path: path.join("."),
            file: None,
            line: None,
            problem: problem.into(),
        }
    }

    /// A finding at a path as code names it, such as `auth.clients[0].name`, without a line. No key may contain `.` or `[`.
    pub fn at(path: &str, problem: impl Into<String>) -> Self {
        let parts = path.split(['.', '[']).map(|part| format!("/{}", part.trim_end_matches(']')));
        Self::new(&parts.collect::<String>(), problem)
    }

    /// The same finding, in the file at `path`. Its name is kept as it can be printed.
    #[must_use]
    pub fn in_file(mut self, path: &Path) -> Self {
        self.file = Some(printable(&path.display().to_string(), LONGEST_FILE));
        self
    }

    /// Returns the path and the problem, for output that has the line elsewhere.
    pub fn without_line(&self) -> String {
        let problem = printable(&self.problem, LONGEST_PROBLEM);
        match self.path.as_str() {
            "" => problem,
            path => format!("{}: {problem}", printable(path, LONGEST_PATH)),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.without_line())
    }
}

/// Most findings of a file that are listed.
const MOST_LISTED: usize = 100;
/// Longest path of a finding in output, in characters.
const LONGEST_PATH: usize = 300;
/// Longest name of a file in output, in characters.
const LONGEST_FILE: usize = 1_000;
/// Longest problem in output, in characters.
const LONGEST_PROBLEM: usize = 2_000;

/// Returns the findings to list, at most 100, and the number of those that are left out.
pub fn first(findings: &[Finding]) -> (&[Finding], usize) {
    let (listed, rest) = findings.split_at(findings.len().min(MOST_LISTED));
    (listed, rest.len())
}

/// A key escaped for a JSON pointer.
pub fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// A part of a JSON pointer as a key.
pub fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// Adds lines to the findings and sorts them by line. Duplicates are removed.
pub fn with_lines(mut findings: Vec<Finding>, lines: &Lines) -> Vec<Finding> {
    for finding in &mut findings {
        finding.line = finding.line.or_else(|| lines.nearest(&finding.pointer));
    }
    findings.sort_by(|a, b| (a.line, &a.pointer).cmp(&(b.line, &b.pointer)));
    findings.dedup();
    findings
}

/// The candidate most similar to `wanted`, ignoring case: a Jaro-Winkler similarity of 0.7 or more. `None` for a name of more than
/// 256 bytes.
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const NEAR: f64 = 0.7;
    const LONGEST: usize = 256;
    if wanted.len() > LONGEST {
        return None;
    }
    let wanted = wanted.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(similarity, _)| *similarity >= NEAR)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

/// The problem with an unknown name: suggests the nearest one, or lists all.
pub fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("unknown {what}; did you mean `{near}`?"),
        None => format!("unknown {what}; known here: {}", known.into_iter().collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_an_index_becomes_a_pointer() {
        let finding = Finding::at("auth.clients[0].name", "x");
        assert_eq!((&*finding.pointer, &*finding.path), ("/auth/clients/0/name", "auth.clients.0.name"));
    }

    #[test]
    fn keys_and_values_of_the_file_are_printed_and_serialized_without_control_characters_and_shortened() {
        let key = format!("\u{1b}[31ma\nb\u{202e}{}", "x".repeat(10_000));
        let finding = Finding::new(&format!("/apps/{key}"), format!("`{key}`: unknown"));
        let text = finding.to_string();
        assert!(text.starts_with("apps.\\u{1b}[31ma\\nb\\u{202e}xx"), "{text}");
        for text in [text, finding.without_line(), serde_json::to_string(&finding).unwrap()] {
            assert!(!text.contains(char::is_control) && text.len() < 3_000, "{text:?}");
        }
    }

    #[test]
    fn a_file_full_of_problems_has_a_short_list() {
        let many = vec![Finding::new("/a", "x"); 5_000];
        let (listed, more) = first(&many);
        assert_eq!((listed.len(), more), (100, 4_900));
        assert_eq!(first(&many[..3]).1, 0);
    }
}

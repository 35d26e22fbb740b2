//! What is wrong with a file people wrote (a configuration, a test suite): every bad field, its line, and what was probably
//! meant.
//!
//! A [`Schema`] finds what the JSON Schema refuses; whoever knows more adds findings of his own by JSON pointer; [`Lines`] says
//! on which line each is.
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
mod schema;

use std::fmt;

pub use lines::{Format, Lines};
pub use schema::{Schema, SchemaError};
use serde::Serialize;

/// One bad field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// JSON pointer of the field (RFC 6901).
    #[serde(skip)]
    pub pointer: String,
    /// The same as people write it: `apps.crm.url`.
    pub path: String,
    /// Line in the file, from 1.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub problem: String,
}

impl Finding {
    /// A finding at a JSON pointer, without a line.
    pub fn new(pointer: &str, problem: impl Into<String>) -> Self {
        let path: Vec<String> =
            pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
        Self { pointer: pointer.to_owned(), path: path.join("."), line: None, problem: problem.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.problem)
    }
}

/// A key as a part of a JSON pointer.
pub fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The findings in the order of the file, each once.
pub fn with_lines(mut findings: Vec<Finding>, lines: &Lines) -> Vec<Finding> {
    for finding in &mut findings {
        finding.line = finding.line.or_else(|| lines.nearest(&finding.pointer));
    }
    findings.sort_by(|a, b| (a.line, &a.pointer).cmp(&(b.line, &b.pointer)));
    findings.dedup();
    findings
}

/// The candidate most like `wanted`, when one is like it at all (Jaro-Winkler of 0.7 or more, case apart); none for a name of more
/// than 256 bytes.
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
        .filter(|(likeness, _)| *likeness >= NEAR)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

/// What to say of a name that is not known: the nearest one, or all there are.
pub fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("unknown {what}; did you mean `{near}`?"),
        None => format!("unknown {what}; known here: {}", known.into_iter().collect::<Vec<_>>().join(", ")),
    }
}

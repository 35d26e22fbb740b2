//! Findings, grades and the report of a probe.

use serde::Serialize;
use serde_json::Value;

use crate::{base::text::shorten, fuzz::Severity};

/// A part of what is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Area {
    /// Start, handshake, end.
    Lifecycle,
    /// What the revision requires of every server.
    Protocol,
    /// Shapes of messages.
    Shapes,
    /// Tools with valid, boundary and invalid input.
    Tools,
    /// What Streamable HTTP requires.
    Http,
    /// Tokens and metadata.
    Auth,
}

impl Area {
    /// All areas, in the order of the report.
    pub const ALL: [Self; 6] =
        [Self::Lifecycle, Self::Protocol, Self::Shapes, Self::Tools, Self::Http, Self::Auth];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lifecycle => "lifecycle",
            Self::Protocol => "protocol",
            Self::Shapes => "shapes",
            Self::Tools => "tools",
            Self::Http => "http",
            Self::Auth => "auth",
        }
    }
}

/// The grade of an area, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Grade {
    /// Nothing but notes was found.
    A,
    /// One warning.
    B,
    /// Several warnings.
    C,
    /// One error.
    D,
    /// Several errors.
    F,
}

/// A finding, with the request that shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The area.
    pub area: Area,
    /// The weight.
    pub severity: Severity,
    /// The problem, as a sentence.
    pub problem: String,
    /// The request, as sent: a JSON-RPC message, or method, URL and headers of an HTTP request. Null if there is none.
    pub request: Value,
    /// The answer, shortened; empty if there was none.
    pub answer: String,
}

impl Finding {
    pub(super) fn new(area: Area, severity: Severity, problem: impl Into<String>) -> Self {
        Self { area, severity, problem: problem.into(), request: Value::Null, answer: String::new() }
    }

    pub(super) fn request(mut self, request: Value) -> Self {
        self.request = request;
        self
    }

    pub(super) fn answer(mut self, answer: &str) -> Self {
        self.answer = shorten(answer, 500);
        self
    }
}

/// The grade of one area.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AreaReport {
    /// The area.
    pub area: Area,
    /// The grade; `None` if nothing was tried.
    pub grade: Option<Grade>,
    /// Number of things that were tried.
    pub checks: usize,
    /// The reason if nothing was tried.
    pub left_out: Option<String>,
}

/// The report of a probe.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProbeReport {
    /// The command or address.
    pub target: String,
    /// Name and version of the server, revision, numbers of tools, resources and prompts; what of it is known.
    pub server: Value,
    /// The worst grade; `None` if the server could not be reached.
    pub grade: Option<Grade>,
    /// The areas.
    pub areas: Vec<AreaReport>,
    /// The findings, by area and the heaviest first.
    pub findings: Vec<Finding>,
    /// The calls of tools.
    pub fuzz: Option<crate::fuzz::FuzzReport>,
    /// Duration in seconds.
    pub seconds: f64,
    /// The reason if the probe ended early.
    pub stopped: Option<String>,
}

impl ProbeReport {
    /// True if the server answered a handshake.
    pub fn is_reached(&self) -> bool {
        self.grade.is_some()
    }

    /// True if a finding weighs as much as `least`.
    pub fn has(&self, least: Severity) -> bool {
        self.findings.iter().any(|one| one.severity >= least)
    }
}

/// The grade of these weights.
pub(super) fn grade(severities: impl Iterator<Item = Severity>) -> Grade {
    let (mut warnings, mut errors) = (0, 0);
    for severity in severities {
        match severity {
            Severity::Note => {}
            Severity::Warning => warnings += 1,
            Severity::Error => errors += 1,
        }
    }
    match (errors, warnings) {
        (0, 0) => Grade::A,
        (0, 1) => Grade::B,
        (0, _) => Grade::C,
        (1, _) => Grade::D,
        _ => Grade::F,
    }
}

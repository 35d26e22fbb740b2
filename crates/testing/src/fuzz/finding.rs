//! Broken promises, and the report of a run.

use serde::Serialize;
use serde_json::Value;

/// The name in place of a tool's, for findings of the list of tools.
pub(crate) const LIST: &str = "tools/list";

/// A promise that every tool keeps, whatever it is called with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Promise {
    /// The server goes on after the call.
    Alive,
    /// The server answers in time.
    Answers,
    /// HTTP answers are not 5xx, and JSON-RPC errors not internal ones.
    NoInternalError,
    /// Answers fit MCP's schema and the tool's own.
    Shape,
    /// Answers have no stack trace.
    NoTrace,
    /// Answers have no secret.
    NoSecret,
    /// Input that the schema does not allow is refused.
    RefusesInvalid,
    /// Properties that the schema does not allow are refused.
    RefusesUnknown,
    /// Input that the schema allows is not refused as invalid.
    AcceptsValid,
    /// A tool with `readOnlyHint` changes nothing.
    ReadOnly,
}

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Wrong, and clients can live with it.
    Warning,
    /// Breaks clients, or must not be.
    Error,
}

impl Promise {
    /// The weight of breaking it.
    pub const fn severity(self) -> Severity {
        match self {
            Self::Alive | Self::Shape | Self::NoSecret | Self::ReadOnly => Severity::Error,
            Self::Answers | Self::NoInternalError | Self::NoTrace | Self::RefusesInvalid => Severity::Warning,
            Self::RefusesUnknown | Self::AcceptsValid => Severity::Note,
        }
    }
}

/// A broken promise, with the smallest input that was found to break it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Finding {
    /// The promise.
    pub promise: Promise,
    /// The weight.
    pub severity: Severity,
    /// The tool.
    pub tool: String,
    /// The input.
    pub arguments: Value,
    /// The problem, as a sentence.
    pub problem: String,
    /// The answer, shortened; empty if there was none.
    pub answer: String,
    /// Number of inputs that broke it in this way.
    pub times: usize,
}

/// The calls of one tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolReport {
    /// The name.
    pub name: String,
    /// Number of calls with valid input.
    pub valid: usize,
    /// Number of calls with invalid input.
    pub invalid: usize,
    /// The reason if it was not called.
    pub left_out: Option<String>,
}

/// The report of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FuzzReport {
    /// The seed; the same seed gives the same inputs.
    pub seed: u64,
    /// The tools, in the order of the server.
    pub tools: Vec<ToolReport>,
    /// The broken promises, the heaviest first.
    pub findings: Vec<Finding>,
    /// The reason if the run ended early.
    pub stopped: Option<String>,
    /// A suite that repeats the findings; empty without any.
    pub suite: String,
}

impl FuzzReport {
    /// True if a finding weighs as much as `least`.
    pub fn has(&self, least: Severity) -> bool {
        self.findings.iter().any(|one| one.severity >= least)
    }

    /// Number of calls.
    pub fn calls(&self) -> usize {
        self.tools.iter().map(|tool| tool.valid + tool.invalid).sum()
    }
}

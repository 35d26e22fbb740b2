//! Outcomes of runs, as their journals keep them.

use gatewright_agentscript::{Outcome, RunError};
use serde::{Deserialize, Serialize};

/// Result and console lines of a run, as its journal keeps them for comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeptOutcome {
    pub(crate) result: Kept,
    /// The result need not be that of another run.
    pub(crate) is_incidental: bool,
    /// A tool failed without a call: the gateway refused the plan before it ran.
    pub(crate) is_refused: bool,
    pub(crate) logs: Kept,
}

/// A text, or its digest if it is long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Kept {
    Text(String),
    Digest { sha256: String, bytes: usize },
}

/// Longest text that is kept whole, in bytes.
const WHOLE: usize = 2_048;

impl Kept {
    fn of(text: &str) -> Self {
        if text.len() <= WHOLE {
            return Self::Text(text.to_owned());
        }
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
        let sha256 = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Self::Digest { sha256, bytes: text.len() }
    }

    /// The text, or words for it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Digest { sha256, bytes } => format!("{bytes} bytes with SHA-256 {sha256}"),
        }
    }
}

impl KeptOutcome {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let result = match &outcome.result {
            Ok(value) => Kept::of(value.get()),
            Err(error) => Kept::of(&shown(error)),
        };
        let more = match outcome.logs_omitted {
            0 => String::new(),
            omitted => format!("\n{omitted} more lines"),
        };
        Self {
            result,
            is_incidental: outcome.result.as_ref().is_err_and(RunError::is_incidental),
            is_refused: matches!(outcome.result, Err(RunError::ToolError { .. })) && outcome.calls.is_empty(),
            logs: Kept::of(&(outcome.logs.join("\n") + &more)),
        }
    }
}

impl KeptOutcome {
    /// Line and column of the error, which [`shown`] wrote.
    pub(crate) fn place(&self) -> Option<(usize, usize)> {
        let Kept::Text(text) = &self.result else { return None };
        let (_, place) = text.strip_suffix(')')?.rsplit_once(" (line ")?;
        let (line, column) = place.split_once(", column ")?;
        Some((line.parse().ok()?, column.parse().ok()?))
    }
}

/// An error with its place.
fn shown(error: &RunError) -> String {
    let place = match error {
        RunError::SyntaxError { location, .. } => Some(location),
        RunError::IllegalAccess { location, .. }
        | RunError::RuntimeError { location, .. }
        | RunError::ToolError { location, .. } => location.as_ref(),
        _ => None,
    };
    let place = place.map(|at| format!(" (line {}, column {})", at.line, at.column)).unwrap_or_default();
    format!("{error}{place}")
}

//! Exit codes, and the output of errors.

use std::{path::Path, process::ExitCode};

use gatewright_findings::{Finding, first};

use crate::output::{OutputClosed, errln};

/// The command failed: a server that cannot start, a tool that returned an error.
pub const FAILED: u8 = 1;
/// The configuration or the command line is wrong. `clap` uses the same code.
pub const USAGE: u8 = 2;

/// An error in the configuration or the command line: printed as it is, with exit code [`USAGE`].
#[derive(Debug)]
pub struct BadConfig(pub String);

impl BadConfig {
    /// The problems in the file at `path`, one a line.
    pub fn of_file(path: &Path, findings: &[Finding]) -> Self {
        let (shown, more) = first(findings);
        let mut lines: Vec<String> = shown.iter().map(|finding| format!("  {finding}")).collect();
        lines.extend((more > 0).then(|| format!("  and {more} more")));
        let problems = if findings.len() == 1 { "problem" } else { "problems" };
        Self(format!("{} {problems} in {}:\n{}", findings.len(), path.display(), lines.join("\n")))
    }
}

impl std::fmt::Display for BadConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadConfig {}

/// Prints `error` with its causes to standard error. A reader of standard output who has read enough is no error.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if error.is::<OutputClosed>() {
        return ExitCode::SUCCESS;
    }
    errln!("error: {error:#}");
    ExitCode::from(if error.is::<BadConfig>() { USAGE } else { FAILED })
}

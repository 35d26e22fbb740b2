//! Exit codes, and the output of errors.

use std::{path::Path, process::ExitCode};

use gatewright_findings::Finding;

/// The command failed: a server that cannot start, a tool that returned an error.
pub const FAILED: u8 = 1;
/// The configuration or the command line is wrong. `clap` uses the same code.
pub const USAGE: u8 = 2;

/// An error in the configuration or the command line: printed as it is, with exit code [`USAGE`].
#[derive(Debug)]
pub struct BadConfig(pub String);

impl BadConfig {
    /// Every problem in the file at `path`, one a line.
    pub fn of_file(path: &Path, findings: &[Finding]) -> Self {
        let lines: Vec<String> = findings.iter().map(|finding| format!("  {finding}")).collect();
        let problems = if lines.len() == 1 { "problem" } else { "problems" };
        Self(format!("{} {problems} in {}:\n{}", lines.len(), path.display(), lines.join("\n")))
    }
}

impl std::fmt::Display for BadConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadConfig {}

/// Prints `error` with its causes to standard error.
pub fn report(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::from(if error.is::<BadConfig>() { USAGE } else { FAILED })
}

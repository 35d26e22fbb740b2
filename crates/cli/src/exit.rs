//! Exit codes, and how an error is told.

use std::process::ExitCode;

/// The command did not reach its end: a server that cannot start, a tool that failed.
pub const FAILED: u8 = 1;
/// The configuration or the command line is wrong. `clap` uses the same code.
pub const USAGE: u8 = 2;

/// An error of the configuration: told as it is, with [`USAGE`].
#[derive(Debug)]
pub struct BadConfig(pub String);

impl std::fmt::Display for BadConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadConfig {}

/// Tells `error` on standard error, causes included.
pub fn report(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::from(if error.is::<BadConfig>() { USAGE } else { FAILED })
}

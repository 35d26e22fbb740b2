//! `gatewright completions`.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;

/// Prints a completion script.
pub fn run(shell: Shell) -> anyhow::Result<ExitCode> {
    clap_complete::generate(shell, &mut Cli::command(), "gatewright", &mut std::io::stdout());
    Ok(ExitCode::SUCCESS)
}

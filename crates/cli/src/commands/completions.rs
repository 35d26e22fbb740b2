//! `gatewright completions`.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::{args::Cli, output};

/// Prints a completion script.
pub fn run(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "gatewright", &mut script);
    output::raw(&script)?;
    Ok(ExitCode::SUCCESS)
}

//! `gatewright eval`: measurements.

mod context;
mod ledger;
mod search;
mod tasks;

use std::process::ExitCode;

use crate::args::{EvalArgs, EvalCommand};

/// Runs one measurement.
pub async fn run(args: EvalArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        EvalCommand::Search(args) => search::run(args).await,
        EvalCommand::Context(args) => context::run(args).await,
    }
}

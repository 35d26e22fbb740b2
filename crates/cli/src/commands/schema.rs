//! `gatewright schema`.

use std::process::ExitCode;

use crate::{config, output};

/// Prints the JSON Schema of the configuration, or of test suites.
pub fn run(suite: bool) -> anyhow::Result<ExitCode> {
    let schema = if suite { gatewright_testing::suite::schema() } else { config::schema::schema()? };
    output::pretty_json(&schema)?;
    Ok(ExitCode::SUCCESS)
}

//! `gatewright schema`.

use std::process::ExitCode;

use crate::config;

/// Prints the JSON Schema of the configuration, or of test suites.
pub fn run(suite: bool) -> anyhow::Result<ExitCode> {
    let schema = if suite { gatewright_testing::suite::schema() } else { config::schema::schema()? };
    println!("{}", serde_json::to_string_pretty(&schema)?);
    Ok(ExitCode::SUCCESS)
}

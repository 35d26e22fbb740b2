//! `gatewright schema`.

use std::process::ExitCode;

use crate::config;

/// Prints the JSON Schema of the configuration.
pub fn run() -> anyhow::Result<ExitCode> {
    println!("{}", serde_json::to_string_pretty(&config::schema()?)?);
    Ok(ExitCode::SUCCESS)
}

//! Arguments of the commands `health`, `man` and `reference`, for operating and packaging.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

/// `gatewright health`.
///
/// For container health checks, where no other program is at hand.
#[derive(Debug, Args)]
pub struct HealthArgs {
    /// Address of the server. On loopback any certificate is accepted for `https`, since it names the public host.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:3000")]
    pub url: String,
    /// Check that the server is ready for requests (`/readyz`), not only that it responds (`/healthz`).
    #[arg(long)]
    pub ready: bool,
    /// Longest wait for the response, 1 to 600 seconds.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub timeout: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds @ 1..=600) => Ok(Duration::from_secs(seconds)),
        _ => Err("must be 1 to 600".to_owned()),
    }
}

/// `gatewright man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write one page per command into this folder instead.
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
}

/// Generated pages of the documentation.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Reference {
    /// Every key of the configuration: docs/reference/config.md.
    Config,
    /// Every error code: docs/reference/errors.md.
    Errors,
    /// Every command: docs/reference/commands.md.
    Commands,
    /// Every client: docs/reference/clients.md.
    Clients,
}

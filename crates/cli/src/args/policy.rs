//! Arguments of `gatewright policy`.

use std::{path::PathBuf, time::SystemTime};

use clap::{Args, Subcommand};

/// `gatewright policy`.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    #[command(subcommand)]
    pub command: PolicyCommand,
}

/// Commands for policies.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Decide on one request, and say which policies decided.
    Explain(Box<PolicyExplainArgs>),
    /// Decide on the requests of a file, and compare the decisions with those that it expects.
    Test(PolicyTestArgs),
}

/// `gatewright policy explain`.
#[derive(Debug, Args)]
pub struct PolicyExplainArgs {
    /// Configuration file: YAML, JSON or TOML by its extension. Its apps are started for the command.
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
    /// Subject of the caller.
    #[arg(long, default_value = "anonymous")]
    pub subject: String,
    /// Endpoint at which the request comes. Default: the main one.
    #[arg(long, value_name = "NAME")]
    pub endpoint: Option<String>,
    /// OAuth client of the caller. Default none.
    #[arg(long)]
    pub client: Option<String>,
    /// Scope of the caller; can be repeated. Default all.
    #[arg(long = "scope", value_name = "SCOPE")]
    pub scopes: Vec<String>,
    /// Group of the caller; can be repeated. Default none.
    #[arg(long = "group", value_name = "GROUP")]
    pub groups: Vec<String>,
    #[command(flatten)]
    pub object: PolicyObjectArgs,
    /// Arguments as a JSON object.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub arguments: String,
    /// Decide as for a call of a script.
    #[arg(long)]
    pub script: bool,
    /// Tool calls that the script made before.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub calls: u64,
    /// Time of the request in UTC, such as 2026-07-31T14:30:00Z. Default now.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<SystemTime>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The object of a request.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct PolicyObjectArgs {
    /// Tool that is called.
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// Resource that is read.
    #[arg(long, value_name = "URI")]
    pub resource: Option<String>,
    /// Prompt that is got.
    #[arg(long, value_name = "NAME")]
    pub prompt: Option<String>,
}

/// `gatewright policy test`.
#[derive(Debug, Args)]
pub struct PolicyTestArgs {
    /// Configuration file: YAML, JSON or TOML by its extension. Its apps are started for the command.
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
    /// Files with requests and the decisions that they expect, in YAML or JSON.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Reads a time as RFC 3339 writes it.
pub fn time(text: &str) -> Result<SystemTime, String> {
    humantime::parse_rfc3339_weak(text).map_err(|error| format!("{error}; write 2026-07-31T14:30:00Z"))
}

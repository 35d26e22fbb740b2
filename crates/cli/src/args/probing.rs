//! Arguments of `test fuzz` and `test probe`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Tests that need no suite.
#[derive(Debug, Subcommand)]
pub enum TestCommand {
    /// Call the tools of a server with valid, boundary and invalid inputs from their schemas, and report what they break.
    ///
    /// Promises: the server goes on and answers in time, without internal errors, stack traces or secrets; answers fit their schemas;
    /// invalid input is refused; tools that only read change nothing. Each finding is shrunk to a small input, and a suite that repeats
    /// all of them is written with --output.
    ///
    /// Exit codes: 0 no finding as heavy as --fail-on, 1 such a finding, or the server could not be reached, 2 the command line or the
    /// suite is invalid.
    #[command(verbatim_doc_comment)]
    Fuzz(FuzzArgs),
    /// Try a stranger's server: lifecycle, protocol, shapes, tools, Streamable HTTP and authorization, with a grade for each.
    ///
    /// Each finding has the request that shows it. The probe ends at its deadline, whatever the server does.
    ///
    /// Exit codes: 0 no finding as heavy as --fail-on, 1 such a finding, or the server could not be reached, 2 the command line is
    /// invalid.
    #[command(verbatim_doc_comment)]
    Probe(ProbeArgs),
}

/// The server, and the calls of its tools.
#[derive(Debug, Args)]
pub struct CalledServerArgs {
    /// Streamable HTTP endpoint of a server that runs already.
    #[arg(long, conflicts_with = "command")]
    pub url: Option<String>,
    /// Bearer token. Default: none.
    #[arg(long, env = "GATEWRIGHT_TOKEN", hide_env_values = true, requires = "url")]
    pub token: Option<String>,
    /// Time of the calls of tools, in seconds, 1 to 86400.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Seed of the inputs: the same seed makes the same ones.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Calls of each tool at most. Default: as many as the time allows.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub calls: Option<u32>,
    /// Call this tool, whatever it may change, and no other; can be repeated.
    #[arg(long, value_name = "NAME")]
    pub tool: Vec<String>,
    /// Call all tools, also those that may change or destroy something.
    #[arg(long)]
    pub destructive: bool,
    /// Time within which a call is answered, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(50..=600_000))]
    pub call_timeout_ms: u64,
    /// Time within which a command answers its first client, in seconds.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub startup_seconds: u64,
    /// The lightest finding that fails the command.
    #[arg(long, value_name = "WEIGHT", default_value = "error")]
    pub fail_on: FailOn,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Write a suite that repeats what the calls of tools found.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Command that starts a server over standard input and output, after `--`: `-- npx some-server`.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Weights of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// Any finding.
    Note,
    /// Warnings and errors.
    Warning,
    /// Errors.
    Error,
    /// No finding.
    Never,
}

/// `gatewright test fuzz`.
#[derive(Debug, Args)]
pub struct FuzzArgs {
    /// Suite whose server is called, with its mocks and its user.
    #[arg(value_name = "SUITE", conflicts_with_all = ["url", "command"])]
    pub suite: Option<PathBuf>,
    #[command(flatten)]
    pub target: CalledServerArgs,
}

/// `gatewright test probe`.
#[derive(Debug, Args)]
pub struct ProbeArgs {
    #[command(flatten)]
    pub target: CalledServerArgs,
    /// Time of the whole probe, in seconds. Default: 90 more than --seconds.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=90_000))]
    pub deadline: Option<u64>,
    /// Issuer whose tokens the server accepts; with --key, expired tokens and those for others are tried.
    #[arg(long, value_name = "URL", requires = "key")]
    pub issuer: Option<String>,
    /// Key of the issuer, an RSA key in a PKCS#8 PEM file.
    #[arg(long, value_name = "FILE", requires = "issuer")]
    pub key: Option<PathBuf>,
    /// Audience of the issuer's tokens. Default: the URL.
    #[arg(long, requires = "issuer")]
    pub audience: Option<String>,
}

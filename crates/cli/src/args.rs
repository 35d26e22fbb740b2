//! The command line.

mod identity;
mod operate;
mod testing;

use std::{net::IpAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
pub use identity::{
    ClientArgs, ClientCommand, ConsentArgs, ConsentCommand, KeyAlgorithm, KeyArgs, KeyCommand, StoreArgs,
    TokenCommand, UserArgs, UserCommand,
};
pub use operate::{HealthArgs, ManArgs, Reference};
pub use testing::{
    MockArgs, MockCimdArgs, MockCommand, MockOAuthArgs, TestArgs, TestFormat, TokenArgs, TokenUser,
};

/// Put MCP tools behind a gate: serve many apps as one MCP server, in code mode.
///
/// Exit codes: 0 done, 1 failed, 2 wrong command line or configuration.
#[derive(Debug, Parser)]
#[command(name = "gatewright", version, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    pub log: LogArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// What is logged, and how.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Least severe level shown: error, warn, info (default), debug or trace. Wins over `logging.level`; RUST_LOG wins over both.
    #[arg(long, global = true, help_heading = "Logging", value_name = "LEVEL", value_parser = ["error", "warn", "info", "debug", "trace"])]
    pub log_level: Option<String>,
    /// How lines look.
    #[arg(long, global = true, help_heading = "Logging", default_value = "text", value_name = "FORMAT")]
    pub log_format: LogFormat,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a complete server with sample CRM apps, and print a tour.
    Demo(DemoArgs),
    /// Serve the apps of a configuration over HTTP or stdio.
    Serve(ServeArgs),
    /// Check that an audit file is as it was written.
    Audit(AuditArgs),
    /// Check a configuration, and print every bad field with its line.
    Check(CheckArgs),
    /// Make, list, exchange and retire the keys that access tokens are signed with.
    Key(KeyArgs),
    /// Make what the configuration holds about users, and sign users out.
    User(UserArgs),
    /// List and remove OAuth clients.
    Client(ClientArgs),
    /// List and withdraw what users allowed applications.
    Consent(ConsentArgs),
    /// Ask a running server whether it is well.
    Health(HealthArgs),
    /// List, search, describe and call tools, and run scripts.
    Tools(ToolsArgs),
    /// Measure how well search finds the right tools.
    Eval(EvalArgs),
    /// Run test suites (YAML) against an MCP server in any language.
    Test(TestArgs),
    /// Run mock servers for tests: an authorization server, or client metadata documents.
    Mock(MockArgs),
    /// Print a signed test token, good or bad on purpose; or revoke a token of running servers.
    Token(TokenArgs),
    /// Print the JSON Schema of the configuration.
    Schema {
        /// Print the JSON Schema of test suites instead.
        #[arg(long)]
        suite: bool,
    },
    /// Print the manual page, or write those of all commands.
    Man(ManArgs),
    /// Print a reference of the documentation, made from the code.
    #[command(hide = true)]
    Reference {
        /// Which one.
        what: Reference,
    },
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// `gatewright demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 3000)]
    pub port: u16,
    /// Ask clients to log in (any user name passes): for trying OAuth clients.
    #[arg(long)]
    pub auth: bool,
}

/// Where the configuration comes from.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Configuration file: YAML, JSON or TOML by its extension.
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Serve the servers of an `mcpServers` file (mcp.json, claude_desktop_config.json) as apps.
    #[arg(long, value_name = "FILE")]
    pub mcp_config: Option<PathBuf>,
}

/// `gatewright serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Serve one client over standard input and output instead of HTTP.
    #[arg(long)]
    pub stdio: bool,
    /// Take a changed configuration over on SIGHUP only, not when a file changes.
    #[arg(long)]
    pub no_watch: bool,
    /// Address to listen on, instead of `http.host`.
    #[arg(long)]
    pub host: Option<IpAddr>,
    /// Port to listen on, instead of `http.port`; 0 takes a free one.
    #[arg(long)]
    pub port: Option<u16>,
}

/// `gatewright audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    #[command(subcommand)]
    pub command: AuditCommand,
}

/// What to do with an audit file.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Check every line; name the first that was changed, taken out, put in or moved.
    Verify {
        /// The file; with log rotation the files, oldest first: then each must continue the one before.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// `gatewright check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Configuration file: YAML, JSON or TOML by its extension.
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
    /// Print everything too that is not fit for production, and how to fix it.
    #[arg(long)]
    pub production: bool,
    /// Print the findings as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `gatewright tools`.
#[derive(Debug, Args)]
pub struct ToolsArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// Access token for --url. Better in the variable: other users of this machine can read command lines.
    #[arg(long, global = true, value_name = "TOKEN", env = "GATEWRIGHT_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Header sent with every request to --url, as `Name: value`; may be given again.
    #[arg(long = "header", global = true, value_name = "HEADER")]
    pub headers: Vec<String>,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: ToolsCommand,
}

/// Which tools: those of a configuration, of a running server, or of the demo.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct TargetArgs {
    /// Use the apps of this configuration, started for this command.
    #[arg(short, long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Use the apps of this `mcpServers` file, started for this command.
    #[arg(long, global = true, value_name = "FILE")]
    pub mcp_config: Option<PathBuf>,
    /// Use the server at this MCP endpoint, such as http://127.0.0.1:3000/mcp.
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
}

/// What to do with the tools.
#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// List tools.
    List,
    /// Search tools in plain words.
    Search {
        /// What you want to do.
        query: String,
        /// Most tools to show.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
        top_k: u8,
        /// Search this app only; may be given again.
        #[arg(long, value_name = "APP")]
        app: Vec<String>,
        /// Show which terms and fields scored (not with --url).
        #[arg(short, long)]
        verbose: bool,
    },
    /// Show schemas and examples of tools.
    Describe {
        /// Names of tools.
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Call one tool.
    Call {
        /// Name of the tool.
        name: String,
        /// Input as a JSON object.
        #[arg(default_value = "{}")]
        input: String,
    },
    /// Run an AgentScript file; `-` reads standard input.
    Run {
        /// The script.
        script: PathBuf,
        /// JSON object read as `codecallContext`.
        #[arg(long, value_name = "JSON")]
        context: Option<String>,
        /// Allow this tool only; may be given again.
        #[arg(long, value_name = "TOOL")]
        allow: Vec<String>,
    },
}

/// `gatewright eval`.
#[derive(Debug, Args)]
pub struct EvalArgs {
    #[command(subcommand)]
    pub command: EvalCommand,
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum EvalCommand {
    /// Run labelled queries against a set of tools: Recall, nDCG, MRR, latency and the worst misses.
    Search {
        /// Tools, one JSON object a line: name, appId, description, inputSchema.
        #[arg(long, value_name = "FILE")]
        corpus: PathBuf,
        /// Queries, one JSON object a line: query, relevant (names of tools).
        #[arg(long, value_name = "FILE")]
        queries: PathBuf,
        /// How to rank: ours, or one of two baselines to compare with.
        #[arg(long, default_value = "tfidf")]
        strategy: EvalStrategy,
        /// Sentence encoder for `--strategy embedding`: a folder or a hub id (owner/name).
        #[arg(long, value_name = "MODEL")]
        model: Option<String>,
        /// Folder that keeps models and vectors between runs. Default: the user's cache folder.
        #[arg(long, value_name = "FOLDER")]
        cache: Option<PathBuf>,
        /// Worst misses to show.
        #[arg(long, default_value_t = 5)]
        worst: usize,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Rankings that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EvalStrategy {
    /// The lexical ranking of `codecall:search`.
    Tfidf,
    /// Semantic vectors blended with it; needs a model.
    Embedding,
    /// Baseline: plain BM25 over name and description.
    Bm25,
    /// Baseline: cosine of TF-IDF vectors.
    Cosine,
}

//! The command line.

mod api_keys;
mod clients;
mod identity;
mod login;
mod operate;
mod pins;
mod policy;
mod probing;
mod testing;

use std::{net::IpAddr, path::PathBuf};

pub use api_keys::{ApiKeyArgs, ApiKeyCommand, KeyGrantArgs};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use clients::{AddArgs, ConnectArgs, DisconnectArgs, EntryArgs, InitArgs, PROJECT};
pub use identity::{
    ClientArgs, ClientCommand, ConsentArgs, ConsentCommand, ExecutionState, ExecutionsArgs,
    ExecutionsCommand, ExportArgs, KeyAlgorithm, KeyArgs, KeyCommand, StoreArgs, TokenCommand, UserArgs,
    UserCommand,
};
pub use login::{LoginArgs, LogoutArgs};
pub use operate::{HealthArgs, ManArgs, Reference};
pub use pins::{PinsArgs, PinsCommand};
pub use policy::{PolicyArgs, PolicyCommand, PolicyExplainArgs, PolicyTestArgs, time};
pub use probing::{CalledServerArgs, FailOn, FuzzArgs, ProbeArgs, TestCommand};
pub use testing::{
    MockArgs, MockCimdArgs, MockCommand, MockOAuthArgs, TestArgs, TestFormat, TokenArgs, TokenUser,
};

/// Gateway for MCP tools: serve many apps as one MCP server, with code mode.
///
/// Exit codes: 0 success, 1 failure, 2 invalid command line or configuration.
#[derive(Debug, Parser)]
#[command(name = "gatewright", version, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    pub log: LogArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// Log output.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Least severe level that is logged: error, warn, info (default), debug or trace. Overrides `logging.level`; RUST_LOG overrides both.
    #[arg(long, global = true, help_heading = "Logging", value_name = "LEVEL", value_parser = ["error", "warn", "info", "debug", "trace"])]
    pub log_level: Option<String>,
    /// Format of log lines.
    #[arg(long, global = true, help_heading = "Logging", default_value = "text", value_name = "FORMAT")]
    pub log_format: LogFormat,
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum LogFormat {
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a complete server with sample CRM apps, and print a tour.
    Demo(DemoArgs),
    /// Serve the apps of a configuration over HTTP or stdio.
    Serve(ServeArgs),
    /// Write a configuration from the servers that the MCP clients on this machine have.
    Init(InitArgs),
    /// Add an app to a configuration, keeping comments and order.
    Add(AddArgs),
    /// Put this gateway into the configuration of an MCP client.
    Connect(ConnectArgs),
    /// Take this gateway out of the configuration of an MCP client.
    Disconnect(DisconnectArgs),
    /// Verify that an audit file was not changed.
    Audit(AuditArgs),
    /// Check a configuration and print every problem with its line.
    Check(CheckArgs),
    /// Generate, list, rotate and retire the keys that sign access tokens.
    Key(KeyArgs),
    /// Make, list and revoke the static API keys of machines that cannot do OAuth.
    ApiKey(ApiKeyArgs),
    /// Hash passwords, enrol passkeys, and sign users out.
    User(UserArgs),
    /// List and remove OAuth clients.
    Client(ClientArgs),
    /// List and withdraw the consents that users gave to applications.
    Consent(ConsentArgs),
    /// List and show executions: scripts that wait, run in the background or have ended.
    Executions(ExecutionsArgs),
    /// Check the health of a running server.
    Health(HealthArgs),
    /// List, search, describe and call tools, and run scripts.
    Tools(ToolsArgs),
    /// Show what changed in the definitions of pinned tools, and approve it.
    Pins(PinsArgs),
    /// Decide on requests by the policies of a configuration, without making them.
    Policy(PolicyArgs),
    /// Sign in at a gateway, so that `tools --url` can use it.
    Login(LoginArgs),
    /// Forget and revoke the tokens of a sign-in.
    Logout(LogoutArgs),
    /// Measure the quality of the search for tools.
    Eval(EvalArgs),
    /// Run test suites (YAML or JSON) against an MCP server in any language.
    Test(Box<TestArgs>),
    /// Run a mock server for tests: an authorization server, or client metadata documents.
    Mock(MockArgs),
    /// Print a signed test token, valid or invalid on purpose; or revoke a token of running servers.
    Token(TokenArgs),
    /// Print the JSON Schema of the configuration.
    Schema {
        /// Print the JSON Schema of test suites instead.
        #[arg(long)]
        suite: bool,
    },
    /// Print the manual page, or write the pages of all commands.
    Man(ManArgs),
    /// Print a page of the documentation that is generated from the code.
    #[command(hide = true)]
    Reference {
        /// The page.
        page: Reference,
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
    /// Port on 127.0.0.1; 0 picks a free one.
    #[arg(long, default_value_t = 3000)]
    pub port: u16,
    /// Require clients to log in, with any user name: to try OAuth clients.
    #[arg(long)]
    pub auth: bool,
    /// Serve the saved plans of a folder (or one plan) as the app `plans`.
    #[arg(long, value_name = "PATH")]
    pub plans: Option<PathBuf>,
}

/// Source of the configuration.
#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// Configuration file: YAML, JSON or TOML by its extension. Default: `gatewright.yaml` in the current folder.
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Serve the servers of an `mcpServers` file (mcp.json, claude_desktop_config.json) as apps.
    #[arg(long, value_name = "FILE")]
    pub mcp_config: Option<PathBuf>,
}

impl ConfigArgs {
    /// Takes `gatewright.yaml` of the current folder if no file is named, and returns its name.
    pub fn or_here(&mut self) -> Option<PathBuf> {
        if self.config.is_none() && self.mcp_config.is_none() {
            self.config = configuration_here();
            return self.config.clone();
        }
        None
    }
}

/// The configuration in the current folder: `gatewright` with an extension of its format.
pub fn configuration_here() -> Option<PathBuf> {
    let names = ["gatewright.yaml", "gatewright.yml", "gatewright.json", "gatewright.toml"];
    names.into_iter().map(PathBuf::from).find(|path| path.is_file())
}

/// `gatewright serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Serve one client over standard input and output instead of HTTP.
    #[arg(long)]
    pub stdio: bool,
    /// Serve the endpoint of this name in `endpoints` to that client, instead of the main one.
    #[arg(long, value_name = "NAME", requires = "stdio")]
    pub endpoint: Option<String>,
    /// Reload the configuration only on SIGHUP, not when the file changes.
    #[arg(long)]
    pub no_watch: bool,
    /// Address to listen on, or `localhost`, instead of `http.host`.
    #[arg(long, value_parser = host)]
    pub host: Option<IpAddr>,
    /// Port to listen on, instead of `http.port`; 0 picks a free one.
    #[arg(long)]
    pub port: Option<u16>,
}

fn host(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
        text => text.parse().map_err(|_| "must be an IP address such as 127.0.0.1 or 0.0.0.0".to_owned()),
    }
}

/// `gatewright audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    #[command(subcommand)]
    pub command: AuditCommand,
}

/// Commands for audit files.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Verify every line; print the first that was changed, removed, inserted or moved.
    Verify {
        /// The file. With log rotation, all files, oldest first; each must continue the previous one.
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
    /// Configuration file: YAML, JSON or TOML by its extension. Default: `gatewright.yaml` in the current folder.
    #[arg(value_name = "FILE", conflicts_with = "config")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub config: ConfigArgs,
    /// Start the apps, and check the names of tools, resources and prompts in the configuration against what they offer.
    #[arg(long)]
    pub live: bool,
    /// Do not start the apps: names of tools and arguments in policies are not checked.
    #[arg(long, conflicts_with = "live")]
    pub offline: bool,
    /// Also check the requirements for production, and print how to meet them.
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
    /// Access token for --url. Prefer the variable: other users of this machine can read command lines.
    #[arg(long, global = true, value_name = "TOKEN", env = "GATEWRIGHT_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Header to send with every request to --url, as `Name: value`; can be repeated.
    #[arg(long = "header", global = true, value_name = "HEADER")]
    pub headers: Vec<String>,
    /// Print JSON.
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: ToolsCommand,
}

/// Source of the tools: a configuration, a running server, or by default the configuration of the current folder; without one, the demo.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct TargetArgs {
    /// Start the apps of this configuration for the command. Default: `gatewright.yaml` in the current folder, else the sample apps.
    #[arg(short, long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Start the apps of this `mcpServers` file for the command.
    #[arg(long, global = true, value_name = "FILE")]
    pub mcp_config: Option<PathBuf>,
    /// Use the server at this MCP endpoint, such as http://127.0.0.1:3000/mcp.
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
}

/// Commands for tools.
#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// List tools.
    List,
    /// Search tools in plain words.
    Search {
        /// The task in plain words.
        query: String,
        /// Number of tools to show, at most.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
        top_k: u8,
        /// Search only this app; can be repeated.
        #[arg(long, value_name = "APP")]
        app: Vec<String>,
        /// Show the terms and fields behind each score (not with --url).
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
        /// File with the script.
        #[arg(required_unless_present = "resume")]
        script: Option<PathBuf>,
        /// JSON object that the script reads as `codecallContext`.
        #[arg(long, value_name = "JSON")]
        context: Option<String>,
        /// Allow only this tool; can be repeated.
        #[arg(long, value_name = "TOOL")]
        allow: Vec<String>,
        /// Rehearse: call read-only tools, and check and list every other call without making it.
        #[arg(long)]
        dry_run: bool,
        /// With `--dry-run`: call nothing.
        #[arg(long, requires = "dry_run")]
        offline: bool,
        /// With `--url`: run it in the background, and print the id of its execution.
        #[arg(long, conflicts_with = "dry_run")]
        detach: bool,
        /// Go on with an execution, or print its result. With `--url`, or a configuration whose executions are in a store.
        #[arg(long, value_name = "ID", conflicts_with_all = ["script", "context", "allow", "dry_run", "detach"])]
        resume: Option<String>,
    },
}

/// `gatewright eval`.
#[derive(Debug, Args)]
pub struct EvalArgs {
    #[command(subcommand)]
    pub command: EvalCommand,
}

/// Commands for measurements.
#[derive(Debug, Subcommand)]
pub enum EvalCommand {
    /// Run labelled queries against a set of tools; print recall, nDCG, MRR, latency and the worst misses.
    Search(EvalSearchArgs),
    /// Replay recorded tasks as direct calls and as plans; print bytes, tokens and round trips of both.
    Context(EvalContextArgs),
}

/// `gatewright eval search`.
#[derive(Debug, Args)]
pub struct EvalSearchArgs {
    /// Tools, one JSON object per line: name, appId, description, inputSchema.
    #[arg(long, value_name = "FILE")]
    pub corpus: PathBuf,
    /// Queries, one JSON object per line: query, relevant (names of tools).
    #[arg(long, value_name = "FILE")]
    pub queries: PathBuf,
    /// Ranking to measure; two are baselines for comparison.
    #[arg(long, default_value = "tfidf")]
    pub strategy: EvalStrategy,
    /// Sentence encoder for `--strategy embedding`: a folder, or a hub id (owner/name).
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Folder for models and vectors. Default: the user's cache folder.
    #[arg(long, value_name = "FOLDER")]
    pub cache: Option<PathBuf>,
    /// Number of misses to show, worst first.
    #[arg(long, default_value_t = 5)]
    pub worst: usize,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `gatewright eval context`.
#[derive(Debug, Args)]
pub struct EvalContextArgs {
    /// Configuration with the apps. Default: the demo's apps.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Recorded tasks, in YAML or JSON.
    #[arg(long, value_name = "FILE")]
    pub tasks: PathBuf,
    /// Form in which plans read of a tool before they use it.
    #[arg(long, default_value = "types")]
    pub detail: EvalDetail,
    /// Fail if all plans together take more than this many times the tokens of the direct calls.
    #[arg(long, value_name = "RATIO")]
    pub budget: Option<f64>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `detail` of `codecall:describe`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EvalDetail {
    /// TypeScript declarations.
    Types,
    /// JSON Schemas and examples.
    Full,
}

/// Rankings that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EvalStrategy {
    /// The lexical ranking of `codecall:search`.
    Tfidf,
    /// Semantic vectors blended with the lexical ranking; needs a model.
    Embedding,
    /// Baseline: plain BM25 over name and description.
    Bm25,
    /// Baseline: cosine of TF-IDF vectors.
    Cosine,
}

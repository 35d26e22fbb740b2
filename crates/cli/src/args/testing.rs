//! Arguments of the commands for testing: `mock` and `token`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use gatewright_testing::{Endpoint, Fault};
use serde_json::Value;

use super::TokenCommand;

/// `gatewright mock`.
#[derive(Debug, Args)]
pub struct MockArgs {
    #[command(subcommand)]
    pub command: MockCommand,
}

/// Which mock server.
#[derive(Debug, Subcommand)]
pub enum MockCommand {
    /// An OAuth 2.1 authorization server on loopback: metadata, login, PKCE, refresh, anonymous tokens, faults on demand.
    ///
    /// Anybody may log in: never use it for anything but tests. It runs until SIGINT or SIGTERM.
    #[command(name = "oauth")]
    OAuth(Box<MockOAuthArgs>),
    /// A server of OAuth client metadata documents (CIMD) on loopback, good and bad ones.
    Cimd(MockCimdArgs),
}

/// `gatewright mock oauth`.
#[derive(Debug, Args)]
pub struct MockOAuthArgs {
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Log the user in without a page.
    #[arg(long)]
    pub auto_approve: bool,
    /// Subject who is logged in.
    #[arg(long, value_name = "SUB", default_value = "test-user")]
    pub user: String,
    /// The user's address.
    #[arg(long)]
    pub email: Option<String>,
    /// The user's name.
    #[arg(long)]
    pub name: Option<String>,
    /// URL of the user's picture.
    #[arg(long, value_name = "URL")]
    pub picture: Option<String>,
    /// One more claim of the user, NAME=JSON or NAME=TEXT; may be given again.
    #[arg(long, value_name = "NAME=VALUE", value_parser = claim)]
    pub claim: Vec<(String, Value)>,
    /// The one client there is. Default: every client is known.
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,
    /// Its secret. Default: none is asked for.
    #[arg(long, value_name = "SECRET", requires = "client_id")]
    pub client_secret: Option<String>,
    /// Where answers may go, `*` for any characters but `/ ? #`; may be given again. Default: any http URL of this machine.
    #[arg(long, value_name = "URI")]
    pub redirect_uri: Vec<String>,
    /// Resource that tokens may be asked for (RFC 8707); may be given again. Default: any.
    #[arg(long, value_name = "URI")]
    pub resource: Vec<String>,
    /// `aud` of tokens that were asked for without a resource.
    #[arg(long, default_value = "test-audience")]
    pub audience: String,
    /// Lifetime of access tokens.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(i64).range(1..=31_536_000))]
    pub access_token_ttl: i64,
    /// Lifetime of refresh tokens.
    #[arg(long, value_name = "SECONDS", default_value_t = 2_592_000, value_parser = clap::value_parser!(i64).range(1..=31_536_000))]
    pub refresh_token_ttl: i64,
    /// Break an endpoint: metadata, jwks, register, authorize, token, userinfo or all, `=`, and slow:MILLISECONDS, status:CODE, garbage,
    /// wrong-issuer:URL, expired-tokens, unpublished-key, wrong-nonce or wrong-audience:TEXT; may be given again.
    #[arg(long, value_name = "ENDPOINT=FAULT", value_parser = fault)]
    pub fault: Vec<(Endpoint, Fault)>,
    /// Sign with the RSA key in this PKCS#8 PEM file, made when it is not there. Default: a new key for each run.
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Print every request to standard error.
    #[arg(long)]
    pub debug: bool,
    /// Print one JSON object: where it is, and tokens of the test users.
    #[arg(long)]
    pub json: bool,
}

/// `gatewright mock cimd`.
#[derive(Debug, Args)]
pub struct MockCimdArgs {
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Describe a client of this name with the default metadata; may be given again.
    #[arg(long, value_name = "NAME")]
    pub client: Vec<String>,
    /// Describe the clients in this file, a JSON array of objects with `name` and, as wanted, path, redirectUris,
    /// tokenEndpointAuthMethod, grantTypes, responseTypes, clientUri, logoUri, scope, contacts.
    #[arg(long, value_name = "FILE")]
    pub clients: Option<PathBuf>,
    /// Redirect URI of the clients named with --client; may be given again.
    #[arg(long, value_name = "URI", requires = "client")]
    pub redirect_uri: Vec<String>,
    /// Serve the text of FILE at PATH, whatever it holds; may be given again.
    #[arg(long, value_name = "PATH=FILE", value_parser = pair)]
    pub document: Vec<(String, String)>,
    /// Answer PATH with this status; may be given again.
    #[arg(long, value_name = "PATH=STATUS", value_parser = path_status)]
    pub error: Vec<(String, u16)>,
    /// Serve https, with a certificate of an authority made for this run.
    #[arg(long)]
    pub https: bool,
    /// Write that authority's certificate to this file, as PEM, for the server under test to trust.
    #[arg(long, value_name = "FILE", requires = "https")]
    pub ca: Option<PathBuf>,
    /// Print every request to standard error.
    #[arg(long)]
    pub debug: bool,
    /// Print one JSON object: where it is, and the client ids.
    #[arg(long)]
    pub json: bool,
}

/// `gatewright token`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TokenArgs {
    #[command(subcommand)]
    pub command: Option<TokenCommand>,
    /// Whose token: sets subject and scopes.
    #[arg(long, default_value = "user")]
    pub user: TokenUser,
    /// Subject, instead of the user's.
    #[arg(long)]
    pub sub: Option<String>,
    /// Scope, instead of the user's; may be given again, or hold several with spaces between.
    #[arg(long)]
    pub scope: Vec<String>,
    /// `email` claim.
    #[arg(long)]
    pub email: Option<String>,
    /// `name` claim.
    #[arg(long)]
    pub name: Option<String>,
    /// One more claim, NAME=JSON or NAME=TEXT; replaces what is set otherwise; may be given again.
    #[arg(long, value_name = "NAME=VALUE", value_parser = claim)]
    pub claim: Vec<(String, Value)>,
    /// `iss`.
    #[arg(long, value_name = "URL", default_value = "https://test-issuer.local")]
    pub issuer: String,
    /// `aud`.
    #[arg(long, default_value = "test-audience")]
    pub audience: String,
    /// Lifetime.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(i64).range(1..=31_536_000))]
    pub expires_in: i64,
    /// A token that expired an hour ago.
    #[arg(long, conflicts_with_all = ["expires_in", "invalid_signature"])]
    pub expired: bool,
    /// A token that another key signed than the one it names.
    #[arg(long)]
    pub invalid_signature: bool,
    /// Sign with the RSA key in this PKCS#8 PEM file, made when it is not there; `gatewright mock oauth --key` with the same
    /// file publishes it. Default: a new key, whose public half --json prints.
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Print the public keys (JWKS) instead of a token.
    #[arg(long, requires = "key", conflicts_with_all = ["json", "expired", "invalid_signature"])]
    pub jwks: bool,
    /// Print JSON: the token, its claims, and the public keys.
    #[arg(long)]
    pub json: bool,
}

/// Prebuilt users.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum TokenUser {
    /// `test-admin`, scope `*`.
    Admin,
    /// `test-user`, scopes `read write`.
    User,
    /// `test-readonly`, scope `read`.
    ReadOnly,
    /// `anonymous`, no scope.
    Anonymous,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("it needs a name, `=` and a value".to_owned()),
    }
}

fn claim(text: &str) -> Result<(String, Value), String> {
    let (name, value) = pair(text)?;
    Ok((name, serde_json::from_str(&value).unwrap_or(Value::String(value))))
}

fn path_status(text: &str) -> Result<(String, u16), String> {
    let (path, status) = pair(text)?;
    match status.parse() {
        Ok(status @ 100..=999) => Ok((path, status)),
        _ => Err(format!("`{status}` is no HTTP status, such as 404")),
    }
}

fn fault(text: &str) -> Result<(Endpoint, Fault), String> {
    let (endpoint, fault) = pair(text)?;
    Ok((endpoint.parse()?, fault.parse()?))
}

/// `gatewright test`.
///
/// Exit codes: 0 every test passed, 1 a test failed, 2 a suite file or the command line is wrong, or no test was chosen.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct TestArgs {
    /// Suite files; of a directory, every file in it and below whose name ends in suite.yaml, suite.yml or suite.json.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Tests at the same time.
    #[arg(short, long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub jobs: u16,
    /// Only tests whose name holds this text.
    #[arg(short, long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Only tests with this tag; may be given again.
    #[arg(long)]
    pub tag: Vec<String>,
    /// No tests with this tag; may be given again.
    #[arg(long, value_name = "TAG")]
    pub exclude_tag: Vec<String>,
    /// Start this server instead of the suites' own: an executable, a .js, .mjs, .ts or .py file, or a command line.
    #[arg(long, value_name = "COMMAND", conflicts_with = "url")]
    pub server: Option<String>,
    /// Test the server at this MCP endpoint instead of the suites' own.
    #[arg(long)]
    pub url: Option<String>,
    /// Variable over those of the suites, NAME=JSON or NAME=TEXT; may be given again.
    #[arg(long, value_name = "NAME=VALUE", value_parser = claim)]
    pub var: Vec<(String, Value)>,
    /// What is printed.
    #[arg(long, default_value = "readable")]
    pub format: TestFormat,
    /// Print JSON: the same as --format json.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Also write JUnit XML to this file.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Also write TAP to this file.
    #[arg(long, value_name = "FILE")]
    pub tap: Option<PathBuf>,
    /// Run again when a suite or a file beside it changes, until Ctrl-C.
    #[arg(long)]
    pub watch: bool,
    /// Print the tests that would run.
    #[arg(long, conflicts_with = "watch")]
    pub list: bool,
    /// Fail when a test says `only`: for CI, where it would leave the others out.
    #[arg(long)]
    pub forbid_only: bool,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    /// For people.
    Readable,
    /// Test Anything Protocol, version 14.
    Tap,
    /// JUnit XML.
    Junit,
    /// JSON.
    Json,
}

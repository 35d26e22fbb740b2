//! Arguments of the commands `mock`, `token` and `test`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use gatewright_testing::{Algorithm, Defect, Endpoint, Fault, RecordMode};
use serde_json::Value;

use super::{TokenCommand, probing::TestCommand};

/// `gatewright mock`.
#[derive(Debug, Args)]
pub struct MockArgs {
    #[command(subcommand)]
    pub command: MockCommand,
}

/// The mock servers.
#[derive(Debug, Subcommand)]
pub enum MockCommand {
    /// Run an OAuth 2.1 authorization server on loopback: metadata, registration, login, PKCE, refresh, client credentials, revocation,
    /// introspection, DPoP, faults on demand.
    ///
    /// It refuses what a real server refuses, such as unknown clients, but anyone can log in: use it only for tests. It runs until SIGINT
    /// or SIGTERM.
    #[command(name = "oauth")]
    OAuth(Box<MockOAuthArgs>),
    /// Run a server of OAuth client metadata documents (CIMD) on loopback, valid and invalid ones.
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
    /// Subject of the user.
    #[arg(long, value_name = "SUB", default_value = "test-user")]
    pub user: String,
    /// Email address of the user.
    #[arg(long)]
    pub email: Option<String>,
    /// Name of the user.
    #[arg(long)]
    pub name: Option<String>,
    /// URL of the user's picture.
    #[arg(long, value_name = "URL")]
    pub picture: Option<String>,
    /// Another claim of the user, NAME=JSON or NAME=TEXT; can be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = claim)]
    pub claim: Vec<(String, Value)>,
    /// A client, besides those that register themselves or have a metadata document.
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,
    /// Secret of the client. Default: none is required.
    #[arg(long, value_name = "SECRET", requires = "client_id")]
    pub client_secret: Option<String>,
    /// Know the clients in this file: a JSON array of objects with `clientId` and, optionally, clientSecret, redirectUris,
    /// tokenEndpointAuthMethod, grantTypes, jwks, dpopBoundAccessTokens.
    #[arg(long, value_name = "FILE")]
    pub clients: Option<PathBuf>,
    /// Accept clients that nobody registered, which a real server refuses.
    #[arg(long)]
    pub any_client: bool,
    /// Allowed redirect URI, `*` for any characters except `/ ? #`; can be repeated. Default: any http URL of this machine.
    #[arg(long, value_name = "URI")]
    pub redirect_uri: Vec<String>,
    /// Allowed resource (RFC 8707); can be repeated. Default: any.
    #[arg(long, value_name = "URI")]
    pub resource: Vec<String>,
    /// `aud` of tokens that are requested without a resource.
    #[arg(long, default_value = "test-audience")]
    pub audience: String,
    /// Lifetime of access tokens.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(i64).range(1..=31_536_000))]
    pub access_token_ttl: i64,
    /// Lifetime of refresh tokens.
    #[arg(long, value_name = "SECONDS", default_value_t = 2_592_000, value_parser = clap::value_parser!(i64).range(1..=31_536_000))]
    pub refresh_token_ttl: i64,
    /// Require this nonce in DPoP proofs (RFC 9449 §8).
    #[arg(long, value_name = "NONCE")]
    pub dpop_nonce: Option<String>,
    /// Serve https, with a certificate from an authority generated for this run.
    #[arg(long)]
    pub https: bool,
    /// Write the certificate of that authority to this file (PEM), for the server under test to trust.
    #[arg(long, value_name = "FILE", requires = "https")]
    pub ca: Option<PathBuf>,
    /// Trust the certificates in this file (PEM) when client metadata documents are fetched, such as the --ca of `gatewright mock cimd`; can
    /// be repeated.
    #[arg(long, value_name = "FILE")]
    pub trust: Vec<PathBuf>,
    /// Break an endpoint (metadata, jwks, register, authorize, token, revoke, introspect, userinfo or all) in one way (slow:MILLISECONDS,
    /// status:CODE, error:CODE, garbage, wrong-issuer:URL, expired-tokens, unpublished-key, wrong-nonce or wrong-audience:TEXT); can be repeated.
    #[arg(long, value_name = "ENDPOINT=FAULT", value_parser = fault)]
    pub fault: Vec<(Endpoint, Fault)>,
    /// Algorithm of the tokens: RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 or EdDSA. Default: that of the key, RS256 for a new one.
    #[arg(long, value_name = "ALG", value_parser = published)]
    pub alg: Option<Algorithm>,
    /// Sign with the key in this PKCS#8 PEM file, which is created if missing. Default: a new key for each run.
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Print every request to standard error.
    #[arg(long)]
    pub debug: bool,
    /// Print one JSON object with the addresses and tokens of the test users.
    #[arg(long)]
    pub json: bool,
}

/// `gatewright mock cimd`.
#[derive(Debug, Args)]
pub struct MockCimdArgs {
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Serve a document for a client of this name with default metadata; can be repeated.
    #[arg(long, value_name = "NAME")]
    pub client: Vec<String>,
    /// Serve documents for the clients in this file: a JSON array of objects with `name` and, optionally, path, redirectUris,
    /// tokenEndpointAuthMethod, grantTypes, responseTypes, clientUri, logoUri, scope, contacts.
    #[arg(long, value_name = "FILE")]
    pub clients: Option<PathBuf>,
    /// Redirect URI of the clients of --client; can be repeated.
    #[arg(long, value_name = "URI", requires = "client")]
    pub redirect_uri: Vec<String>,
    /// Serve the content of FILE at PATH, valid or not; can be repeated.
    #[arg(long, value_name = "PATH=FILE", value_parser = pair)]
    pub document: Vec<(String, String)>,
    /// Respond to PATH with this status; can be repeated.
    #[arg(long, value_name = "PATH=STATUS", value_parser = path_status)]
    pub error: Vec<(String, u16)>,
    /// Serve https, with a certificate from an authority generated for this run.
    #[arg(long)]
    pub https: bool,
    /// Write the certificate of that authority to this file (PEM), for the server under test to trust.
    #[arg(long, value_name = "FILE", requires = "https")]
    pub ca: Option<PathBuf>,
    /// Print every request to standard error.
    #[arg(long)]
    pub debug: bool,
    /// Print one JSON object with the address and the client ids.
    #[arg(long)]
    pub json: bool,
}

/// `gatewright token`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TokenArgs {
    #[command(subcommand)]
    pub command: Option<TokenCommand>,
    /// User of the token: sets subject and scopes.
    #[arg(long, default_value = "user")]
    pub user: TokenUser,
    /// Subject, instead of that of the user.
    #[arg(long)]
    pub sub: Option<String>,
    /// Scope, instead of those of the user; can be repeated, or contain several separated by spaces.
    #[arg(long)]
    pub scope: Vec<String>,
    /// `email` claim.
    #[arg(long)]
    pub email: Option<String>,
    /// `name` claim.
    #[arg(long)]
    pub name: Option<String>,
    /// Another claim, NAME=JSON or NAME=TEXT, which replaces a value set otherwise; can be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = claim)]
    pub claim: Vec<(String, Value)>,
    /// `iss`.
    #[arg(long, value_name = "URL", default_value = "https://test-issuer.local")]
    pub issuer: String,
    /// `aud`.
    #[arg(long, default_value = "test-audience")]
    pub audience: String,
    /// Lifetime of the token.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(i64).range(1..=31_536_000))]
    pub expires_in: i64,
    /// Print a token that expired an hour ago: the same as --broken expired.
    #[arg(long, conflicts_with_all = ["expires_in", "invalid_signature", "broken"])]
    pub expired: bool,
    /// Print a token that is signed with another key than it names: the same as --broken signature.
    #[arg(long, conflicts_with = "broken")]
    pub invalid_signature: bool,
    /// Print a token that a server must refuse, for this one reason: signature, tampered, expired, not-yet-valid, no-expiry, audience,
    /// no-audience, issuer, kid, alg-none, alg-confusion, embedded-key, id-token, critical or malformed.
    #[arg(long, value_name = "DEFECT")]
    pub broken: Option<Defect>,
    /// Algorithm: RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA, HS256, HS384, HS512 or none. Default: that of the key, RS256
    /// for a new one.
    #[arg(long, value_name = "ALG")]
    pub alg: Option<Algorithm>,
    /// Sign with the key in this PKCS#8 PEM file (for HS256 and the like: with its content), which is created if missing; `gatewright mock
    /// oauth --key` with the same file publishes it. Default: a new key, whose public part --json prints.
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Print the public keys (JWKS) instead of a token.
    #[arg(long, requires = "key", conflicts_with_all = ["json", "expired", "invalid_signature", "broken"])]
    pub jwks: bool,
    /// Print JSON with the token, its claims and the public keys.
    #[arg(long)]
    pub json: bool,
}

/// Predefined users.
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
        _ => Err("must be a name, `=` and a value".to_owned()),
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
        _ => Err(format!("`{status}` is not an HTTP status such as 404")),
    }
}

/// An algorithm whose key a key set can publish.
fn published(text: &str) -> Result<Algorithm, String> {
    match text.parse()? {
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 | Algorithm::None => {
            Err(format!("an issuer publishes its keys, and {text} has none to publish"))
        }
        other => Ok(other),
    }
}

fn fault(text: &str) -> Result<(Endpoint, Fault), String> {
    let (endpoint, fault) = pair(text)?;
    Ok((endpoint.parse()?, fault.parse()?))
}

/// `gatewright test`.
///
/// Exit codes: 0 every test passed, 1 a test failed, 2 a suite file or the command line is invalid, or no test was selected.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct TestArgs {
    #[command(subcommand)]
    pub command: Option<TestCommand>,
    /// Suite files, or directories: every file in or below them whose name ends in suite.yaml, suite.yml or suite.json.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Number of tests to run at the same time.
    #[arg(short, long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub jobs: u16,
    /// Run only tests whose name contains this text.
    #[arg(short, long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Run only tests with this tag; can be repeated.
    #[arg(long)]
    pub tag: Vec<String>,
    /// Skip tests with this tag; can be repeated.
    #[arg(long, value_name = "TAG")]
    pub exclude_tag: Vec<String>,
    /// Start this server instead of those of the suites: an executable, a .js, .mjs, .ts or .py file, or a command line.
    #[arg(long, value_name = "COMMAND", conflicts_with = "url")]
    pub server: Option<String>,
    /// Test the server at this MCP endpoint instead of those of the suites.
    #[arg(long)]
    pub url: Option<String>,
    /// Cassettes: `none` only replays them (for CI), `new` records those that are missing, `all` records the selected tests again.
    /// Default: as the suites say, or `new`.
    #[arg(long, value_name = "MODE")]
    pub record: Option<RecordMode>,
    /// Variable that overrides one of the suites, NAME=JSON or NAME=TEXT; can be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = claim)]
    pub var: Vec<(String, Value)>,
    /// Format of the output.
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
    /// Write snapshots and latency baselines, beside the suites, instead of comparing with them.
    #[arg(long)]
    pub update: bool,
    /// Begin no further test after one that failed. Running tests end, and `teardown` runs.
    #[arg(long)]
    pub fail_fast: bool,
    /// Run only the tests that failed in the last run in this directory; if none did, all.
    #[arg(long)]
    pub last_failed: bool,
    /// Run again when a suite or a file beside it changes, until Ctrl-C: the changed suites, or all if another file changed.
    #[arg(long)]
    pub watch: bool,
    /// Print the selected tests without running them.
    #[arg(long, conflicts_with = "watch")]
    pub list: bool,
    /// Fail if a test has `only`: for CI, where it would skip the other tests.
    #[arg(long)]
    pub forbid_only: bool,
}

/// Formats of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    /// Text for people.
    Readable,
    /// Test Anything Protocol, version 14.
    Tap,
    /// JUnit XML.
    Junit,
    /// JSON.
    Json,
    /// Text for people, with annotations of GitHub Actions.
    Github,
}

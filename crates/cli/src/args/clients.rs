//! Arguments of the commands for the files of people: `init`, `add`, `connect` and `disconnect`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, builder::PossibleValue};
use gatewright_server::clients::{Client, server_name};

/// A client on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientName(pub Client);

impl ValueEnum for ClientName {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [ClientName; Client::ALL.len()] = {
            let mut all = [ClientName(Client::ClaudeCode); Client::ALL.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = ClientName(Client::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let facts = self.0.facts();
        Some(PossibleValue::new(facts.id).help(facts.title))
    }
}

/// `gatewright init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The file to write.
    #[arg(short, long, value_name = "FILE", default_value = "gatewright.yaml")]
    pub config: PathBuf,
    /// Take the servers of these clients only, and do not ask: claude-code, claude-desktop, cursor, vscode, windsurf, zed, codex, gemini, or
    /// `project` for `.mcp.json` and the like in the current folder.
    #[arg(long, value_name = "CLIENTS", value_delimiter = ',', value_parser = source)]
    pub from: Vec<String>,
    /// Take every server that is found, and do not ask.
    #[arg(short, long)]
    pub yes: bool,
    /// Overwrite the file if there is one.
    #[arg(long)]
    pub force: bool,
}

/// Name of the servers of the current folder, beside those of clients.
pub const PROJECT: &str = "project";

fn source(text: &str) -> Result<String, String> {
    let mut known: Vec<&str> = Client::ALL.iter().map(|client| client.facts().id).collect();
    known.push(PROJECT);
    match known.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(gatewright_findings::unknown("client", text, known)),
    }
}

/// `gatewright add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// Id of the app: its tools are called `<id>:<tool>`.
    pub name: String,
    /// Address of a server.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub url: Option<String>,
    /// OpenAPI document of an HTTP API: a file or an address.
    #[arg(long, value_name = "DOCUMENT", conflicts_with_all = ["command", "url", "env"])]
    pub openapi: Option<String>,
    /// The address is one of the older HTTP+SSE transport.
    #[arg(long, requires = "url")]
    pub sse: bool,
    /// Header of requests to --url or to the API, as `Name: value`; can be repeated. The value may be `${NAME}` or `${file:PATH}`.
    #[arg(long = "header", value_name = "HEADER", value_parser = header, conflicts_with = "command")]
    pub headers: Vec<(String, String)>,
    /// Variable of the command's environment, as `NAME=value`; can be repeated. The value may be `${NAME}` or `${file:PATH}`.
    #[arg(short, long, value_name = "VARIABLE", value_parser = variable, conflicts_with = "url")]
    pub env: Vec<(String, String)>,
    /// Configuration file. Default: `gatewright.yaml` in the current folder.
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// After `--`: the program that serves over standard input and output, with its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

fn header(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    pair.filter(|(name, _)| !name.is_empty()).ok_or_else(|| "must be `Name: value`".to_owned())
}

fn variable(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.filter(|(name, _)| !name.is_empty()).ok_or_else(|| "must be `NAME=value`".to_owned())
}

/// The entry in a client's file.
#[derive(Debug, Args)]
pub struct EntryArgs {
    /// The client.
    pub client: ClientName,
    /// Name of the gateway in the client.
    #[arg(long, default_value = "gatewright", value_name = "NAME", value_parser = sound_name)]
    pub name: String,
    /// The client's file, if it is not at its usual place: that of a project, for example.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Change the file without asking.
    #[arg(short, long)]
    pub yes: bool,
    /// Print the change and leave the file as it is.
    #[arg(long, conflicts_with = "yes")]
    pub print: bool,
}

/// `gatewright connect`.
#[derive(Debug, Args)]
pub struct ConnectArgs {
    #[command(flatten)]
    pub entry: EntryArgs,
    /// Address of the gateway's MCP endpoint. Default: that of the configuration, else http://127.0.0.1:3000/mcp.
    #[arg(long, value_name = "URL", value_parser = address, conflicts_with = "stdio")]
    pub url: Option<String>,
    /// Endpoint of the configuration that the client gets, by its name in `endpoints`. Default: the main one.
    #[arg(long, value_name = "NAME", conflicts_with = "url")]
    pub endpoint: Option<String>,
    /// Let the client start a gateway of its own with the configuration, instead of connecting to a running one. Always so for Claude Desktop,
    /// unless --url is given.
    #[arg(long)]
    pub stdio: bool,
    /// Configuration of the gateway. Default: `gatewright.yaml` in the current folder.
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `gatewright disconnect`.
#[derive(Debug, Args)]
pub struct DisconnectArgs {
    #[command(flatten)]
    pub entry: EntryArgs,
}

fn sound_name(text: &str) -> Result<String, String> {
    match text {
        text if !text.is_empty() && text.len() <= 64 && server_name(text) == text => Ok(text.to_owned()),
        _ => Err("must be 1 to 64 letters, digits, `-` and `_`".to_owned()),
    }
}

fn address(text: &str) -> Result<String, String> {
    match reqwest::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(text.to_owned()),
        _ => Err("must be an address like http://127.0.0.1:3000/mcp".to_owned()),
    }
}

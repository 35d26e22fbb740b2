//! The servers that MCP clients on this machine have.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use gatewright_core::read_file;
use gatewright_server::clients::{Client, FileFormat};
use gatewright_upstream::{McpServer, McpServersError, mcp_servers};
use serde_json::Value;

use crate::{args::PROJECT, clients};

/// Longest file, in bytes.
const LONGEST: u64 = 32 << 20;

/// A client's file, with its servers or the reason why it cannot be read.
pub struct Source {
    /// Name on the command line.
    pub id: &'static str,
    /// Name for people.
    pub title: String,
    /// The file.
    pub file: PathBuf,
    /// Its servers.
    pub servers: Result<Vec<McpServer>, String>,
}

/// Every file of a client on this machine, those of clients first. `here` is the folder of a project.
pub fn sources(environment: &HashMap<String, String>, here: &Path) -> Vec<Source> {
    let own = Client::ALL.into_iter().filter_map(|client| {
        let file = clients::file_of(client, environment).ok()?;
        source(client.facts().id, client.facts().title, client, file, here)
    });
    let mut found: Vec<Source> = own.collect();
    for (client, file) in [
        (Client::ClaudeCode, ".mcp.json"),
        (Client::Cursor, ".cursor/mcp.json"),
        (Client::VsCode, ".vscode/mcp.json"),
        (Client::Zed, ".zed/settings.json"),
        (Client::Codex, ".codex/config.toml"),
        (Client::Gemini, ".gemini/settings.json"),
    ] {
        let file = here.join(file);
        let is_known = found.iter().any(|source| source.file == file);
        found.extend((!is_known).then(|| source(PROJECT, "this project", client, file, here)).flatten());
    }
    found
}

/// The servers of a file, if there is one.
fn source(id: &'static str, title: &str, client: Client, file: PathBuf, here: &Path) -> Option<Source> {
    if !file.exists() {
        return None;
    }
    let servers = servers(client, &file, here);
    Some(Source { id, title: title.to_owned(), file, servers })
}

fn servers(client: Client, file: &Path, here: &Path) -> Result<Vec<McpServer>, String> {
    let format = client.facts().format;
    let bytes = read_file(file, LONGEST).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let value = clients::value(format, &text)?;
    let mut servers = listed(&value)?;
    // Claude Code has the servers of a folder in the same file.
    let project = here.to_str().and_then(|here| value.get("projects")?.get(here));
    if let Some(project) = project.filter(|_| client == Client::ClaudeCode) {
        servers.extend(listed(project)?);
    }
    for server in &mut servers {
        let is_plain_url = server.keys.contains_key("url") && !server.keys.contains_key("type");
        if client == Client::Gemini && format == FileFormat::Json && is_plain_url {
            server.keys.insert("type".to_owned(), "sse".into());
        }
        // The default of a command, and of an address.
        if server.keys.get("type").is_some_and(|kind| kind == "stdio" || kind == "http") {
            server.keys.shift_remove("type");
        }
    }
    servers.retain(|server| !is_gateway(server));
    Ok(servers)
}

fn listed(value: &Value) -> Result<Vec<McpServer>, String> {
    match mcp_servers(value) {
        Err(McpServersError::NoServers) => Ok(Vec::new()),
        other => other.map_err(|error| error.to_string()),
    }
}

/// Returns true for a gateway that `gatewright connect` put there.
fn is_gateway(server: &McpServer) -> bool {
    let program = server.keys.get("command").and_then(Value::as_str).map(Path::new);
    let is_program = program.and_then(Path::file_stem).is_some_and(|name| name == "gatewright");
    let first = server.keys.get("args").and_then(|args| args.get(0)).and_then(Value::as_str);
    (is_program && first == Some("serve")) || (server.name == "gatewright" && server.keys.contains_key("url"))
}

//! The `mcpServers` files that MCP clients share.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::UpstreamConfig;

/// A file of servers that cannot be used. Display names the server and the key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpServersError {
    /// Not JSON.
    #[error("it is not JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// No list of servers in it.
    #[error("it has no `mcpServers` (or `servers`) object")]
    NoServers,
    /// One server is not usable.
    #[error("server `{id}`: {problem}")]
    Server {
        /// Its name in the file.
        id: String,
        /// The problem.
        problem: String,
    },
}

type Servers = IndexMap<String, Map<String, Value>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    mcp_servers: Option<Servers>,
    servers: Option<Servers>,
    mcp: Option<McpSection>,
}

/// The settings file of an editor keeps its servers one level down.
#[derive(Deserialize)]
struct McpSection {
    servers: Option<Servers>,
}

/// Keys of such files that say how a client shows a server, not how it is reached.
const OTHER_CLIENTS: [&str; 11] = [
    "disabled",
    "enabled",
    "name",
    "description",
    "autoApprove",
    "alwaysAllow",
    "disabledTools",
    "icon",
    "gallery",
    "version",
    "dev",
];

/// Reads the `mcpServers` JSON of desktop clients and editors (`claude_desktop_config.json`, `mcp.json`), and the
/// `servers` key of VS Code. Disabled servers are left out; other characters than an app id may have become `-`.
///
/// # Errors
/// Text that is not such a file, or a server in it that could not be reached as written.
pub fn parse_mcp_servers(json: &str) -> Result<IndexMap<String, UpstreamConfig>, McpServersError> {
    let file: File = serde_json::from_str(json).map_err(McpServersError::Json)?;
    let list = file.mcp_servers.or(file.servers).or(file.mcp.and_then(|mcp| mcp.servers));
    let list = list.ok_or(McpServersError::NoServers)?;
    let mut servers = IndexMap::new();
    for (name, mut keys) in list {
        let off = keys.get("disabled") == Some(&Value::Bool(true))
            || keys.get("enabled") == Some(&Value::Bool(false));
        if off {
            continue;
        }
        let failed = |problem: String| McpServersError::Server { id: name.clone(), problem };
        keys.retain(|key, _| !OTHER_CLIENTS.contains(&key.as_str()));
        // Some clients write milliseconds, and some call the address `serverUrl`.
        if let Some(ms) = keys.get("timeout").and_then(Value::as_u64) {
            keys.insert("timeout".to_owned(), format!("{ms}ms").into());
        }
        if let Some(url) = keys.shift_remove("serverUrl") {
            keys.entry("url").or_insert(url);
        }
        let config: UpstreamConfig =
            serde_json::from_value(Value::Object(keys)).map_err(|error| failed(error.to_string()))?;
        let problems: Vec<String> = config.problems().into_iter().map(|field| field.problem).collect();
        if !problems.is_empty() {
            return Err(failed(problems.join("; ")));
        }
        let id = app_id(&name);
        gatewright_core::check_app_id(&id).map_err(failed)?;
        if servers.insert(id.clone(), config).is_some() {
            return Err(failed(format!("another server is `{id}` too; rename one of them")));
        }
    }
    Ok(servers)
}

/// `name` with every run of characters an app id may not have as one `-`.
fn app_id(name: &str) -> String {
    let mut id = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') {
            id.push(c);
        } else if !id.ends_with('-') {
            id.push('-');
        }
    }
    let id: String = id.trim_matches('-').chars().take(64).collect();
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransportType;

    #[test]
    fn the_forms_of_common_clients_are_read() {
        let servers = parse_mcp_servers(
            r#"{"mcpServers": {
                "My Files!": {"command": "npx", "args": ["-y", "server"], "env": {"A": "b"}, "timeout": 1500},
                "remote": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer x"}},
                "old": {"type": "sse", "url": "https://example.com/sse", "autoApprove": []},
                "off": {"command": "x", "disabled": true}}}"#,
        )
        .unwrap();
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["My-Files", "remote", "old"]);
        assert_eq!(servers["My-Files"].timeout.as_millis(), 1500);
        assert_eq!(servers["old"].transport(), TransportType::Sse);
        let code =
            parse_mcp_servers(r#"{"servers": {"a": {"type": "stdio", "command": "x"}}, "inputs": []}"#);
        assert_eq!(code.unwrap()["a"].transport(), TransportType::Stdio);
    }

    #[test]
    fn a_bad_server_is_named_and_its_secrets_are_not() {
        let text = r#"{"mcpServers": {"a": {"command": "x", "url": "http://y", "env": {"K": "hush-hush"}}}}"#;
        let problem = parse_mcp_servers(text).unwrap_err().to_string();
        assert!(
            problem.contains("`a`") && problem.contains("not both") && !problem.contains("hush"),
            "{problem}"
        );
        assert!(matches!(parse_mcp_servers("{}"), Err(McpServersError::NoServers)));
        assert!(matches!(parse_mcp_servers("no"), Err(McpServersError::Json(_))));
        let two = r#"{"mcpServers": {"a b": {"command": "x"}, "a-b": {"command": "x"}}}"#;
        assert!(parse_mcp_servers(two).unwrap_err().to_string().contains("rename"));
    }
}

//! The files in which MCP clients list servers.

use std::{collections::BTreeSet, sync::OnceLock};

use gatewright_core::read_unique;
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::{UpstreamConfig, jsonc::strict_json};

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

/// The places of the list, by client: most of them, VS Code, Zed, Codex, and the settings of editors.
const SECTIONS: [&[&str]; 6] = [
    &["mcpServers"],
    &["servers"],
    &["context_servers"],
    &["mcp_servers"],
    &["mcp", "servers"],
    &["mcp", "mcpServers"],
];

/// One server of such a file.
#[derive(Clone)]
pub struct McpServer {
    /// Its name in the file.
    pub name: String,
    /// Its place in the file, as a JSON pointer.
    pub pointer: String,
    /// Its keys, as those of an [`UpstreamConfig`], and `envFile`. Strings are as they are written, with their variables. May contain secrets.
    pub keys: Map<String, Value>,
    /// Keys that were left out: they say how a client shows or restricts a server, not how it is reached.
    pub ignored: Vec<String>,
}

/// Reads the files of desktop clients and editors, such as `claude_desktop_config.json` and `mcp.json`, and returns the servers that are not
/// disabled. Comments and trailing commas are allowed.
///
/// # Errors
/// Text that is not such a file.
pub fn read_mcp_servers(text: &str) -> Result<Vec<McpServer>, McpServersError> {
    mcp_servers(&read_unique(strict_json(text).as_bytes()).map_err(McpServersError::Json)?)
}

/// Like [`read_mcp_servers`], of a file that was parsed before, such as one in TOML.
///
/// # Errors
/// There is no list of servers in it.
pub fn mcp_servers(file: &Value) -> Result<Vec<McpServer>, McpServersError> {
    let lists = SECTIONS.iter().map(|path| format!("/{}", path.join("/")));
    let mut lists = lists.filter_map(|pointer| Some((file.pointer(&pointer)?.as_object()?, pointer)));
    let (list, pointer) = lists.next().ok_or(McpServersError::NoServers)?;
    let mut servers = Vec::new();
    for (name, keys) in list {
        let Value::Object(keys) = keys else {
            return Err(McpServersError::Server {
                id: name.clone(),
                problem: "must be an object".to_owned(),
            });
        };
        let off = keys.get("disabled") == Some(&Value::Bool(true))
            || keys.get("enabled") == Some(&Value::Bool(false));
        if !off {
            let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            servers.push(McpServer::of(name, pointer, keys.clone()));
        }
    }
    Ok(servers)
}

/// Reads the servers of such a file as [`read_mcp_servers`] does. Variables in strings are left as they are. Other characters than an app id
/// may have become `-`.
///
/// # Errors
/// Text that is not such a file, or a server in it that could not be reached as written.
pub fn parse_mcp_servers(text: &str) -> Result<IndexMap<String, UpstreamConfig>, McpServersError> {
    let mut servers = IndexMap::new();
    for server in read_mcp_servers(text)? {
        let id = server.id()?;
        if servers.insert(id.clone(), server.config()?).is_some() {
            return Err(server.failed(format!("another server is `{id}` too; rename one of them")));
        }
    }
    Ok(servers)
}

impl McpServer {
    fn of(name: &str, pointer: String, keys: Map<String, Value>) -> Self {
        let mut keys = in_our_words(keys);
        let is_known = |key: &str, value: &Value| match key {
            "envFile" => true,
            // Another client's `auth` has no type.
            "auth" => value.get("type").is_some(),
            key => known_keys().contains(key),
        };
        let ignored: Vec<String> =
            keys.iter().filter(|(key, value)| !is_known(key, value)).map(|(key, _)| key.clone()).collect();
        keys.retain(|key, _| !ignored.contains(key));
        Self { name: name.to_owned(), pointer, keys, ignored }
    }

    /// Id of the app: the name with every run of characters that an id may not have as one `-`.
    ///
    /// # Errors
    /// Nothing of the name is left.
    pub fn id(&self) -> Result<String, McpServersError> {
        let mut id = String::with_capacity(self.name.len());
        for c in self.name.chars() {
            if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') {
                id.push(c);
            } else if !id.ends_with('-') {
                id.push('-');
            }
        }
        let id: String = id.trim_matches('-').chars().take(64).collect();
        gatewright_core::check_app_id(&id).map_err(|problem| self.failed(problem))?;
        Ok(id)
    }

    /// The configuration that its keys make.
    ///
    /// # Errors
    /// It cannot be reached as written.
    pub fn config(&self) -> Result<UpstreamConfig, McpServersError> {
        if self.keys.contains_key("envFile") {
            return Err(self.failed("`envFile` was not read; put its variables into `env`".to_owned()));
        }
        let keys = Value::Object(self.keys.clone());
        let config: UpstreamConfig =
            serde_json::from_value(keys).map_err(|error| self.failed(error.to_string()))?;
        let mut problems: Vec<String> = config.problems().into_iter().map(|field| field.problem).collect();
        if problems.is_empty() {
            return Ok(config);
        }
        if !self.ignored.is_empty() {
            problems.push(format!("these keys have no meaning here: {}", self.ignored.join(", ")));
        }
        Err(self.failed(problems.join("; ")))
    }

    fn failed(&self, problem: String) -> McpServersError {
        McpServersError::Server { id: self.name.clone(), problem }
    }
}

/// The keys of an [`UpstreamConfig`].
fn known_keys() -> &'static BTreeSet<String> {
    static KEYS: OnceLock<BTreeSet<String>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let schema = schemars::schema_for!(UpstreamConfig);
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(key, _)| key.clone()).collect()
    })
}

/// The keys of a client as ours.
fn in_our_words(mut keys: Map<String, Value>) -> Map<String, Value> {
    // Zed had everything of a command in one object.
    if let Some(Value::Object(mut command)) = keys.get("command").cloned() {
        keys.shift_remove("command");
        if let Some(path) = command.shift_remove("path") {
            command.insert("command".to_owned(), path);
        }
        keys.extend(command);
    }
    // Windsurf and Gemini.
    for (theirs, is_streamable) in [("serverUrl", false), ("httpUrl", true)] {
        if let Some(url) = keys.shift_remove(theirs) {
            keys.insert("url".to_owned(), url);
            if is_streamable {
                keys.insert("type".to_owned(), "http".into());
            }
        }
    }
    if keys.get("type").is_some_and(|kind| kind == "local") {
        keys.insert("type".to_owned(), "stdio".into());
    }
    codex(&mut keys);
    keys.retain(|_, value| !value.is_null());
    // Some clients write milliseconds.
    if let Some(ms) = keys.get("timeout").and_then(Value::as_u64) {
        keys.insert("timeout".to_owned(), format!("{ms}ms").into());
    }
    for map in ["env", "headers"] {
        if let Some(Value::Object(values)) = keys.get_mut(map) {
            values.retain(|_, value| !value.is_null());
            for value in values.values_mut().filter(|value| value.is_number() || value.is_boolean()) {
                *value = Value::String(value.to_string());
            }
        }
    }
    keys
}

/// Replaces the keys of Codex that others do not have.
fn codex(keys: &mut Map<String, Value>) {
    for (theirs, ours) in [("startup_timeout_sec", "connectTimeout"), ("tool_timeout_sec", "timeout")] {
        if let Some(seconds) = keys.shift_remove(theirs).as_ref().and_then(Value::as_f64).filter(|s| *s > 0.0)
        {
            keys.insert(ours.to_owned(), format!("{}ms", (seconds * 1000.0).ceil()).into());
        }
    }
    let mut headers = Map::new();
    if let Some(Value::Object(given)) = keys.shift_remove("http_headers") {
        headers.extend(given);
    }
    if let Some(Value::Object(given)) = keys.shift_remove("env_http_headers") {
        let variables = given
            .into_iter()
            .filter_map(|(header, name)| Some((header, json!(format!("${{{}}}", name.as_str()?)))));
        headers.extend(variables);
    }
    if let Some(Value::String(name)) = keys.shift_remove("bearer_token_env_var") {
        headers.insert("Authorization".to_owned(), format!("Bearer ${{{name}}}").into());
    }
    if !headers.is_empty() {
        keys.insert("headers".to_owned(), Value::Object(headers));
    }
    if let Some(Value::Array(names)) = keys.shift_remove("env_vars") {
        let env = keys.entry("env").or_insert_with(|| Value::Object(Map::new()));
        for name in names.iter().filter_map(Value::as_str) {
            if let Value::Object(env) = env {
                env.entry(name).or_insert_with(|| format!("${{{name}}}").into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransportType;

    #[test]
    fn the_forms_of_common_clients_are_read() {
        let servers = parse_mcp_servers(
            r#"{"mcpServers": { // what I use
                "My Files!": {"command": "npx", "args": ["-y", "server"], "env": {"A": "b", "N": 1}, "timeout": 1500},
                "remote": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer x"}},
                "old": {"type": "sse", "url": "https://example.com/sse", "autoApprove": []},
                "gemini": {"httpUrl": "https://example.com/mcp", "trust": true},
                "off": {"command": "x", "disabled": true},}}"#,
        )
        .unwrap();
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["My-Files", "remote", "old", "gemini"]);
        assert_eq!(servers["My-Files"].timeout.as_millis(), 1500);
        assert_eq!(servers["My-Files"].env["N"].expose(), "1");
        assert_eq!(servers["old"].transport(), TransportType::Sse);
        assert_eq!(servers["gemini"].transport(), TransportType::Http);
        let code =
            parse_mcp_servers(r#"{"servers": {"a": {"type": "stdio", "command": "x"}}, "inputs": []}"#);
        assert_eq!(code.unwrap()["a"].transport(), TransportType::Stdio);
        let zed = parse_mcp_servers(
            r#"{"context_servers": {"z": {"command": {"path": "x", "args": ["a"], "env": null}}}}"#,
        );
        assert_eq!(zed.unwrap()["z"].args, ["a"]);
    }

    #[test]
    fn the_keys_of_codex_become_ours() {
        let file = json!({"mcp_servers": {
            "web": {"url": "https://example.com/mcp", "bearer_token_env_var": "T", "env_http_headers": {"X-Key": "K"}, "tool_timeout_sec": 1.5},
            "cli": {"command": "x", "env_vars": ["A"], "enabled_tools": ["t"]}}});
        let servers = mcp_servers(&file).unwrap();
        assert_eq!(servers[0].keys["headers"], json!({"X-Key": "${K}", "Authorization": "Bearer ${T}"}));
        assert_eq!(servers[0].config().unwrap().timeout.as_millis(), 1500);
        assert_eq!(servers[1].keys["env"], json!({"A": "${A}"}));
        assert_eq!(
            (servers[1].ignored.as_slice(), &*servers[1].pointer),
            (["enabled_tools".to_owned()].as_slice(), "/mcp_servers/cli")
        );
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
        let twice = "{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\"}}}";
        let problem = parse_mcp_servers(twice).unwrap_err().to_string();
        assert!(problem.contains("`mcpServers.a` is there twice at line 2"), "{problem}");
        let misspelt =
            parse_mcp_servers(r#"{"mcpServers": {"a": {"comand": "x"}}}"#).unwrap_err().to_string();
        assert!(misspelt.contains("needs `command`") && misspelt.contains("comand"), "{misspelt}");
        let two = r#"{"mcpServers": {"a b": {"command": "x"}, "a-b": {"command": "x"}}}"#;
        assert!(parse_mcp_servers(two).unwrap_err().to_string().contains("rename"));
    }
}

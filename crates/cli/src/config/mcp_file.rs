//! The files of clients (`mcp.json`, `claude_desktop_config.json`) as a configuration: their variables, and `envFile`.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use gatewright_findings::{Finding, Format, Lines, with_lines};
use gatewright_upstream::{McpServer, UpstreamConfig, read_mcp_servers, strict_json};
use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::{
    env_file,
    interpolate::{Filler, Surroundings},
};

/// Reads the servers of the file at `path`, whose content is `text`.
///
/// # Errors
/// Everything that keeps a server from being reached as written.
pub(super) fn read(
    path: &Path,
    text: &str,
    environment: &HashMap<String, String>,
) -> Result<IndexMap<String, UpstreamConfig>, Vec<Finding>> {
    let listed = read_mcp_servers(text).map_err(|error| vec![Finding::new("", error.to_string())])?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let environment = with_places(environment, here);
    let around = Surroundings { environment: &environment, folder: Some(folder), is_own: false };
    let (mut servers, mut findings) = (IndexMap::new(), Vec::new());
    for mut server in listed {
        let mut filler = Filler::new(around);
        let found = fill(&mut server, &mut filler, folder);
        if found.is_empty() {
            match server.id().and_then(|id| Ok((id, server.config()?))) {
                Ok((id, _)) if servers.contains_key(&id) => {
                    let problem = format!("another server is `{id}` too; rename one of them");
                    findings.push(Finding::new(&server.pointer, problem));
                }
                Ok((id, config)) => drop(servers.insert(id, config)),
                Err(error) => {
                    let mut problem = [Finding::new(&server.pointer, error.to_string())];
                    filler.hide(&mut problem);
                    findings.extend(problem);
                }
            }
        }
        findings.extend(found);
        if !server.ignored.is_empty() {
            let (name, keys) = (&server.name, server.ignored.join(", "));
            tracing::info!("{}: server `{name}`: keys without a meaning here: {keys}", path.display());
        }
    }
    if findings.is_empty() {
        return Ok(servers);
    }
    Err(with_lines(findings, &Lines::of(&strict_json(text), Format::Json)))
}

/// Fills in the variables of a server, and those of its `envFile`.
fn fill(server: &mut McpServer, filler: &mut Filler<'_>, folder: &Path) -> Vec<Finding> {
    let mut keys = Value::Object(std::mem::take(&mut server.keys));
    let (_, mut findings) = filler.apply(&server.pointer, &mut keys);
    let Value::Object(mut keys) = keys else { return findings };
    if let Some(Value::String(file)) = keys.shift_remove("envFile").filter(|_| findings.is_empty()) {
        match env_file::read(&folder.join(file)) {
            Ok(variables) => {
                let mut env: Map<String, Value> =
                    variables.into_iter().map(|(name, value)| (name, value.into())).collect();
                if let Some(Value::Object(own)) = keys.shift_remove("env") {
                    env.extend(own);
                }
                keys.insert("env".to_owned(), env.into());
            }
            Err(problem) => findings.push(Finding::new(&format!("{}/envFile", server.pointer), problem)),
        }
    }
    server.keys = keys;
    findings
}

/// The environment with the places that editors know as variables.
fn with_places(environment: &HashMap<String, String>, folder: &Path) -> HashMap<String, String> {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let workspace: PathBuf = match folder.file_name().and_then(|name| name.to_str()) {
        Some(".vscode" | ".cursor" | ".gemini" | ".zed") => folder.parent().unwrap_or(&folder).to_owned(),
        _ => folder,
    };
    let mut all = places_of_editors(environment, &workspace);
    all.extend(environment.iter().map(|(name, value)| (name.clone(), value.clone())));
    all
}

/// The places that editors know as variables, for a project in `workspace`.
pub fn places_of_editors(environment: &HashMap<String, String>, workspace: &Path) -> HashMap<String, String> {
    let name = workspace.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let places = [
        ("workspaceFolder", workspace.display().to_string()),
        ("workspaceFolderBasename", name),
        ("userHome", environment.get("HOME").cloned().unwrap_or_default()),
        ("pathSeparator", "/".to_owned()),
        ("/", "/".to_owned()),
    ];
    places.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Fills in the variables of a client's server, to see whether that is possible.
///
/// # Errors
/// The first that cannot be filled in.
pub fn try_filling(
    keys: &Value,
    environment: &HashMap<String, String>,
    folder: &Path,
) -> Result<Value, String> {
    let around = Surroundings { environment, folder: Some(folder), is_own: false };
    let mut filled = keys.clone();
    let (_, findings) = Filler::new(around).apply("", &mut filled);
    findings.into_iter().next().map_or(Ok(filled), |finding| Err(finding.problem))
}

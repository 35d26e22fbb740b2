//! The command, arguments and files of the server under test.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Map, Value};
use tempfile::NamedTempFile;

use crate::{
    server::{Server, ServerBuilder},
    suite::{format::ServerSection, variables::Variables},
};

/// Resolves a path relative to the suite's directory.
pub(in crate::suite) fn resolve_path(dir: Option<&Path>, name: &str) -> PathBuf {
    dir.map_or_else(|| PathBuf::from(name), |dir| dir.join(name))
}

/// A file with the configuration of the server, which ends with this.
pub(super) fn config_file(
    config: &Map<String, Value>,
    variables: &Variables,
) -> Result<NamedTempFile, String> {
    let failed = |error: std::io::Error| format!("the file of `server.config`: {error}");
    let filled = variables.fill(&Value::Object(config.clone()))?;
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().map_err(failed)?;
    file.write_all(filled.to_string().as_bytes()).map_err(failed)?;
    Ok(file)
}

/// Configures the server. `config` is the path of the file with its configuration.
pub(super) fn builder(
    section: &ServerSection,
    dir: Option<&Path>,
    variables: &Variables,
    config: &str,
) -> Result<ServerBuilder, String> {
    let command = variables.text(section.command.as_deref().unwrap_or_default())?;
    // A file in the suite's directory takes precedence over anything else of the same name.
    let file = resolve_path(dir, &command);
    let command = match !command.is_empty() && file.is_file() {
        true => std::path::absolute(&file).unwrap_or(file).display().to_string(),
        false => command,
    };
    let mut builder = Server::builder(command)
        .transport(section.transport)
        .strict(section.strict.clone())
        .startup_option("startupTimeoutMs");
    for arg in &section.args {
        builder = builder.arg(variables.text(arg)?.replace("{config}", config));
    }
    if let Some(cwd) = &section.cwd {
        builder = builder.current_dir(resolve_path(dir, &variables.text(cwd)?));
    } else if let Some(dir) = dir.filter(|dir| !dir.as_os_str().is_empty()) {
        builder = builder.current_dir(dir);
    }
    if let Some(port) = section.port {
        builder = builder.port(port);
    }
    if let Some(path) = &section.path {
        builder = builder.path(path);
    }
    if let Some(path) = &section.ready_path {
        builder = builder.ready_path(path);
    }
    if let Some(level) = section.log_level {
        builder = builder.log_level(level.name());
    }
    if let Some(url) = &section.base_url {
        builder = builder.base_url(variables.text(url)?);
    }
    if let Some(url) = &section.url {
        let url = variables.text(url)?;
        let parsed = url::Url::parse(&url).map_err(|error| format!("`{url}` is no URL: {error}"))?;
        let path = parsed[url::Position::BeforePath..].to_owned();
        builder = builder.base_url(&parsed[..url::Position::BeforePath]);
        if path.len() > 1 && section.path.is_none() {
            builder = builder.path(path);
        }
    }
    if let Some(ms) = section.startup_timeout_ms {
        builder = builder.startup_timeout(Duration::from_millis(ms));
    }
    Ok(builder)
}

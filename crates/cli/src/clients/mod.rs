//! The configuration files of MCP clients: their places on this machine, and changes of one entry in them.
//!
//! The layout of the files is in `gatewright_server::clients`; `jsonc` and `tables` change their text, and `files` reads and writes.

pub mod files;
mod jsonc;
mod tables;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use gatewright_server::clients::{Base, Client, FileFormat, Way};
use serde_json::Value;

pub use jsonc::insert as insert_json;

/// The file of a client on this machine.
///
/// # Errors
/// A variable that says where the home folder is is not set.
pub fn file_of(client: Client, environment: &HashMap<String, String>) -> Result<PathBuf, String> {
    let facts = client.facts();
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some((variable, file)) = facts.moved_by
        && let Some(folder) = set(variable)
    {
        return Ok(folder.join(file));
    }
    let place = facts.places[if cfg!(target_os = "macos") { 1 } else { usize::from(cfg!(windows)) * 2 }];
    let home = || {
        set(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).ok_or_else(|| {
            format!("the variable HOME is not set; name the file of {} with --file FILE", facts.title)
        })
    };
    let folder = match place.base {
        Base::Home => home()?,
        Base::Config => set("XDG_CONFIG_HOME").map_or_else(|| home().map(|home| home.join(".config")), Ok)?,
        Base::ApplicationSupport => home()?.join("Library/Application Support"),
        Base::AppData => {
            set("APPDATA").map_or_else(|| home().map(|home| home.join("AppData/Roaming")), Ok)?
        }
    };
    Ok(folder.join(place.path))
}

/// The text of a client's file with the server `name`.
///
/// # Errors
/// The text is not a file of the client.
pub fn with_server(client: Client, text: &str, name: &str, way: Way<'_>) -> Result<String, String> {
    let facts = client.facts();
    match facts.format {
        FileFormat::Json => jsonc::insert(text, facts.section, name, &Value::Object(client.entry(way))),
        FileFormat::Toml => tables::insert(text, facts.section, name, &client.file_with(name, way)),
    }
}

/// The text of a client's file without the server `name`; `None` if it is not there.
///
/// # Errors
/// The text is not a file of the client.
pub fn without_server(client: Client, text: &str, name: &str) -> Result<Option<String>, String> {
    let facts = client.facts();
    match facts.format {
        FileFormat::Json => jsonc::remove(text, facts.section, name),
        FileFormat::Toml => tables::remove(text, facts.section, name),
    }
}

/// The content of a client's file as JSON.
///
/// # Errors
/// The text is not a file of the client.
pub fn value(format: FileFormat, text: &str) -> Result<Value, String> {
    match format {
        FileFormat::Json => jsonc::parse(text).map(Value::Object),
        FileFormat::Toml => tables::value(text),
    }
}

/// The server `name` in a client's file, as JSON.
pub fn server(client: Client, text: &str, name: &str) -> Option<Value> {
    let facts = client.facts();
    let mut file = value(facts.format, text).ok()?;
    file.get_mut(facts.section)?.get_mut(name).map(Value::take)
}

/// The copy beside a file, made before it is changed.
pub fn copy_of(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".before-gatewright");
    file.with_file_name(name)
}

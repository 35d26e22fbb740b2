//! `gatewright add`: one more app in a configuration.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use gatewright_core::check_app_id;
use gatewright_upstream::names_credential;
use serde_json::{Map, Value};

use crate::{
    args::{AddArgs, configuration_here},
    clients::files,
    config::{self, AppConfig},
    exit::BadConfig,
    output::{errln, outln},
    write,
};

/// The file that is made if there is none.
const NEW: &str = "gatewright.yaml";

/// Adds the app, if the configuration is good with it.
pub fn run(args: &AddArgs) -> anyhow::Result<ExitCode> {
    check_app_id(&args.name).map_err(|problem| BadConfig(format!("`{}`: {problem}", args.name)))?;
    let path = args.config.clone().or_else(configuration_here).unwrap_or_else(|| PathBuf::from(NEW));
    let keys = keys(args, &path)?;
    let failed = |problem: String| BadConfig(format!("{}: {problem}", path.display()));
    let format = config::format_of(&path)?;
    let before = files::read_to_change(&path).map_err(failed)?;
    let after =
        write::with_app(before.as_deref().unwrap_or_default(), format, &args.name, &keys).map_err(failed)?;
    let missing = write::check(&path, &after)?;
    files::replace(&path, before.as_deref(), &after).map_err(failed)?;
    outln!("{} has the app `{}` now", path.display(), args.name)?;
    for name in missing {
        errln!("set the variable {name} before you start the gateway");
    }
    for (place, name) in in_clear(&keys) {
        errln!(
            "{place}.{name} is in the file as you typed it; to keep it out, write `${{{0}}}` and set that variable, or `${{file:PATH}}`",
            name.to_ascii_uppercase().replace('-', "_")
        );
    }
    if before.is_none() {
        errln!("the file is new: start it with `gatewright serve`");
    }
    Ok(ExitCode::SUCCESS)
}

/// The document as the configuration at `path` names it: a file is relative to that, and to the current folder on the command line.
///
/// # Errors
/// There is no such file.
fn document(given: &str, path: &Path) -> anyhow::Result<String> {
    if !given.contains("://") && !given.contains("${") && !Path::new(given).is_file() {
        return Err(BadConfig(format!("--openapi {given}: there is no such file")).into());
    }
    let is_here = path.parent().is_none_or(|folder| folder.as_os_str().is_empty() || folder == ".");
    if given.contains("://") || is_here {
        return Ok(given.to_owned());
    }
    Ok(std::path::absolute(given)?.display().to_string())
}

/// The keys of the app, for the configuration at `path`.
fn keys(args: &AddArgs, path: &Path) -> anyhow::Result<Map<String, Value>> {
    let mut keys = Map::new();
    let pairs = |pairs: &[(String, String)]| -> Value {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
            .collect::<Map<_, _>>()
            .into()
    };
    if let Some(url) = &args.url {
        if args.sse {
            keys.insert("type".to_owned(), "sse".into());
        }
        keys.insert("url".to_owned(), url.as_str().into());
    } else if let Some(openapi) = &args.openapi {
        keys.insert("openapi".to_owned(), document(openapi, path)?.into());
    } else if let Some((program, arguments)) = args.command.split_first() {
        keys.insert("command".to_owned(), program.as_str().into());
        if !arguments.is_empty() {
            keys.insert("args".to_owned(), arguments.into());
        }
    } else {
        let problem = "an app needs a command, an address or an OpenAPI document: `gatewright add NAME -- npx -y PACKAGE`, `gatewright add NAME --url URL`, or \
                       `gatewright add NAME --openapi FILE`";
        return Err(BadConfig(problem.to_owned()).into());
    }
    for (key, given) in [("env", &args.env), ("headers", &args.headers)] {
        if !given.is_empty() {
            keys.insert(key.to_owned(), pairs(given));
        }
    }
    AppConfig::check(&keys).map_err(BadConfig)?;
    Ok(keys)
}

/// Values that look like secrets and are written in clear: the section and the name.
fn in_clear(keys: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let section = |key: &'static str, all: bool| {
        let fields = keys.get(key).and_then(Value::as_object).into_iter().flatten();
        let secret = fields.filter(move |(name, value)| {
            (all || names_credential(name)) && value.as_str().is_some_and(|text| !text.contains("${"))
        });
        secret.map(move |(name, _)| (key, name.clone()))
    };
    section("env", false).chain(section("headers", true)).collect()
}

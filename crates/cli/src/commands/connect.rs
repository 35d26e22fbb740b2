//! `gatewright connect` and `disconnect`: this gateway in the configuration of a client.

mod change;

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use gatewright_server::clients::{Client, Way};
use serde_json::Value;

use crate::{
    args::{ConnectArgs, DisconnectArgs, EntryArgs, configuration_here},
    ask,
    clients::{self, files},
    commands::serve::check_endpoint,
    config::Config,
    environment::environment,
    exit::BadConfig,
    output::{errln, outln},
};
use change::Values;

/// Address of a gateway without a configuration.
const DEFAULT_URL: &str = "http://127.0.0.1:3000/mcp";

/// Puts the gateway into a client's file.
pub fn connect(args: &ConnectArgs) -> anyhow::Result<ExitCode> {
    let entry = &args.entry;
    let client = entry.client.0;
    let config = args.config.clone().or_else(configuration_here);
    let by_command = args.stdio || (args.url.is_none() && !client.takes_addresses());
    let (program, arguments, url);
    let way = if by_command {
        (program, arguments) = command(config.as_deref(), args.endpoint.as_deref())?;
        Way::Command(&program, &arguments)
    } else {
        url = match &args.url {
            Some(url) => url.clone(),
            None => address(config.as_deref(), args.endpoint.as_deref())?,
        };
        Way::Url(&url)
    };
    let file = file(entry)?;
    let by_hand =
        || format!("to add it by hand, write into the file:\n{}", client.file_with(&entry.name, way));
    let failed = |problem: String| BadConfig(format!("{}: {problem}\n{}", file.display(), by_hand()));
    let before = files::read_to_change(&file).map_err(failed)?;
    let old = before.as_deref().unwrap_or_default();
    let after = clients::with_server(client, old, &entry.name, way).map_err(failed)?;
    if has_entry(client, old, &entry.name, way) {
        outln!("{} has it already: {}", client.facts().title, file.display())?;
        return Ok(ExitCode::SUCCESS);
    }
    if !agreed(entry, &file, old, &after, Values::Shown)? {
        return Ok(ExitCode::SUCCESS);
    }
    // A copy from before the first connection is worth more than one that has an older entry.
    let is_first = clients::without_server(client, old, &entry.name).is_ok_and(|rest| rest.is_none());
    let copy = clients::copy_of(&file);
    if before.is_some() && (is_first || !copy.exists()) {
        files::keep_copy(&copy, &file, old)
            .with_context(|| format!("{} cannot be written; nothing was changed", copy.display()))?;
    }
    files::replace(&file, before.as_deref(), &after).map_err(failed)?;
    let title = client.facts().title;
    outln!("{title} has the server `{}` now: {}", entry.name, file.display())?;
    if before.is_some() {
        outln!("The file as it was: {}", copy.display())?;
    }
    match way {
        Way::Url(url) => outln!(
            "Start the gateway with `gatewright serve`, so that it answers at {url}, then restart {title}."
        )?,
        Way::Command(..) => outln!("Restart {title}: it starts the gateway itself.")?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes the gateway out of a client's file.
pub fn disconnect(args: &DisconnectArgs) -> anyhow::Result<ExitCode> {
    let entry = &args.entry;
    let client = entry.client.0;
    let file = file(entry)?;
    let by_hand = format!("take `{}` out of `{}` by hand", entry.name, client.facts().section);
    let failed = |problem: String| BadConfig(format!("{}: {problem}\n{by_hand}", file.display()));
    let before = files::read_to_change(&file).map_err(failed)?;
    let rest = before.as_deref().map(|text| clients::without_server(client, text, &entry.name)).transpose();
    let (Some(before), Some(rest)) = (&before, rest.map_err(failed)?.flatten()) else {
        outln!("{} has no server `{}`: {}", client.facts().title, entry.name, file.display())?;
        return Ok(ExitCode::SUCCESS);
    };
    let copy = clients::copy_of(&file);
    let original = files::read(&copy).ok().flatten();
    // If nothing else has changed since, the file becomes what it was, byte for byte.
    let was = original.filter(|original| is_what_connect_made(client, original, before, &entry.name));
    let is_new = was.is_none() && !copy.exists() && is_what_connect_made(client, "", before, &entry.name);
    let after = if is_new { String::new() } else { was.clone().unwrap_or(rest) };
    if !agreed(entry, &file, before, &after, Values::Hidden)? {
        return Ok(ExitCode::SUCCESS);
    }
    let title = client.facts().title;
    if is_new {
        fs::remove_file(&file).with_context(|| format!("{} cannot be removed", file.display()))?;
        outln!(
            "{title} has no server `{}` any more; the file had nothing else: {} was removed",
            entry.name,
            file.display()
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    files::replace(&file, Some(before), &after).map_err(failed)?;
    outln!("{title} has no server `{}` any more: {}", entry.name, file.display())?;
    match was {
        Some(_) => drop(fs::remove_file(&copy)),
        None if copy.exists() => outln!("The file from before it was connected: {}", copy.display())?,
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns true if the file has this entry, wherever it stands.
fn has_entry(client: Client, text: &str, name: &str, way: Way<'_>) -> bool {
    clients::server(client, text, name) == Some(Value::Object(client.entry(way)))
}

/// Returns true if adding the entry that is in `now` to `before` gives `now`.
fn is_what_connect_made(client: Client, before: &str, now: &str, name: &str) -> bool {
    let Some(entry) = clients::server(client, now, name) else { return false };
    let text = |key: &str| ["url", "serverUrl", "httpUrl", "command"].contains(&key);
    let Some(way) = entry.as_object().and_then(|entry| entry.iter().find(|(key, _)| text(key))) else {
        return false;
    };
    let (key, Some(target)) = (way.0, way.1.as_str()) else { return false };
    let args: Vec<String> = serde_json::from_value(entry["args"].clone()).unwrap_or_default();
    let bridged = args.last().map(String::as_str).filter(|_| target == "npx");
    let ways = match key.as_str() {
        "command" => [Some(Way::Command(target, &args)), bridged.map(Way::Url)],
        _ => [Some(Way::Url(target)), None],
    };
    ways.into_iter()
        .flatten()
        .any(|way| clients::with_server(client, before, name, way).is_ok_and(|text| text == now))
}

/// Shows the change, and asks unless the command line has answered.
fn agreed(
    entry: &EntryArgs,
    file: &Path,
    before: &str,
    after: &str,
    new_values: Values,
) -> anyhow::Result<bool> {
    let change = change::shown(entry.client.0, &entry.name, before, after, new_values);
    outln!("{}\n{change}", file.display())?;
    if entry.print {
        return Ok(false);
    }
    if entry.yes {
        return Ok(true);
    }
    if !ask::can_ask() {
        let problem = "standard input is no terminal, so nobody can be asked: pass --yes to change the file, or --print to see the change only";
        return Err(BadConfig(problem.to_owned()).into());
    }
    let agreed = ask::yes("Change the file?")?;
    if !agreed {
        errln!("nothing was changed");
    }
    Ok(agreed)
}

fn file(entry: &EntryArgs) -> anyhow::Result<PathBuf> {
    match &entry.file {
        Some(file) => Ok(file.clone()),
        None => Ok(clients::file_of(entry.client.0, &environment()).map_err(BadConfig)?),
    }
}

/// The command line that serves one client with a configuration, at one of its endpoints or at the main one.
fn command(config: Option<&Path>, endpoint: Option<&str>) -> anyhow::Result<(String, Vec<String>)> {
    let Some(config) = config else {
        let problem = "there is no gatewright.yaml in this folder for the client to start the gateway with; name one with --config FILE, let \
                       `gatewright init` write one, or name the address of a running gateway with --url URL";
        return Err(BadConfig(problem.to_owned()).into());
    };
    let missing = || format!("{} cannot be found", config.display());
    let config = fs::canonicalize(config).with_context(missing)?;
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    let text = |path: PathBuf| {
        path.into_os_string()
            .into_string()
            .map_err(|path| BadConfig(format!("{} is not UTF-8", path.display())))
    };
    if endpoint.is_some() {
        read(&config, endpoint)?;
    }
    let at = endpoint.into_iter().flat_map(|name| ["--endpoint", name]);
    let arguments = ["serve", "--stdio"].into_iter().chain(at).chain(["--config"]).map(str::to_owned);
    Ok((text(program)?, arguments.chain([text(config)?]).collect()))
}

/// Reads a configuration, which has the endpoint.
fn read(path: &Path, endpoint: Option<&str>) -> anyhow::Result<Config> {
    let (config, findings, _) = Config::examine(path)?;
    let Some(config) = config else { return Err(BadConfig::of_file(path, &findings).into()) };
    if let Some(name) = endpoint {
        check_endpoint(&config, name)?;
    }
    Ok(config)
}

/// Address of an endpoint that a configuration makes.
fn address(config: Option<&Path>, endpoint: Option<&str>) -> anyhow::Result<String> {
    let path = match (config, endpoint) {
        (Some(path), _) => path,
        (None, None) => return Ok(DEFAULT_URL.to_owned()),
        (None, Some(name)) => {
            let problem = format!(
                "there is no gatewright.yaml in this folder that has the endpoint `{name}`; name one with --config FILE, or the address of the \
                 endpoint with --url URL"
            );
            return Err(BadConfig(problem).into());
        }
    };
    let http = read(path, endpoint)?.http;
    let base = match &http.public_url {
        Some(url) => url.as_str().trim_end_matches('/').to_owned(),
        None => {
            let host = if http.host.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { http.host };
            http.origin_at(SocketAddr::new(host, http.port))
        }
    };
    Ok(match endpoint {
        None => format!("{base}{}", http.path),
        Some(name) => format!("{base}{}/{name}", http.path.trim_end_matches('/')),
    })
}

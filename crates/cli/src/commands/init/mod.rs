//! `gatewright init`: a configuration from the servers that people have in their MCP clients.

mod apps;
mod file;
mod found;
mod secrets;

use std::{collections::HashMap, path::Path, process::ExitCode};

use gatewright_upstream::McpServer;

use crate::{
    args::InitArgs,
    ask,
    clients::files,
    config::{Config, format_of},
    environment::environment,
    exit::BadConfig,
    output::{errln, outln},
};
use apps::{NewApp, SECRETS};
use file::one_line;
use found::{Source, sources};

/// A server, and the source that has it.
struct Candidate<'s> {
    server: &'s McpServer,
    source: &'s Source,
}

/// Finds servers, asks which to take, and writes the file.
pub fn run(args: &InitArgs) -> anyhow::Result<ExitCode> {
    if format_of(&args.config)? != gatewright_findings::Format::Yaml {
        return Err(BadConfig(format!(
            "{}: `init` writes YAML: name a file that ends in .yaml",
            args.config.display()
        ))
        .into());
    }
    let asks = args.from.is_empty() && !args.yes;
    let before = may_write(args)?;
    let (environment, here) = (environment(), std::env::current_dir()?);
    let sources = sources(&environment, &here);
    report(&sources, &environment);
    let taken = chosen(args, &sources, asks)?;
    let mut apps = Vec::new();
    for (id, candidate) in taken {
        let from = format!("{} ({})", candidate.source.title, short(&candidate.source.file, &environment));
        apps.push(NewApp::of(
            candidate.server.clone(),
            id,
            from,
            &candidate.source.file,
            &here,
            &environment,
        ));
    }
    write(args, before.as_deref(), &apps)?;
    next_steps(args, &sources, &apps)
}

/// The text of the file that is to be overwritten, if that is allowed.
fn may_write(args: &InitArgs) -> anyhow::Result<Option<String>> {
    let path = &args.config;
    let before =
        files::read_to_change(path).map_err(|problem| BadConfig(format!("{}: {problem}", path.display())))?;
    if before.is_none() || args.force {
        return Ok(before);
    }
    let can_ask = args.from.is_empty() && !args.yes && ask::can_ask();
    if can_ask && ask::yes(&format!("{} exists. Overwrite it?", path.display()))? {
        return Ok(before);
    }
    let problem = format!(
        "{} exists and was not changed: `gatewright add` adds an app to it, --force overwrites it, and --config FILE writes another file",
        path.display()
    );
    Err(BadConfig(problem).into())
}

/// Says what was found where.
fn report(sources: &[Source], environment: &HashMap<String, String>) {
    for source in sources {
        let file = short(&source.file, environment);
        match &source.servers {
            Ok(servers) => {
                let names: Vec<String> = servers.iter().map(|server| one_line(&server.name)).collect();
                let names = if names.is_empty() { "no servers".to_owned() } else { names.join(", ") };
                errln!("{} ({file}): {names}", source.title);
            }
            Err(problem) => errln!("{} ({file}) is left out: {}", source.title, one_line(problem)),
        }
    }
}

/// The servers to take, with ids of their own.
fn chosen<'s>(
    args: &InitArgs,
    sources: &'s [Source],
    asks: bool,
) -> anyhow::Result<Vec<(String, Candidate<'s>)>> {
    let mut found: Vec<(String, Candidate<'s>)> = Vec::new();
    for source in
        sources.iter().filter(|source| args.from.is_empty() || args.from.iter().any(|id| id == source.id))
    {
        for server in source.servers.as_deref().unwrap_or_default() {
            let is_same = |(_, other): &&(String, Candidate<'_>)| other.server.keys == server.keys;
            if let Some((id, _)) = found.iter().find(is_same) {
                let name = one_line(&server.name);
                errln!("`{name}` of {} is the same as `{id}`: it is taken once", source.title);
                continue;
            }
            match server.id() {
                Ok(id) => {
                    let id = free(id, source.id, |id| found.iter().any(|(other, _)| other == id));
                    found.push((id, Candidate { server, source }));
                }
                Err(error) => errln!("{}: it is left out", one_line(&error.to_string())),
            }
        }
    }
    if !asks || found.is_empty() {
        return Ok(found);
    }
    if !ask::can_ask() {
        let found = match found.len() {
            1 => "one server was found".to_owned(),
            many => format!("{many} servers were found"),
        };
        let problem = format!(
            "{found}, and standard input is no terminal to ask which to take: pass --yes to take all, or --from with clients, as in --from \
             cursor,project"
        );
        return Err(BadConfig(problem).into());
    }
    for (at, (id, candidate)) in found.iter().enumerate() {
        errln!("{:>3}  {id:<24} {}", at + 1, candidate.source.title);
    }
    let answer = ask::line("Take all of them? [Y/n, or numbers such as 1,3]")?;
    let numbers = match answer.to_ascii_lowercase().as_str() {
        "" | "y" | "yes" => return Ok(found),
        "n" | "no" => Vec::new(),
        text => text
            .split([',', ' '])
            .filter(|part| !part.is_empty())
            .map(str::parse::<usize>)
            .collect::<Result<_, _>>()
            .map_err(|_| BadConfig(format!("`{text}` is neither yes, no nor numbers")))?,
    };
    let mut at = 0;
    found.retain(|_| {
        at += 1;
        numbers.contains(&at)
    });
    Ok(found)
}

/// The id, or the first of its variants that is not taken.
fn free(id: String, source: &str, taken: impl Fn(&str) -> bool) -> String {
    let base: String = id.chars().take(40).collect();
    let variants = std::iter::once(id).chain(std::iter::once(format!("{base}-{source}")));
    let mut all = variants.chain((2..).map(|number| format!("{base}-{source}-{number}")));
    all.find(|id| !taken(id)).unwrap_or(base)
}

/// Writes the secrets and the configuration.
fn write(args: &InitArgs, before: Option<&str>, apps: &[NewApp]) -> anyhow::Result<()> {
    let path = &args.config;
    let folder = path.parent().unwrap_or(Path::new("")).join(SECRETS);
    let secrets: Vec<&(String, String)> = apps.iter().flat_map(|app| &app.secrets).collect();
    if !secrets.is_empty() {
        secrets::write(&folder, &secrets).map_err(|problem| {
            BadConfig(format!("secrets cannot be written to {}: {problem}", folder.display()))
        })?;
    }
    let text = file::text(apps);
    let (_, findings, _) = Config::examine_text(path, &text)?;
    if !findings.is_empty() {
        return Err(BadConfig::of_file(path, &findings).into());
    }
    Ok(files::replace(path, before, &text)
        .map_err(|problem| BadConfig(format!("{}: {problem}", path.display())))?)
}

fn next_steps(args: &InitArgs, sources: &[Source], apps: &[NewApp]) -> anyhow::Result<ExitCode> {
    let path = args.config.display();
    let running: Vec<&NewApp> = apps.iter().filter(|app| app.blocked.is_none()).collect();
    let secrets: usize = apps.iter().map(|app| app.secrets.len()).sum();
    match running.len() {
        0 => outln!("Wrote {path} with a sample app, since no server was taken.")?,
        1 => outln!("Wrote {path} with one app.")?,
        some => outln!("Wrote {path} with {some} apps.")?,
    }
    match secrets {
        0 => {}
        1 => outln!("One secret is in a file in {SECRETS}, readable by you alone; {path} names that file.")?,
        some => outln!(
            "{some} secrets are in files in {SECRETS}, readable by you alone; {path} names these files."
        )?,
    }
    for app in apps.iter().filter(|app| app.blocked.is_some()) {
        let reason = one_line(app.blocked.as_deref().unwrap_or_default());
        outln!("`{}` is in the file as a comment: {reason}", app.id)?;
    }
    let option =
        if args.config == Path::new("gatewright.yaml") { String::new() } else { format!(" --config {path}") };
    let client = sources
        .iter()
        .map(|source| source.id)
        .find(|id| *id != crate::args::PROJECT)
        .unwrap_or("claude-code");
    outln!(
        "\nNext:\n  gatewright serve{option}\n  gatewright connect {client}{option}     # in another terminal"
    )?;
    if !running.is_empty() {
        outln!(
            "Your clients still start these servers themselves: once the gateway works, take them out there."
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A path with `~` for the home folder.
fn short(path: &Path, environment: &HashMap<String, String>) -> String {
    let home = environment.get("HOME").filter(|home| !home.is_empty());
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

//! `gatewright pins`: approved definitions of tools.

use std::{path::Path, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context as _;
use gatewright::{AppHealth, Registry};
use gatewright_core::{AppOptions, Catalog, DefinitionChanges, PinState, Pins, show_hidden};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    args::{ConfigArgs, PinsArgs, PinsCommand},
    config::{Config, PinFile},
    exit::{self, BadConfig},
    logging,
    output::{self, errln, outln},
    pins,
    wire::gateway,
};

/// Longest wait for the apps.
const SETTLE: Duration = Duration::from_secs(30);

/// A tool that is pinned, or was.
#[derive(Serialize)]
struct Row {
    app: String,
    /// The app's own name for it.
    tool: String,
    /// `approved`, `changed`, `new` or `gone`.
    state: &'static str,
}

/// The pinned apps that are up, and the pins of the file.
struct Pinned {
    file: PinFile,
    apps: Vec<(Arc<str>, Arc<AppOptions>, Arc<Catalog>)>,
}

/// Lists pinned tools, shows what changed, or approves it.
pub async fn run(args: &PinsArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        PinsCommand::List { config, json } => list(&Pinned::read(config).await?, *json),
        PinsCommand::Diff { names, config, json } => diff(&Pinned::read(config).await?, names, *json),
        PinsCommand::Approve { names, all, config } => approve(Pinned::read(config).await?, names, *all),
    }
}

impl Pinned {
    /// Starts the apps of the configuration, and reads their tools.
    async fn read(path: &Path) -> anyhow::Result<Self> {
        let config = Config::of(&ConfigArgs { config: Some(path.to_owned()), mcp_config: None })?;
        let file = config.pin_file.clone();
        if file.path.is_none() {
            return Err(BadConfig(format!(
                "{} pins nothing: set `pin: true` for an app or a tool",
                path.display()
            ))
            .into());
        }
        logging::without_client_library();
        let mut without_code = config;
        without_code.codecall.enabled = false;
        // Saved plans need code mode, and are files of this machine.
        without_code.apps.retain(|_, app| app.plan_sources().is_none());
        let running = gateway::start(&without_code).await?;
        gateway::settle(&running, SETTLE).await;
        let apps = Self::apps(running.gateway().registry());
        running.stop().await;
        Ok(Self { file, apps })
    }

    fn apps(registry: &Registry) -> Vec<(Arc<str>, Arc<AppOptions>, Arc<Catalog>)> {
        let mut apps = Vec::new();
        for entry in &registry.operator_snapshot().apps {
            match entry.app.health() {
                AppHealth::Up => apps.push((entry.id.clone(), entry.options.clone(), entry.app.catalog())),
                AppHealth::Down(why) => {
                    errln!("app `{}` is down: its tools are not compared: {}", entry.id, why.in_full());
                }
                AppHealth::Starting => errln!("app `{}` is not there: its tools are not compared", entry.id),
            }
        }
        apps
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (app, options, catalog) in &self.apps {
            let row = |tool: &str, state| Row { app: app.to_string(), tool: tool.to_owned(), state };
            for tool in &catalog.tools {
                let state = match self.file.pins.state(app, options, tool) {
                    None => continue,
                    Some(PinState::Approved) => "approved",
                    Some(PinState::Changed(_)) => "changed",
                    Some(PinState::New) => "new",
                };
                rows.push(row(&tool.name, state));
            }
            let is_offered = |name: &str| catalog.tools.iter().any(|tool| tool.name == name);
            rows.extend(
                self.file.pins.names(app).filter(|name| !is_offered(name)).map(|name| row(name, "gone")),
            );
        }
        rows
    }

    /// The rows that `names` select: `<app>`, or `<app>:<tool>`. All without names.
    fn select(&self, names: &[String]) -> anyhow::Result<Vec<Row>> {
        let rows = self.rows();
        let meets = |row: &Row, name: &str| match name.split_once(':') {
            Some((app, tool)) => row.app == app && row.tool == tool,
            None => row.app == name,
        };
        if let Some(unknown) = names.iter().find(|name| !rows.iter().any(|row| meets(row, name))) {
            let problem = format!(
                "`{unknown}` is no pinned app or tool (`<app>`, or `<app>:<tool>` by the app's own name); `gatewright pins list` prints them"
            );
            return Err(BadConfig(problem).into());
        }
        let chosen = |row: &Row| names.is_empty() || names.iter().any(|name| meets(row, name));
        Ok(rows.into_iter().filter(chosen).collect())
    }
}

fn list(pinned: &Pinned, json: bool) -> anyhow::Result<ExitCode> {
    let rows = pinned.rows();
    if json {
        output::pretty_json(&rows)?;
    } else {
        for row in rows {
            outln!("{:<10} {}:{}", row.state, row.app, line(&row.tool))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn diff(pinned: &Pinned, names: &[String], json: bool) -> anyhow::Result<ExitCode> {
    let rows: Vec<Row> = pinned.select(names)?.into_iter().filter(|row| row.state != "approved").collect();
    let mut all = Vec::new();
    for row in &rows {
        let catalog = pinned.apps.iter().find(|(id, ..)| **id == *row.app).map(|(.., catalog)| catalog);
        let tool = catalog.and_then(|catalog| catalog.tools.iter().find(|tool| tool.name == row.tool));
        let changes = tool.map(|tool| pinned.file.pins.changes(&row.app, tool)).unwrap_or_default();
        if json {
            let written: Vec<Value> = changes
                .first
                .iter()
                .map(|change| json!({"pointer": change.pointer, "before": change.before, "after": change.after}))
                .collect();
            all.push(json!({"app": row.app, "tool": row.tool, "state": row.state, "changes": written, "more": changes.more}));
            continue;
        }
        print_changes(row, &changes)?;
    }
    if json {
        output::pretty_json(&all)?;
    }
    Ok(if rows.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn approve(pinned: Pinned, names: &[String], all: bool) -> anyhow::Result<ExitCode> {
    if names.is_empty() && !all {
        return Err(BadConfig("name apps or tools to approve, or use --all".to_owned()).into());
    }
    let rows = pinned.select(names)?;
    let mut approved_pins = Pins::clone(&pinned.file.pins);
    let mut approved = 0;
    for (app, options, catalog) in &pinned.apps {
        let of_app = || rows.iter().filter(|row| *row.app == **app);
        if of_app().next().is_some() {
            // An app that was never pinned is pinned whole, as at its first connection.
            approved_pins.pin_first(app, options, &catalog.tools);
        }
        for row in of_app().filter(|row| row.state != "approved") {
            // The server was started anew and may say something else than to the last `diff`: this is what is approved.
            match catalog.tools.iter().find(|tool| tool.name == row.tool) {
                Some(tool) => {
                    print_changes(row, &pinned.file.pins.changes(app, tool))?;
                    approved_pins.approve(app, tool);
                }
                None => {
                    print_changes(row, &DefinitionChanges::default())?;
                    approved_pins.forget(app, &row.tool);
                }
            }
            approved += 1;
        }
    }
    let Some(path) = &pinned.file.path else { return Ok(ExitCode::SUCCESS) };
    pins::write(path, &approved_pins).with_context(|| format!("{} is not written", path.display()))?;
    errln!("{approved} approved in {}; running servers follow by themselves", path.display());
    Ok(ExitCode::SUCCESS)
}

/// Prints the state of a tool and each value that differs from the approved one.
fn print_changes(row: &Row, changes: &DefinitionChanges) -> anyhow::Result<()> {
    outln!("{}:{} is {}", row.app, line(&row.tool), row.state)?;
    for change in &changes.first {
        outln!("  {}", line(if change.pointer.is_empty() { "/" } else { &change.pointer }))?;
        for (sign, value) in [('-', &change.before), ('+', &change.after)] {
            if let Some(value) = value {
                outln!("  {sign} {}", show_hidden(&value.to_string()))?;
            }
        }
    }
    if changes.more > 0 {
        outln!("  and {} more differences", changes.more)?;
    }
    Ok(())
}

/// A name that a server chose, in one line: hidden characters and line breaks are written out.
fn line(name: &str) -> String {
    show_hidden(name).replace('\n', "\\n").replace('\r', "\\r")
}

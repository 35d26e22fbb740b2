//! `gatewright check`.

use std::{path::Path, process::ExitCode, time::Duration};

use gatewright::{AppHealth, Registry, Running};
use gatewright_auth::FirstUser;
use gatewright_codecall::SavedPlans;
use gatewright_findings::{Finding, escape, first, printable};
use gatewright_policy::Catalog;
use serde_json::json;

use crate::{
    args::{CheckArgs, ConfigArgs},
    config::{AppKind, Config, policy_finding},
    exit::{self, BadConfig},
    logging, names,
    output::{self, errln, outln},
    wire::gateway,
};

/// Longest wait for the apps whose lists names and policies are compared with.
const SETTLE: Duration = Duration::from_secs(30);

/// Prints every problem with its line and a fix.
pub async fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let mut files =
        ConfigArgs { config: args.file.clone().or(args.config.config.clone()), ..args.config.clone() };
    files.or_here();
    let Some(file) = files.config.as_ref().or(files.mcp_config.as_ref()) else {
        let problem =
            "there is no gatewright.yaml in this folder; name a file, or let `gatewright init` write one";
        return Err(BadConfig(problem.to_owned()).into());
    };
    let (config, mut findings) = Config::examine_all(&files)?;
    let mut warnings = Vec::new();
    if let Some(config) = &config {
        if findings.is_empty() {
            let running = start(config, args).await?;
            let registry = running.as_ref().map(|running| &**running.gateway().registry());
            check_names(config, args.live, registry, file, &mut findings, &mut warnings)?;
            findings.extend(check_policies(config, registry, file));
            if let Some(running) = running {
                running.stop().await;
            }
        }
        if args.production {
            findings.extend(config.production(file)?);
        }
        check_plans(config, &mut findings, &mut warnings);
        check_documents(config, args.live, file, &mut findings, &mut warnings).await?;
    }
    let makes_user = config.is_some_and(|config| config.auth.makes_first_user());
    let path = file.display();
    let (listed, more) = first(&findings);
    if args.json {
        let mut report =
            json!({"file": path.to_string(), "ok": findings.is_empty(), "findings": listed, "more": more});
        if !warnings.is_empty() {
            report["warnings"] = json!(first(&warnings).0);
        }
        output::json(&report)?;
    } else if findings.is_empty() {
        outln!("{path}: ok")?;
        if makes_user {
            errln!(
                "{path}: auth.local.users: no user is configured, so `serve` creates the user `{}` and prints its password at the start",
                FirstUser::NAME
            );
        }
    } else {
        for finding in listed {
            outln!("{}: {}", place(finding, file), finding.without_line())?;
        }
        if more > 0 {
            outln!("{path}: and {more} more problems")?;
        }
    }
    if !args.json {
        let (listed, more) = first(&warnings);
        for warning in listed {
            errln!("{}: warning: {}", place(warning, file), warning.without_line());
        }
        if more > 0 {
            errln!("{path}: and {more} more warnings");
        }
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::USAGE) })
}

/// File and line of a finding; the file is that of the configuration unless the finding has another.
fn place(finding: &Finding, config: &Path) -> String {
    let file = finding.file.clone().unwrap_or_else(|| config.display().to_string());
    let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
    file + &line
}

/// Starts the apps: all of them for a `live` check and for policies, else those that are part of this program, which need nothing from outside;
/// none for an `offline` check.
async fn start(config: &Config, args: &CheckArgs) -> anyhow::Result<Option<Running>> {
    if args.offline {
        return Ok(None);
    }
    let for_policies = config.policy_files.engine.is_some();
    let mut config = config.clone();
    if !args.live && !for_policies {
        config.apps.retain(|_, app| matches!(app.kind, AppKind::Builtin(_)));
    }
    if config.apps.is_empty() {
        return Ok(None);
    }
    logging::errors_only();
    // What apps offer does not depend on code mode.
    config.codecall.enabled &= for_policies;
    let running = gateway::start(&config).await?;
    gateway::settle(&running, SETTLE).await;
    Ok(Some(running))
}

/// Adds names of things that do not exist. They are findings in a `live` check, and so are apps that are down; else they are warnings, for
/// apps may be added later. What of an app clients do not get is a warning in a `live` check.
fn check_names(
    config: &Config,
    live: bool,
    registry: Option<&Registry>,
    file: &Path,
    findings: &mut Vec<Finding>,
    warnings: &mut Vec<Finding>,
) -> anyhow::Result<()> {
    let mut found = names::unknown(config, registry);
    let Some(registry) = registry.filter(|_| live) else {
        warnings.extend(Config::with_lines_of(file, found)?);
        return Ok(());
    };
    let (snapshot, mut unfit) = (registry.operator_snapshot(), Vec::new());
    for app in &snapshot.apps {
        // What the document of an OpenAPI app has is listed by `check_documents`.
        let is_openapi = matches!(config.apps.get(&*app.id).map(|app| &app.kind), Some(AppKind::Openapi(_)));
        let catalog = app.app.catalog();
        let own =
            snapshot.findings(&app.id).iter().filter(|one| !(is_openapi && catalog.unread.contains(one)));
        unfit.extend(own.map(|one| {
            let end = if one.is_left_out { "it is left out" } else { "it is offered without that part" };
            let problem = format!("`{}`: {}; {end}", printable(&one.item, 200), one.problem);
            Finding::new(&format!("/apps/{}", escape(&app.id)), problem)
        }));
        let why = match app.app.health() {
            AppHealth::Down(why) => why.in_full(),
            AppHealth::Starting => format!("it did not start within {} s", SETTLE.as_secs()),
            AppHealth::Up => continue,
        };
        let problem = format!("is down, so names of what it offers are not checked: {why}");
        found.push(Finding::new(&format!("/apps/{}", escape(&app.id)), problem));
    }
    findings.extend(Config::with_lines_of(file, found)?);
    warnings.extend(Config::with_lines_of(file, unfit)?);
    Ok(())
}

/// Problems of the policies, with the catalog of the apps if they were started.
fn check_policies(config: &Config, registry: Option<&Registry>, file: &Path) -> Vec<Finding> {
    let Some(engine) = &config.policy_files.engine else { return Vec::new() };
    let items = registry.map(Registry::operator_snapshot);
    let catalog = items.as_ref().map(|items| Catalog::new(items));
    for app in catalog.iter().flat_map(|catalog| &catalog.unavailable) {
        errln!("{app}; policies about its tools are not checked");
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    let problems = engine.check(catalog.as_ref());
    problems.iter().map(|problem| policy_finding("/policies", problem, folder)).collect()
}

/// Adds the problems of OpenAPI documents: of those in files, and in a `live` check of those behind URLs, too. What of a document is not used is
/// a warning.
async fn check_documents(
    config: &Config,
    live: bool,
    file: &Path,
    findings: &mut Vec<Finding>,
    warnings: &mut Vec<Finding>,
) -> anyhow::Result<()> {
    let (mut found, mut unused) = (Vec::new(), Vec::new());
    for (id, app) in &config.apps {
        let AppKind::Openapi(openapi) = &app.kind else { continue };
        // What the configuration itself has wrong is a finding of it already.
        if openapi.file().is_none() && !live || !openapi.problems().is_empty() {
            continue;
        }
        let report = gatewright_openapi::check(openapi).await;
        let pointer = format!("/apps/{}", escape(id));
        for field in report.problems {
            let place = format!("{pointer}/{}", field.path.replace('.', "/"));
            found.push(Finding::new(place.trim_end_matches('/'), field.problem));
        }
        unused.extend(
            report.findings.iter().map(|one| Finding::new(&format!("{pointer}/openapi"), one.to_string())),
        );
    }
    findings.extend(Config::with_lines_of(file, found)?);
    warnings.extend(Config::with_lines_of(file, unused)?);
    Ok(())
}

/// Adds the problems of saved plans: those for which a plan is not served, and those that it may have.
fn check_plans(config: &Config, findings: &mut Vec<Finding>, warnings: &mut Vec<Finding>) {
    for (id, app) in &config.apps {
        let Some(sources) = app.plan_sources() else { continue };
        // A path that does not exist is a finding of the configuration already.
        if let Ok(report) = SavedPlans::check(id, sources, &config.codecall) {
            findings.extend(report.findings);
            warnings.extend(report.warnings);
        }
    }
}

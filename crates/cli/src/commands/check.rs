//! `gatewright check`.

use std::{path::Path, process::ExitCode, time::Duration};

use gatewright_auth::FirstUser;
use gatewright_codecall::SavedPlans;
use gatewright_findings::{Finding, first};
use gatewright_policy::Catalog;
use serde_json::json;

use crate::{
    args::CheckArgs,
    config::{Config, policy_finding},
    exit, logging,
    output::{self, errln, outln},
    wire::gateway,
};

/// Longest wait for the apps whose tools policies name.
const SETTLE: Duration = Duration::from_secs(30);

/// Prints every problem with its line and a fix.
pub async fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let (config, mut findings, _) = Config::examine(&args.config)?;
    if let Some(config) = config.as_ref().filter(|_| findings.is_empty()) {
        findings.extend(check_policies(config, args).await?);
    }
    if let Some(config) = config.as_ref().filter(|_| args.production) {
        findings.extend(config.production(&args.config)?);
    }
    let mut warnings = Vec::new();
    if let Some(config) = &config {
        check_plans(config, &mut findings, &mut warnings);
    }
    let makes_user = config.is_some_and(|config| config.auth.makes_first_user());
    let path = args.config.display();
    let (listed, more) = first(&findings);
    if args.json {
        let file = path.to_string();
        let mut report = json!({"file": file, "ok": findings.is_empty(), "findings": listed, "more": more});
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
            outln!("{}: {}", place(finding, &args.config), finding.without_line())?;
        }
        if more > 0 {
            outln!("{path}: and {more} more problems")?;
        }
    }
    if !args.json {
        for warning in first(&warnings).0 {
            errln!("{}: warning: {}", place(warning, &args.config), warning.without_line());
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

/// Problems of the policies: with the catalog of the apps, which are started for it, unless the check is `offline`.
async fn check_policies(config: &Config, args: &CheckArgs) -> anyhow::Result<Vec<Finding>> {
    let Some(engine) = &config.policy_files.engine else { return Ok(Vec::new()) };
    let problems = if args.offline {
        engine.check(None)
    } else {
        logging::without_client_library();
        let running = gateway::start(config).await?;
        gateway::settle(&running, SETTLE).await;
        let items = running.gateway().registry().operator_snapshot();
        let catalog = Catalog::new(&items);
        let problems = engine.check(Some(&catalog));
        for app in &catalog.unavailable {
            errln!("{app}; policies about its tools are not checked");
        }
        running.stop().await;
        problems
    };
    let folder = args.config.parent().unwrap_or(Path::new(""));
    Ok(problems.iter().map(|problem| policy_finding("/policies", problem, folder)).collect())
}

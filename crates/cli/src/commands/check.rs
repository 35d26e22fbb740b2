//! `gatewright check`.

use std::process::ExitCode;

use gatewright_auth::FirstUser;
use gatewright_findings::first;
use serde_json::json;

use crate::{
    args::CheckArgs,
    config::Config,
    exit,
    output::{self, errln, outln},
};

/// Prints every problem with its line and a fix.
pub fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let (config, mut findings, _) = Config::examine(&args.config)?;
    if let Some(config) = config.as_ref().filter(|_| args.production) {
        findings.extend(config.production(&args.config)?);
    }
    let makes_user = config.is_some_and(|config| config.auth.makes_first_user());
    let path = args.config.display();
    let (listed, more) = first(&findings);
    if args.json {
        let file = path.to_string();
        output::json(&json!({"file": file, "ok": findings.is_empty(), "findings": listed, "more": more}))?;
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
            let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
            outln!("{path}{line}: {}", finding.without_line())?;
        }
        if more > 0 {
            outln!("{path}: and {more} more problems")?;
        }
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::USAGE) })
}

//! `gatewright check`.

use std::process::ExitCode;

use gatewright_auth::FirstUser;
use serde_json::json;

use crate::{args::CheckArgs, config::Config, exit};

/// Prints every problem with its line and a fix.
pub fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let (config, mut findings, _) = Config::examine(&args.config)?;
    if let Some(config) = config.as_ref().filter(|_| args.production) {
        findings.extend(config.production(&args.config)?);
    }
    let makes_user = config.is_some_and(|config| config.auth.makes_first_user());
    let shown = args.config.display();
    if args.json {
        println!("{}", json!({"file": shown.to_string(), "ok": findings.is_empty(), "findings": findings}));
    } else if findings.is_empty() {
        println!("{shown}: ok");
        if makes_user {
            eprintln!(
                "{shown}: auth.local.users: no user is configured, so `serve` creates the user `{}` and prints its password at the start",
                FirstUser::NAME
            );
        }
    } else {
        for finding in &findings {
            match finding.line {
                Some(line) => print!("{shown}:{line}: "),
                None => print!("{shown}: "),
            }
            if !finding.path.is_empty() {
                print!("{}: ", finding.path);
            }
            println!("{}", finding.problem);
        }
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::USAGE) })
}

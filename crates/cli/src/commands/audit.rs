//! `gatewright audit`.

use std::{fs::File, io::BufReader, process::ExitCode};

use gatewright_audit::verify;
use serde_json::json;

use crate::{
    args::{AuditArgs, AuditCommand},
    exit::{self, BadConfig},
};

/// Checks an audit file.
pub fn run(args: &AuditArgs) -> anyhow::Result<ExitCode> {
    let AuditCommand::Verify { file, json } = &args.command;
    let shown = file.display();
    let opened = File::open(file).map_err(|error| BadConfig(format!("{shown} cannot be read: {error}")))?;
    match verify(BufReader::new(opened)) {
        Ok(verified) if *json => {
            println!(
                "{}",
                json!({"ok": true, "lines": verified.lines, "torn": verified.torn, "chain": verified.chain})
            );
            Ok(ExitCode::SUCCESS)
        }
        Ok(verified) => {
            println!("{shown}: {} lines, none changed; last digest {}", verified.lines, verified.chain);
            if verified.torn > 0 {
                println!(
                    "{} of them were cut in two by a crash, and the lines after them say so",
                    verified.torn
                );
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(broken) => {
            if *json {
                println!("{}", json!({"ok": false, "problem": broken.to_string()}));
            } else {
                println!("{shown}: {broken}");
            }
            Ok(ExitCode::from(exit::FAILED))
        }
    }
}

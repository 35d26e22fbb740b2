//! `gatewright audit`.

use std::{
    fs::File,
    io::{self, BufReader},
    path::Path,
    process::ExitCode,
};

use gatewright_operator::audit::{Verified, verify};
use serde_json::json;

use crate::{
    args::{AuditArgs, AuditCommand},
    exit::{self, BadConfig},
    output::{self, outln},
};

/// Verifies audit files, oldest first.
pub fn run(args: &AuditArgs) -> anyhow::Result<ExitCode> {
    let AuditCommand::Verify { files, json } = &args.command;
    let mut before: Option<Verified> = None;
    for file in files {
        let opened =
            open(file).map_err(|error| BadConfig(format!("{} cannot be read: {error}", file.display())))?;
        let verified = verify(BufReader::new(opened)).map_err(|broken| broken.to_string());
        let follows = verified.and_then(|verified| match &before {
            Some(before) if verified.previous.as_ref() != Some(&before.chain) => {
                Err("its first line does not continue the previous file: a file is missing or was cut, or the order is wrong".to_owned())
            }
            _ => Ok(verified),
        });
        let verified = match follows {
            Ok(verified) => verified,
            Err(problem) => {
                let path = file.display();
                match json {
                    true => output::json(&json!({"ok": false, "file": file, "problem": problem}))?,
                    false => outln!("{path}: {problem}")?,
                }
                return Ok(ExitCode::from(exit::FAILED));
            }
        };
        if !json {
            print(file, &verified)?;
        }
        before = Some(match before {
            Some(all) => Verified {
                lines: all.lines + verified.lines,
                torn: all.torn + verified.torn,
                lost: all.lost + verified.lost,
                ..verified
            },
            None => verified,
        });
    }
    if let (true, Some(all)) = (*json, before) {
        let Verified { lines, torn, lost, chain, .. } = all;
        output::json(&json!({"ok": true, "lines": lines, "torn": torn, "lost": lost, "chain": chain}))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens a regular file: a pipe would be waited for, and some devices have no end.
fn open(file: &Path) -> io::Result<File> {
    if !std::fs::metadata(file)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    File::open(file)
}

fn print(file: &Path, verified: &Verified) -> anyhow::Result<()> {
    outln!("{}: {} lines, none changed; last digest {}", file.display(), verified.lines, verified.chain)?;
    if let Some(previous) = &verified.previous {
        outln!("it continues a file that ends with {previous}")?;
    }
    if verified.torn > 0 {
        outln!("{} lines were cut by a crash, which the line after each states", verified.torn)?;
    }
    if verified.lost > 0 {
        outln!("{} events could not be written, which later lines state", verified.lost)?;
    }
    Ok(())
}

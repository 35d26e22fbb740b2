//! `gatewright user`.

use std::{
    io::{BufRead as _, IsTerminal as _, Read as _},
    process::ExitCode,
};

use anyhow::Context as _;
use gatewright_auth::{SystemEntropy, hash_password};

use crate::{
    args::{UserArgs, UserCommand},
    exit::BadConfig,
};

/// NIST SP 800-63B §5.1.1.2.
const LEAST: usize = 8;
/// More than anybody types.
const MOST_BYTES: usize = 1024;

/// Prints what the configuration wants.
pub fn run(args: &UserArgs) -> anyhow::Result<ExitCode> {
    let UserCommand::Hash = args.command;
    let password = password()?;
    if password.chars().count() < LEAST {
        return Err(BadConfig(format!("the password needs at least {LEAST} characters")).into());
    }
    if password.len() > MOST_BYTES {
        return Err(BadConfig(format!("the password may have at most {MOST_BYTES} bytes")).into());
    }
    println!("{}", hash_password(&SystemEntropy, &password));
    Ok(ExitCode::SUCCESS)
}

fn password() -> anyhow::Result<String> {
    if !std::io::stdin().is_terminal() {
        let mut line = String::new();
        let mut input = std::io::stdin().lock().take(64 * 1024);
        input.read_line(&mut line).context("standard input holds no text")?;
        return Ok(line.trim_end_matches(['\r', '\n']).to_owned());
    }
    let ask = |prompt: &str| rpassword::prompt_password(prompt).context("the terminal cannot be read");
    let password = ask("Password: ")?;
    if ask("Again: ")? != password {
        return Err(BadConfig("the two are not the same; try again".to_owned()).into());
    }
    Ok(password)
}

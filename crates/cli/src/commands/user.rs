//! `gatewright user`.

use std::{
    io::{BufRead as _, IsTerminal as _, Read as _},
    net::SocketAddr,
    path::Path,
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use gatewright_auth::{
    EnrolError, SystemEntropy,
    config::{Mode, StorageKind},
    hash_password,
};

use crate::{
    args::{ConfigArgs, UserArgs, UserCommand},
    auth,
    config::Config,
    exit::BadConfig,
};

/// NIST SP 800-63B §5.1.1.2.
const LEAST: usize = 8;
/// More than anybody types.
const MOST_BYTES: usize = 1024;

/// Prints what the configuration wants, or what a user needs.
pub async fn run(args: &UserArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        UserCommand::Hash => hash(),
        UserCommand::Enrol { name, config, minutes } => enrol(name, config, *minutes).await,
    }
}

async fn enrol(name: &str, path: &Path, minutes: u64) -> anyhow::Result<ExitCode> {
    let mut config = Config::of(&ConfigArgs { config: Some(path.to_owned()), mcp_config: None })?;
    let cannot = match (config.auth.mode, config.auth.token_storage.kind) {
        (Mode::Orchestrated, StorageKind::Memory) => {
            "the running server keeps links in its memory (`auth.tokenStorage.type: memory`), which this command cannot reach; use `redis` or `sqlite`"
        }
        (Mode::Orchestrated, _) => "",
        _ => "users sign in elsewhere (`auth.mode`): there is nobody to enrol",
    };
    if !cannot.is_empty() {
        return Err(BadConfig(cannot.to_owned()).into());
    }
    // The running server holds its audit file; what is done here is told in this command's log.
    config.auth.audit_file = None;
    let address = SocketAddr::new(config.http.host, config.http.port);
    let server = auth::server(&config, address, None).await?;
    let made = server.enrol(name, Duration::from_secs(minutes * 60)).await.map_err(|error| match error {
        EnrolError::Store(error) => anyhow::Error::new(error).context("the link was not made"),
        other => BadConfig(other.to_string()).into(),
    })?;
    if made.passkeys > 0 {
        eprintln!("{name} has {} passkey(s) already; they go on working", made.passkeys);
    }
    println!("{}", made.expose_link());
    Ok(ExitCode::SUCCESS)
}

fn hash() -> anyhow::Result<ExitCode> {
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

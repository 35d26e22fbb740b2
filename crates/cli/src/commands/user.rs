//! `gatewright user`: passwords, passkeys and sessions of users.

use std::{
    io::{BufRead as _, IsTerminal as _, Read as _},
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

use serde_json::json;

use crate::{
    args::{StoreArgs, UserArgs, UserCommand},
    exit::BadConfig,
    output::{self, errln, outln},
    wire::auth_store::{self, Access},
};

/// Shortest password, in characters (NIST SP 800-63B §5.1.1.2).
const MIN_CHARS: usize = 8;
/// Longest password, in bytes.
const MAX_BYTES: usize = 1024;

/// Hashes a password, prints an enrolment link, or signs a user out.
pub async fn run(args: &UserArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        UserCommand::Hash => hash(),
        UserCommand::Enrol { name, config, minutes } => enrol(name, config, *minutes).await,
        UserCommand::SignOut { name, store } => sign_out(name, store).await,
    }
}

async fn enrol(name: &str, path: &Path, minutes: u64) -> anyhow::Result<ExitCode> {
    let server = auth_store::open(path, Access::Change, |auth| match (auth.mode, auth.token_storage.kind) {
        (Mode::Orchestrated, StorageKind::Memory) => Some(
            "the running server keeps links in its memory (`auth.tokenStorage.type: memory`), which this command cannot reach; use `redis` or `sqlite`",
        ),
        (Mode::Orchestrated, _) => None,
        _ => Some("users do not sign in to this server (`auth.mode`): there is nobody to enrol"),
    })
    .await?;
    let made = server.enrol(name, Duration::from_secs(minutes * 60)).await.map_err(|error| match error {
        EnrolError::Store(error) => anyhow::Error::new(error).context("the link was not made"),
        other => BadConfig(other.to_string()).into(),
    })?;
    if made.passkeys > 0 {
        errln!("{name} already has {} passkey(s); they remain valid", made.passkeys);
    }
    outln!("{}", made.expose_link())?;
    Ok(ExitCode::SUCCESS)
}

async fn sign_out(name: &str, store: &StoreArgs) -> anyhow::Result<ExitCode> {
    let server = auth_store::open_shared(store, Access::Change).await?;
    let subject = auth_store::known_subject(&server, name)?;
    server.revoke_user(&subject).await.context("the user was not signed out")?;
    match store.json {
        true => output::json(&json!({"signedOut": subject}))?,
        false => outln!("{subject} is signed out everywhere")?,
    }
    Ok(ExitCode::SUCCESS)
}

fn hash() -> anyhow::Result<ExitCode> {
    let password = password()?;
    if password.chars().count() < MIN_CHARS {
        return Err(BadConfig(format!("the password needs at least {MIN_CHARS} characters")).into());
    }
    if password.len() > MAX_BYTES {
        return Err(BadConfig(format!("the password may have at most {MAX_BYTES} bytes")).into());
    }
    outln!("{}", hash_password(&SystemEntropy, &password))?;
    Ok(ExitCode::SUCCESS)
}

fn password() -> anyhow::Result<String> {
    if !std::io::stdin().is_terminal() {
        let mut line = String::new();
        let mut input = std::io::stdin().lock().take(64 * 1024);
        input.read_line(&mut line).context("standard input is not text")?;
        return Ok(line.trim_end_matches(['\r', '\n']).to_owned());
    }
    let ask = |prompt: &str| rpassword::prompt_password(prompt).context("the terminal cannot be read");
    let password = ask("Password: ")?;
    if ask("Again: ")? != password {
        return Err(BadConfig("the passwords differ; try again".to_owned()).into());
    }
    Ok(password)
}

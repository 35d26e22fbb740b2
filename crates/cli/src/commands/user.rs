//! `gatewright user`.

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
    auth,
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
        UserCommand::SignOut { name, store } => sign_out(name, store).await,
    }
}

async fn enrol(name: &str, path: &Path, minutes: u64) -> anyhow::Result<ExitCode> {
    let server = auth::operated(path, |auth| match (auth.mode, auth.token_storage.kind) {
        (Mode::Orchestrated, StorageKind::Memory) => Some(
            "the running server keeps links in its memory (`auth.tokenStorage.type: memory`), which this command cannot reach; use `redis` or `sqlite`",
        ),
        (Mode::Orchestrated, _) => None,
        _ => Some("users sign in elsewhere (`auth.mode`): there is nobody to enrol"),
    })
    .await?;
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

async fn sign_out(name: &str, store: &StoreArgs) -> anyhow::Result<ExitCode> {
    let server = auth::shared(store).await?;
    let subject = auth::subject(name);
    if subject != name && !server.knows_user(name) {
        return Err(BadConfig(format!(
            "there is no `{name}` under `auth.local.users`; for somebody who is not configured write the subject, such as `user:{name}`"
        ))
        .into());
    }
    server.revoke_user(&subject).await.context("nobody was signed out")?;
    match store.json {
        true => println!("{}", json!({"signedOut": subject})),
        false => println!("{subject} is signed out everywhere"),
    }
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

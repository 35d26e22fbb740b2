//! `gatewright key`: signing keys.

use std::{fs::OpenOptions, io::Write as _, path::Path, process::ExitCode};

use anyhow::Context as _;
use gatewright_auth::{
    AuthorizationServer,
    config::{Mode, StorageKind},
    keys::{Algorithm, Jwk, KeyInfo, RingError},
};

use crate::{
    args::{KeyAlgorithm, KeyArgs, KeyCommand},
    exit::BadConfig,
    output::{self, outln},
    wire::auth_store::{self, Access},
};

/// Generates, lists, rotates or retires keys.
pub async fn run(args: KeyArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        KeyCommand::Generate { algorithm, out } => generate(algorithm, out.as_deref())?,
        KeyCommand::List { config, json } => {
            let server = open(&config, Access::Read).await?;
            let keys = server.keys().snapshot().await.keys().to_vec();
            match json {
                true => output::pretty_json(&serde_json::to_value(keys)?)?,
                false => show(&keys)?,
            }
        }
        KeyCommand::Retire { kid, config, json } => retire(&config, &kid, json).await?,
        KeyCommand::Rotate { config } => {
            let server = open(&config, Access::Change).await?;
            server.rotate_keys().await.map_err(|error| match error {
                RingError::Pinned => BadConfig(
                    "the signing key comes from the configuration (`auth.local.signKey` or JWT_SIGNING_KEY), so rotate it there: generate one with \
                     `gatewright key generate`, configure {\"keys\": [new, old]}, restart the servers one after the other, and remove the \
                     old one once its last tokens have expired"
                        .to_owned(),
                )
                .into(),
                other => anyhow::Error::new(other).context("the key was not rotated"),
            })?;
            show(server.keys().snapshot().await.keys())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn generate(algorithm: KeyAlgorithm, out: Option<&Path>) -> anyhow::Result<()> {
    let algorithm = match algorithm {
        KeyAlgorithm::RS256 => Algorithm::RS256,
        KeyAlgorithm::ES256 => Algorithm::ES256,
        KeyAlgorithm::EdDSA => Algorithm::EdDSA,
    };
    let key = Jwk::generate(algorithm)?;
    let text = serde_json::to_string(&key)?;
    let Some(path) = out else {
        outln!("{text}")?;
        return Ok(());
    };
    let mut file = private_file(path).with_context(|| {
        format!("{} cannot be created; an existing file is never replaced", path.display())
    })?;
    writeln!(file, "{text}").with_context(|| format!("{} cannot be written", path.display()))?;
    outln!("{}", key.kid.unwrap_or_default())?;
    Ok(())
}

fn private_file(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The authorization server of a configuration, without its endpoints.
async fn open(path: &Path, access: Access) -> anyhow::Result<AuthorizationServer> {
    auth_store::open(path, access, |auth| match (auth.mode, auth.token_storage.kind) {
        (Mode::Public, _) => Some("authentication is off (`auth.mode: public`): there are no keys"),
        (Mode::Transparent, _) => Some("tokens and keys belong to the identity provider (`auth.mode: transparent`)"),
        (Mode::Orchestrated, StorageKind::Memory) if auth.local.sign_key.is_none() => Some(
            "the running server keeps its keys in memory (`auth.tokenStorage.type: memory`), which this command cannot reach; use `redis` or `sqlite`",
        ),
        (Mode::Orchestrated, _) => None,
    })
    .await
}

/// Retires a key.
async fn retire(path: &Path, kid: &str, json: bool) -> anyhow::Result<()> {
    let server = open(path, Access::Change).await?;
    server.retire_key(kid).await.map_err(|error| match error {
        RingError::Pinned => BadConfig(format!(
            "the key `{kid}` comes from the configuration (`auth.local.signKey` or JWT_SIGNING_KEY): remove it there and restart the servers"
        ))
        .into(),
        RingError::Unknown => {
            BadConfig(format!("there is no key `{kid}`; `gatewright key list` prints all keys")).into()
        }
        other => anyhow::Error::new(other).context("the key was not retired"),
    })?;
    let keys = server.keys().snapshot().await.keys().to_vec();
    match json {
        true => output::pretty_json(&serde_json::json!({"retired": kid, "keys": keys}))?,
        false => show(&keys)?,
    }
    Ok(())
}

fn show(keys: &[KeyInfo]) -> anyhow::Result<()> {
    outln!("{:<46} {:<6} {:<8} SINCE (UNIX TIME)", "KEY", "ALG", "STATE")?;
    let signing = keys.iter().position(|key| key.signing);
    for (at, key) in keys.iter().enumerate() {
        let state = match signing {
            Some(signing) if at > signing => "next",
            _ if key.signing => "signs",
            _ => "retired",
        };
        outln!("{:<46} {:<6} {state:<8} {}", key.kid, key.alg, key.active_from_ms / 1000)?;
    }
    Ok(())
}

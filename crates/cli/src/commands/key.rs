//! `gatewright key`.

use std::{fs::OpenOptions, io::Write as _, net::SocketAddr, path::Path, process::ExitCode};

use anyhow::Context as _;
use gatewright_auth::{
    AuthorizationServer,
    config::{Mode, StorageKind},
    keys::{Algorithm, Jwk, KeyInfo, RingError},
};

use crate::{
    args::{ConfigArgs, KeyAlgorithm, KeyArgs, KeyCommand},
    auth,
    config::Config,
    exit::BadConfig,
};

/// Makes, lists or exchanges keys.
pub async fn run(args: KeyArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        KeyCommand::Generate { algorithm, out } => generate(algorithm, out.as_deref())?,
        KeyCommand::List { config, json } => {
            let server = open(&config).await?;
            let keys = server.keys().snapshot().await.keys().to_vec();
            match json {
                true => println!("{:#}", serde_json::to_value(keys)?),
                false => show(&keys),
            }
        }
        KeyCommand::Rotate { config } => {
            let server = open(&config).await?;
            server.rotate_keys().await.map_err(|error| match error {
                RingError::Pinned => BadConfig(
                    "the signing key comes from the configuration (`auth.local.signKey` or JWT_SIGNING_KEY): exchange it there. Make one with \
                     `gatewright key generate`, configure {\"keys\": [new, old]}, restart the servers one after the other, and take the \
                     old one out once its last tokens are expired"
                        .to_owned(),
                )
                .into(),
                other => anyhow::Error::new(other).context("the key was not exchanged"),
            })?;
            show(server.keys().snapshot().await.keys());
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
        println!("{text}");
        return Ok(());
    };
    let mut file = private_file(path)
        .with_context(|| format!("{} cannot be made; an existing file is never replaced", path.display()))?;
    writeln!(file, "{text}").with_context(|| format!("{} cannot be written", path.display()))?;
    println!("{}", key.kid.unwrap_or_default());
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
async fn open(path: &Path) -> anyhow::Result<AuthorizationServer> {
    let config = Config::of(&ConfigArgs { config: Some(path.to_owned()), mcp_config: None })?;
    let nothing = match (config.auth.mode, config.auth.token_storage.kind) {
        (Mode::Public, _) => "authentication is off (`auth.mode`): there are no keys",
        (Mode::Transparent, _) => "tokens are the provider's (`auth.mode: transparent`): so are the keys",
        (Mode::Orchestrated, StorageKind::Memory) if config.auth.local.sign_key.is_none() => {
            "the keys are in the memory of the running server (`auth.tokenStorage.type: memory`) and end with it; use `redis` or `sqlite`"
        }
        (Mode::Orchestrated, _) => {
            let address = SocketAddr::new(config.http.host, config.http.port);
            // The running server holds its audit file; what is done here is told in this command's log.
            let mut config = config;
            config.auth.audit_file = None;
            return auth::server(&config, address, None).await;
        }
    };
    Err(BadConfig(nothing.to_owned()).into())
}

fn show(keys: &[KeyInfo]) {
    println!("{:<46} {:<6} {:<8} SINCE (UNIX TIME)", "KEY", "ALG", "STATE");
    let signing = keys.iter().position(|key| key.signing);
    for (at, key) in keys.iter().enumerate() {
        let state = match signing {
            Some(signing) if at > signing => "next",
            _ if key.signing => "signs",
            _ => "retired",
        };
        println!("{:<46} {:<6} {state:<8} {}", key.kid, key.alg, key.active_from_ms / 1000);
    }
}

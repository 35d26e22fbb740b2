//! `gatewright api-key`: static keys of machines that cannot do OAuth.

use std::{
    process::ExitCode,
    time::{Duration, UNIX_EPOCH},
};

use anyhow::Context as _;
use gatewright_auth::{ApiKeyError, Clock as _, NewApiKey, RevokedApiKey, SystemClock, SystemEntropy};
use gatewright_core::MAIN_ENDPOINT;
use gatewright_findings::nearest;
use secrecy::ExposeSecret as _;
use serde_json::json;

use crate::{
    args::{ApiKeyArgs, ApiKeyCommand, ConfigArgs, KeyGrantArgs, StoreArgs},
    config::Config,
    exit::BadConfig,
    output::{self, errln, outln},
    wire::auth_store::{self, Access},
};

/// Makes, lists or revokes keys.
pub async fn run(args: &ApiKeyArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        ApiKeyCommand::Generate { name, grant, json } => generate(name, grant, *json)?,
        ApiKeyCommand::Create { name, grant, store } => create(name, grant, store).await?,
        ApiKeyCommand::List { most, store } => list(*most as usize, store).await?,
        ApiKeyCommand::Revoke { name, store } => revoke(name, store).await?,
    }
    Ok(ExitCode::SUCCESS)
}

impl KeyGrantArgs {
    fn life(&self) -> Option<Duration> {
        (!self.no_expiry).then(|| Duration::from_secs(self.days * 86_400))
    }
}

/// A time in seconds since the epoch, for people.
fn time(seconds: Option<u64>) -> String {
    let text =
        |seconds| humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string();
    seconds.map_or_else(|| "never".to_owned(), text)
}

fn generate(name: &str, grant: &KeyGrantArgs, json: bool) -> anyhow::Result<()> {
    let end = grant.life().map(|life| SystemClock.now_s() + life.as_secs());
    let made =
        NewApiKey::generate(name, end, &SystemEntropy).map_err(|error| BadConfig(error.to_string()))?;
    let mut fields = json!({"name": name, "hash": made.hash.to_string(), "scopes": grant.scopes});
    if !grant.endpoints.is_empty() {
        fields["endpoints"] = json!(grant.endpoints);
    }
    if end.is_some() {
        fields["expires"] = json!(time(end));
    }
    let key = made.key.expose_secret();
    if json {
        return output::pretty_json(&json!({"key": key, "entry": fields}));
    }
    outln!("{key}")?;
    errln!("the key is shown only now; add to `auth.apiKeys` of the configuration:");
    // JSON is YAML, too.
    errln!("  - {fields}");
    Ok(())
}

async fn create(name: &str, grant: &KeyGrantArgs, store: &StoreArgs) -> anyhow::Result<()> {
    let config = Config::of(&ConfigArgs { config: Some(store.config.clone()), mcp_config: None })?;
    let known = || config.endpoints.keys().map(String::as_str).chain([MAIN_ENDPOINT]);
    if let Some(name) = grant.endpoints.iter().find(|name| !known().any(|known| known == name.as_str())) {
        let meant =
            nearest(name, known()).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(BadConfig(format!("there is no endpoint `{name}`{meant}")).into());
    }
    let server = auth_store::open_shared(store, Access::Change).await?;
    let made = match server.create_api_key(name, &grant.scopes, &grant.endpoints, grant.life()).await {
        Ok(made) => made,
        Err(ApiKeyError::Store(error)) => {
            return Err(anyhow::Error::new(error).context("the key was not made"));
        }
        Err(problem) => return Err(BadConfig(explain(&problem)).into()),
    };
    let key = made.key.expose_secret();
    if store.json {
        return output::pretty_json(
            &json!({"key": key, "name": name, "scopes": grant.scopes, "endpoints": grant.endpoints, "expiresS": made.expires_s}),
        );
    }
    outln!("{key}")?;
    errln!(
        "the key `{name}` is shown only now, and expires: {}. Send it as `Authorization: Bearer gwk_…`; `gatewright api-key revoke {name}` ends it",
        time(made.expires_s)
    );
    Ok(())
}

/// The problem, with the scope that may have been meant.
fn explain(problem: &ApiKeyError) -> String {
    let ApiKeyError::Scope { scope, known } = problem else { return problem.to_string() };
    match nearest(scope, known.iter().map(String::as_str).filter(|known| *known != scope.as_str())) {
        Some(near) => format!("{problem}; did you mean `{near}`?"),
        None => problem.to_string(),
    }
}

async fn list(most: usize, store: &StoreArgs) -> anyhow::Result<()> {
    let server = auth_store::open_shared(store, Access::Read).await?;
    let keys = server.api_keys(most).await.context("the keys cannot be listed")?;
    if store.json {
        return output::pretty_json(&serde_json::to_value(&keys)?);
    }
    outln!("{:<32} {:<10} {:<20} {:<28} SCOPES", "NAME", "ORIGIN", "CREATED", "EXPIRES")?;
    for key in keys {
        let created = key.created_s.map_or_else(String::new, |at| time(Some(at)));
        let expires = format!("{}{}", time(key.expires_s), if key.expired { " (over)" } else { "" });
        let at = match key.endpoints.is_empty() {
            true => String::new(),
            false => format!("  at {}", key.endpoints.join(", ")),
        };
        let scopes = key.scopes.join(" ");
        outln!("{:<32} {:<10} {created:<20} {expires:<28} {scopes}{at}", key.name, key.origin)?;
    }
    Ok(())
}

async fn revoke(name: &str, store: &StoreArgs) -> anyhow::Result<()> {
    let server = auth_store::open_shared(store, Access::Change).await?;
    let problem = match server.revoke_api_key(name).await.context("the key was not revoked")? {
        RevokedApiKey::Revoked => {
            match store.json {
                true => output::json(&json!({"revoked": name}))?,
                false => outln!("the key {name} is revoked at every server")?,
            }
            return Ok(());
        }
        RevokedApiKey::Configured => {
            format!(
                "`{name}` is in `auth.apiKeys`: remove it there; running servers follow without a restart"
            )
        }
        RevokedApiKey::Unknown => {
            format!("there is no key `{name}`; `gatewright api-key list` prints all keys")
        }
    };
    Err(BadConfig(problem).into())
}

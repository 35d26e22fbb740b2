//! `gatewright test probe`: tries a stranger's server, with `gatewright_testing::probe`.

use std::{process::ExitCode, time::Duration};

use gatewright_testing::{
    TokenFactory, TokenFactoryOptions,
    probe::{self, ProbeOptions},
};

use super::fuzz;
use crate::{
    args::ProbeArgs,
    exit::{self, BadConfig},
    output,
    signals::stop_signal,
};

/// Tries the server until done, or until stopped.
pub async fn run(args: ProbeArgs) -> anyhow::Result<ExitCode> {
    let stop = stop_signal()?;
    tokio::select! {
        code = probe(&args) => code,
        // Dropping the run stops its server.
        () = stop.cancelled() => Ok(ExitCode::from(exit::FAILED)),
    }
}

async fn probe(args: &ProbeArgs) -> anyhow::Result<ExitCode> {
    let target = fuzz::target(&args.target).await?;
    let mut options = ProbeOptions::default();
    options.fuzz = fuzz::options(&args.target);
    options.deadline = args.deadline.map(Duration::from_secs);
    options.issuer = issuer(args)?;
    let report = probe::probe(&target, &options).await;
    match args.target.json {
        true => output::json(&serde_json::to_value(&report)?)?,
        false => output::raw(probe::readable(&report).as_bytes())?,
    }
    if let Some(fuzz) = &report.fuzz {
        fuzz::write_suite(&args.target, &fuzz.suite)?;
    }
    if !report.is_reached() {
        return Ok(ExitCode::from(exit::FAILED));
    }
    Ok(fuzz::code(&args.target, |least| report.has(least)))
}

/// The issuer of tokens that the server accepts, if one is named.
fn issuer(args: &ProbeArgs) -> anyhow::Result<Option<TokenFactory>> {
    let (Some(issuer), Some(key)) = (&args.issuer, &args.key) else { return Ok(None) };
    if !key.is_file() {
        return Err(BadConfig(format!("--key: there is no file {}", key.display())).into());
    }
    let factory = TokenFactory::new(TokenFactoryOptions {
        issuer: issuer.clone(),
        audience: args.audience.clone().or_else(|| args.target.url.clone()).unwrap_or_default(),
        ..TokenFactoryOptions::default()
    });
    Ok(Some(factory.key_file(key).map_err(|error| BadConfig(error.to_string()))?))
}

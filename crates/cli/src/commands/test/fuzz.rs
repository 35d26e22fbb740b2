//! `gatewright test fuzz`: calls the tools of a server with inputs from their schemas, with `gatewright_testing::fuzz`.

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use anyhow::Context as _;
use gatewright_testing::{
    fuzz::{self, FuzzOptions, Severity, Target},
    suite::{RunOptions, Suite},
};

use crate::{
    args::{CalledServerArgs, FailOn, FuzzArgs},
    environment::environment,
    exit::{self, BadConfig},
    output,
    signals::stop_signal,
};

/// Calls tools until the time is up, or until stopped.
pub async fn run(args: FuzzArgs) -> anyhow::Result<ExitCode> {
    let stop = stop_signal()?;
    tokio::select! {
        code = fuzz(&args) => code,
        // Dropping the run stops its server.
        () = stop.cancelled() => Ok(ExitCode::from(exit::FAILED)),
    }
}

async fn fuzz(args: &FuzzArgs) -> anyhow::Result<ExitCode> {
    let target = match &args.suite {
        Some(file) => {
            let suite = Suite::from_file(file).map_err(|error| BadConfig(error.to_string()))?;
            let options = RunOptions {
                environment: environment().into_iter().collect::<BTreeMap<_, _>>(),
                programs: std::env::current_exe()
                    .map(|own| ("gatewright".to_owned(), own))
                    .into_iter()
                    .collect(),
                ..RunOptions::default()
            };
            Target::suite(&suite, &options).await.map_err(anyhow::Error::msg)?
        }
        None => target(&args.target).await?,
    };
    let report = fuzz::fuzz(&target, &options(&args.target)).await;
    target.stop().await;
    let report = report.context("the server could not be reached")?;
    match args.target.json {
        true => output::json(&serde_json::to_value(&report)?)?,
        false => output::raw(fuzz::readable(&report).as_bytes())?,
    }
    write_suite(&args.target, &report.suite)?;
    Ok(code(&args.target, |least| report.has(least)))
}

/// The server that the command line names.
pub(super) async fn target(args: &CalledServerArgs) -> anyhow::Result<Target> {
    match (&args.url, args.command.split_first()) {
        (Some(url), _) => {
            if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
                return Err(BadConfig(format!("--url: `{url}` is no http or https URL")).into());
            }
            Ok(Target::url(url).token(args.token.clone()))
        }
        (None, Some((command, arguments))) => {
            let startup = Duration::from_secs(args.startup_seconds);
            Ok(Target::command(command, arguments, startup).await?)
        }
        (None, None) => Err(BadConfig(
            "name a server: --url URL, or a command after `--`, such as `-- npx some-server`".to_owned(),
        )
        .into()),
    }
}

pub(super) fn options(args: &CalledServerArgs) -> FuzzOptions {
    let mut options = FuzzOptions::default();
    options.seed = args.seed;
    options.time = Duration::from_secs(args.seconds);
    options.call_timeout = Duration::from_millis(args.call_timeout_ms);
    options.max_calls = args.calls.and_then(|calls| usize::try_from(calls).ok());
    options.tools.clone_from(&args.tool);
    options.destructive = args.destructive;
    options
}

/// Writes the suite that repeats findings, if it was asked for.
pub(super) fn write_suite(args: &CalledServerArgs, suite: &str) -> anyhow::Result<()> {
    match &args.output {
        Some(file) if !suite.is_empty() => {
            std::fs::write(file, suite).with_context(|| format!("{} cannot be written", file.display()))
        }
        _ => Ok(()),
    }
}

/// The exit code, by the lightest finding that fails the command.
pub(super) fn code(args: &CalledServerArgs, has: impl Fn(Severity) -> bool) -> ExitCode {
    let fails = match args.fail_on {
        FailOn::Note => has(Severity::Note),
        FailOn::Warning => has(Severity::Warning),
        FailOn::Error => has(Severity::Error),
        FailOn::Never => false,
    };
    if fails { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS }
}

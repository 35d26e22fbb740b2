//! `gatewright executions replay`.

use std::process::ExitCode;

use anyhow::Context as _;
use gatewright_codecall::Verdict;
use serde_json::json;

use super::recorded;
use crate::{
    args::StoreArgs,
    exit,
    output::{self, outln},
};

/// Replays the execution `id` and reports the first difference, if there is one.
pub async fn run(id: &str, store: &StoreArgs) -> anyhow::Result<ExitCode> {
    let (run, workers) = recorded(id, &store.config).await?;
    let replayed = run.replay(&workers).await.context("no worker for scripts can be started")?;
    let calls = replayed.calls;
    let (outcome, told, code) = match &replayed.verdict {
        Verdict::Identical => {
            let told = format!("identical: {calls} calls, result and console");
            ("identical", told, ExitCode::SUCCESS)
        }
        Verdict::IdenticalCalls(why) => {
            let told = format!("identical to the end of the journal: {calls} calls; {why}");
            ("identicalCalls", told, ExitCode::SUCCESS)
        }
        Verdict::Differs(what) => ("differs", what.clone(), ExitCode::from(exit::FAILED)),
        _ => ("unknown", "the replay has an unknown outcome".to_owned(), ExitCode::from(exit::FAILED)),
    };
    if store.json {
        output::pretty_json(&json!({"outcome": outcome, "calls": calls, "message": told}))?;
    } else {
        outln!("{told}")?;
    }
    Ok(code)
}

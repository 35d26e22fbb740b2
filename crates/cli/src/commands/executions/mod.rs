//! `gatewright executions`: scripts that running servers keep in their store, with their journals.
//!
//! `replay` compares a run with its journal, `export` makes `suite`s and saved `plan`s of runs.

mod export;
mod plan;
mod replay;
mod suite;

use std::{path::Path, process::ExitCode};

use anyhow::Context as _;
use gatewright_codecall::{RecordedRun, WorkerConfig};
use gatewright_core::codes;
use gatewright_executions::{Ending, Execution, ExecutionError, Executions, Head, Listed, Reader, State};
use serde_json::{Value, json};

use crate::{
    args::{ConfigArgs, ExecutionState, ExecutionsArgs, ExecutionsCommand, StoreArgs},
    config::Config,
    exit::BadConfig,
    output::{self, outln},
    wire::guard,
};

/// Refused calls that are shown.
const MOST_REFUSED: usize = 20;

/// Lists executions, or shows, ends, replays or exports one.
pub async fn run(args: &ExecutionsArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        ExecutionsCommand::List { state, most, store } => list(*state, *most as usize, store).await?,
        ExecutionsCommand::Show { id, store } => show(id, store).await?,
        ExecutionsCommand::Cancel { id, store } => cancel(id, store).await?,
        ExecutionsCommand::Replay { id, store } => return replay::run(id, store).await,
        ExecutionsCommand::Export(args) => export::run(args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

fn config(file: &Path) -> anyhow::Result<Config> {
    Config::of(&ConfigArgs { config: Some(file.to_owned()), mcp_config: None })
}

/// Opens the executions that running servers share.
async fn open(config: &Config) -> anyhow::Result<Executions> {
    let stored = config.guard(None).stored_executions().await.map_err(guard::explain)?;
    stored.ok_or_else(|| {
        let problem = "the running server keeps executions in its memory, which this command cannot reach; set `auth.tokenStorage.type` to `redis` or \
                       `sqlite`, and `auth.encryptionKey`";
        BadConfig(problem.to_owned()).into()
    })
}

async fn list(state: Option<ExecutionState>, most: usize, store: &StoreArgs) -> anyhow::Result<()> {
    let state = state.map(|state| match state {
        ExecutionState::Running => State::Running,
        ExecutionState::Waiting => State::Waiting,
        ExecutionState::Ended => State::Ended,
    });
    let executions = open(&config(&store.config)?).await?;
    let mut listed =
        executions.list(Reader::Operator, state, most).await.context("the executions cannot be listed")?;
    // Those that wait for somebody come first.
    listed.sort_by_key(|one| one.head.state != State::Waiting);
    if store.json {
        let all: Vec<Value> = listed.iter().map(described).collect::<anyhow::Result<_>>()?;
        return output::pretty_json(&all);
    }
    outln!("{:<26} {:<8} {:<12} {:<24} {:>6} ABOUT", "ID", "STATE", "UNIX TIME", "USER", "CALLS")?;
    for one in &listed {
        let (head, calls) = (&one.head, one.head.calls.made);
        let (id, state, subject) = (head.id.to_string(), state_of(one), &head.owner.subject);
        outln!(
            "{id:<26} {state:<8} {:<12} {subject:<24} {calls:>6} {}",
            head.created_ms / 1000,
            about(head)
        )?;
    }
    Ok(())
}

async fn show(id: &str, store: &StoreArgs) -> anyhow::Result<()> {
    let execution = find(id, &config(&store.config)?).await?;
    let (head, chunks) = (&execution.head, execution.chunks.len());
    if store.json {
        let mut described = serde_json::to_value(head)?;
        described["entries"] = json!(chunks);
        described["refused"] = refused(&execution)
            .await
            .into_iter()
            .map(|(tool, message)| json!({"tool": tool, "message": message}))
            .collect();
        return output::pretty_json(&described);
    }
    let owner = &head.owner;
    let client = owner.client_id.as_deref().map(|client| format!(" with {client}")).unwrap_or_default();
    outln!("id        {}", head.id)?;
    outln!("state     {}{}", name(head.state), if head.about.detached { ", in the background" } else { "" })?;
    outln!("user      {}{client}", owner.subject)?;
    outln!("about     {}", about(head))?;
    let seconds = |ms: u64| ms / 1000;
    outln!(
        "started   {}, changed {}, forgotten {} (Unix time)",
        seconds(head.created_ms),
        seconds(head.updated_ms),
        seconds(head.expires_ms)
    )?;
    outln!("calls     {}, of which {} failed", head.calls.made, head.calls.failed)?;
    outln!("journal   {chunks} entries, {} bytes, taken up {} times", head.bytes, head.resumed)?;
    for waiting in &head.waiting_for {
        let tool = waiting.tool.as_deref().map(|tool| format!(" of {tool}")).unwrap_or_default();
        outln!("waits for {}{tool}: {}", waiting.kind.name(), waiting.text)?;
    }
    for (tool, message) in refused(&execution).await {
        outln!("refused   {tool}: {message}")?;
    }
    Ok(())
}

/// The calls that policies or scopes refused, each with a message that names the policy; none if the journal cannot be read.
async fn refused(execution: &Execution) -> Vec<(String, String)> {
    let Ok(run) = RecordedRun::read(execution).await else { return Vec::new() };
    let codes = [codes::ACCESS_DENIED, codes::APPROVAL_REQUIRED, codes::APPROVAL_DENIED];
    let refused = run.calls().into_iter().filter_map(|call| {
        let failure = call.answer?.err().filter(|failure| codes.contains(&&*failure.code))?;
        Some((call.name.to_owned(), failure.message.to_string()))
    });
    refused.take(MOST_REFUSED).collect()
}

async fn cancel(id: &str, store: &StoreArgs) -> anyhow::Result<()> {
    match open(&config(&store.config)?).await?.cancel(id, Reader::Operator, &Ending::cancelled()).await {
        Err(error @ (ExecutionError::NotFound | ExecutionError::Ended)) => {
            return Err(BadConfig(error.to_string()).into());
        }
        ended => ended.context("the execution cannot be ended")?,
    }
    match store.json {
        true => output::pretty_json(&json!({"id": id, "state": "ended"})),
        false => outln!("{id} has ended"),
    }
}

async fn find(id: &str, config: &Config) -> anyhow::Result<Execution> {
    match open(config).await?.open(id, Reader::Operator).await {
        Err(error @ ExecutionError::NotFound) => Err(BadConfig(error.to_string()).into()),
        found => found.context("the execution cannot be read"),
    }
}

/// The run of the execution `id`, and the workers that can replay it.
async fn recorded(id: &str, file: &Path) -> anyhow::Result<(RecordedRun, WorkerConfig)> {
    let config = config(file)?;
    let execution = find(id, &config).await?;
    let run = RecordedRun::read(&execution).await.map_err(|why| BadConfig(why.to_string()))?;
    Ok((run, config.codecall.worker))
}

/// An execution as JSON.
fn described(one: &Listed) -> anyhow::Result<Value> {
    let mut described = serde_json::to_value(&one.head)?;
    described["held"] = json!(one.held);
    Ok(described)
}

fn name(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Waiting => "waiting",
        State::Ended => "ended",
    }
}

/// The state, where a running execution without an instance has stopped.
fn state_of(one: &Listed) -> &'static str {
    match one.head.state {
        State::Running if !one.held => "stopped",
        state => name(state),
    }
}

/// Outcome or first question, and title.
fn about(head: &Head) -> String {
    let ending = head.ending.iter().map(|ending| match &ending.code {
        Some(code) => format!("{} ({code})", ending.status),
        None => ending.status.clone(),
    });
    let question = head.waiting_for.first().map(|waiting| waiting.text.clone());
    let name = head.about.plan.clone().or_else(|| head.about.title.clone());
    ending.chain(question).chain(name).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

//! `gatewright tools`: tools of a configuration, of a running server, or of the demo.

use std::{io::Read as _, path::Path, process::ExitCode, time::Duration};

use anyhow::{Context as _, bail};
use gatewright::{Principal, Running};
use gatewright_core::Caller;
use gatewright_embedding::Blended;
use gatewright_search::{Explanation, Query};
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::{Value, json};

use crate::{
    args::{ConfigArgs, TargetArgs, ToolsArgs, ToolsCommand},
    commands::demo,
    config::Config,
    exit::{self, BadConfig},
    login,
    output::{self, errln, outln},
    rpc::Rpc,
    wire::gateway,
};

/// Longest wait for upstream apps before a command continues without them.
const SETTLE: Duration = Duration::from_secs(30);

/// Runs one command, and stops the apps that it started.
pub async fn run(args: ToolsArgs) -> anyhow::Result<ExitCode> {
    let running = local(&args.target).await?;
    let rpc = match (&running, &args.target.url) {
        (Some(running), _) => Rpc::local(running.gateway()).await?,
        (None, Some(url)) => {
            let token = match &args.token {
                Some(token) => Some(token.clone()),
                None => login::access_token(url).await?,
            };
            Rpc::remote(url, token.as_deref(), &args.headers).await?
        }
        (None, None) => bail!("no target"),
    };
    let code = command(&args, running.as_ref(), &rpc).await;
    rpc.close().await;
    if let Some(running) = running {
        running.stop().await;
    }
    code
}

async fn local(target: &TargetArgs) -> anyhow::Result<Option<Running>> {
    let config = match target {
        TargetArgs { url: Some(_), .. } => return Ok(None),
        TargetArgs { config, mcp_config, .. } => {
            let mut files = ConfigArgs { config: config.clone(), mcp_config: mcp_config.clone() };
            if let Some(here) = files.or_here() {
                errln!(
                    "starting the apps of {} for this command; `--url` uses a running server",
                    here.display()
                );
            }
            if files.config.is_some() || files.mcp_config.is_some() {
                Config::of(&files)?
            } else {
                errln!(
                    "there is no gatewright.yaml in this folder: these are the sample apps of `gatewright demo`"
                );
                demo::config(0)
            }
        }
    };
    let running = gateway::start(&config).await?;
    gateway::settle(&running, SETTLE).await;
    Ok(Some(running))
}

async fn command(args: &ToolsArgs, running: Option<&Running>, rpc: &Rpc) -> anyhow::Result<ExitCode> {
    match &args.command {
        ToolsCommand::List => list(args.json, running, rpc).await,
        ToolsCommand::Search { query, top_k, app, verbose } => {
            let mut input = json!({"query": query, "topK": top_k});
            if !app.is_empty() {
                input["filter"] = json!({"appIds": app});
            }
            let body = meta(rpc, "search", input).await?;
            if !args.json {
                print_hits(&body)?;
                if *verbose {
                    let apps = Some(app.as_slice()).filter(|app| !app.is_empty());
                    explain(running, &Query::new(query).top_k(usize::from(*top_k)).app_ids(apps)).await?;
                }
                return Ok(ExitCode::SUCCESS);
            }
            print_json(&body)
        }
        ToolsCommand::Describe { names } => {
            let body = meta(rpc, "describe", json!({"toolNames": names})).await?;
            print_json(&body)?;
            Ok(if body.get("notFound").is_some() { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS })
        }
        ToolsCommand::Call { name, input } => {
            let input = object(input, "the input")?;
            print_outcome(&meta(rpc, "invoke", json!({"tool": name, "input": input})).await?)
        }
        ToolsCommand::Run { resume: Some(id), .. } => {
            print_outcome(&meta(rpc, "execute", json!({"resume": id})).await?)
        }
        ToolsCommand::Run { script, context, allow, dry_run, offline, detach, resume: None } => {
            let Some(script) = script else { bail!("name a file with a script") };
            let mut input = json!({"script": read_script(script)?});
            if *detach && running.is_some() {
                let why = "--detach needs --url: the apps that this command starts stop with it";
                return Err(BadConfig(why.to_owned()).into());
            }
            if *detach {
                input["detach"] = true.into();
            }
            if let Some(context) = context {
                input["context"] = Value::Object(object(context, "--context")?);
            }
            if !allow.is_empty() {
                input["allowedTools"] = json!(allow);
            }
            if *dry_run {
                input["dryRun"] = if *offline { "offline".into() } else { true.into() };
            }
            print_outcome(&meta(rpc, "execute", input).await?)
        }
    }
}

async fn list(as_json: bool, running: Option<&Running>, rpc: &Rpc) -> anyhow::Result<ExitCode> {
    let tools = match running {
        Some(running) => running
            .gateway()
            .registry()
            .operator_snapshot()
            .tools
            .iter()
            .map(|entry| entry.tool.clone())
            .collect(),
        None => rpc.tools().await?,
    };
    if as_json {
        return print_json(&json!({"tools": tools}));
    }
    let widest = tools.iter().map(|tool| tool.name.len()).max().unwrap_or_default();
    for tool in &tools {
        let description = tool.description.as_deref().unwrap_or_default();
        outln!("{:widest$}  {}", tool.name, first_sentence(description))?;
    }
    if let Some(running) = running {
        for app in &running.gateway().registry().operator_snapshot().apps {
            if let gatewright_core::AppHealth::Down(why) = app.app.health() {
                errln!("app `{}` is down: {}", app.id, why.in_full());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The user who runs the command.
fn local_caller() -> Caller {
    Caller::new(Principal::local())
}

/// Calls a meta-tool under the name that the server lists.
async fn meta(rpc: &Rpc, tool: &str, input: Value) -> anyhow::Result<Value> {
    let Value::Object(input) = input else { bail!("the input of a meta-tool must be an object") };
    let listed = rpc.tools().await?;
    let names = [format!("codecall:{tool}"), format!("codecall_{tool}")];
    let Some(name) = names.iter().find(|name| listed.iter().any(|tool| tool.name == **name)) else {
        bail!("this server has no code mode: it does not list `{}`", names[0]);
    };
    let result = rpc.call(name, input).await?;
    match result.structured_content {
        Some(body) if body.get("status").is_some() || result.is_error != Some(true) => Ok(body),
        _ => bail!("{}", text_of(&result)),
    }
}

fn text_of(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|block| block.as_text().map(|text| text.text.clone()));
    texts.collect::<Vec<_>>().join("\n")
}

fn print_hits(body: &Value) -> anyhow::Result<()> {
    let hits = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let width = hits.iter().filter_map(|hit| hit["name"].as_str()).map(str::len).max().unwrap_or_default();
    for hit in hits {
        let text = |key: &str| hit[key].as_str().unwrap_or_default();
        outln!(
            "{:.3}  {:width$}  {}",
            hit["score"].as_f64().unwrap_or_default(),
            text("name"),
            first_sentence(text("description"))
        )?;
    }
    if let Some(status) = body.get("indexStatus") {
        let why = status["code"].as_str().or(status["state"].as_str()).unwrap_or_default();
        errln!("ranked by words alone, not by meaning: {why}");
    }
    if hits.is_empty() {
        outln!("no tool matches; {} were searched", body["totalIndexed"])?;
    }
    Ok(())
}

/// Prints the words of the query that matched each hit, their fields and their shares of the score. With the strategy `embedding`, also
/// its similarity in meaning and its ranking scores.
async fn explain(running: Option<&Running>, query: &Query<'_>) -> anyhow::Result<()> {
    let Some(code_call) = running.and_then(Running::code_call) else {
        return Err(
            BadConfig("--verbose needs the index itself; use --config instead of --url".to_owned()).into()
        );
    };
    if let Some(hits) = code_call.explain_semantic(query, &local_caller()).await {
        for (hit, words) in hits {
            outln!("\n{} {:.3}", hit.name, hit.score)?;
            if let Some(cosine) = hit.cosine {
                outln!("  {:.3}  in words, {cosine:.3} in meaning (cosine)", hit.words)?;
            }
            if !hit.exact_name {
                let Blended { by_words, by_meaning, by_either, .. } = hit;
                let order = by_words + by_meaning + by_either;
                outln!(
                    "  placed by {order:+.2}: words {by_words:+.2}, meaning {by_meaning:+.2}, the better {by_either:+.2}"
                )?;
            }
            explain_words(&words)?;
            if words.terms.is_empty() && !words.exact_name {
                outln!("  not among the 100 best by words")?;
            }
        }
        return Ok(());
    }
    for explanation in code_call.explain(query, &local_caller()).await {
        outln!("\n{} {:.3}", explanation.hit.name, explanation.hit.score)?;
        if let Some(meaning) = explanation.meaning.filter(|_| !explanation.exact_name) {
            outln!("  {meaning:.3}  near in meaning (cosine)")?;
        }
        explain_words(&explanation)?;
    }
    Ok(())
}

fn explain_words(explanation: &Explanation) -> anyhow::Result<()> {
    if explanation.exact_name {
        outln!("  the query is its name")?;
    }
    for term in &explanation.terms {
        let found = if term.found == term.query {
            String::new()
        } else {
            format!(" as {} ({:?})", term.found, term.relation)
        };
        outln!("  {:.3}  {}{found} in {}", term.share, term.query, term.fields.join(", "))?;
    }
    if !explanation.missing.is_empty() {
        outln!("  not found: {}", explanation.missing.join(", "))?;
    }
    Ok(())
}

/// Prints the body. Exit code 1 unless its status is `ok`.
fn print_outcome(body: &Value) -> anyhow::Result<ExitCode> {
    print_json(body)?;
    let is_well = matches!(body["status"].as_str(), Some("ok" | "running"));
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn print_json(body: &Value) -> anyhow::Result<ExitCode> {
    output::pretty_json(body)?;
    Ok(ExitCode::SUCCESS)
}

fn object(text: &str, what: &str) -> anyhow::Result<JsonObject> {
    serde_json::from_str(text)
        .map_err(|error| BadConfig(format!("{what} must be a JSON object: {error}")).into())
}

fn read_script(path: &Path) -> anyhow::Result<String> {
    if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("standard input cannot be read")?;
        return Ok(text);
    }
    std::fs::read_to_string(path)
        .map_err(|error| BadConfig(format!("{} cannot be read: {error}", path.display())).into())
}

fn first_sentence(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.split_inclusive(". ").next().unwrap_or(line).trim()
}

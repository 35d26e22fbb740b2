//! `gatewright eval context`: what enters a model's context, with and without code mode.

use std::{collections::BTreeSet, process::ExitCode, time::Duration};

use anyhow::{Context as _, bail};
use gatewright::Running;
use gatewright_codecall::Mode;
use rmcp::model::{CallToolResult, JsonObject, Tool};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    ledger::{Ledger, Tokenizer},
    tasks::{self, Call, Task, Turn},
};
use crate::{
    args::{ConfigArgs, EvalContextArgs, EvalDetail},
    commands::demo,
    config::Config,
    exit,
    output::{self, errln, outln},
    rpc::Rpc,
    wire::gateway,
};

/// Longest wait for upstream apps.
const SETTLE: Duration = Duration::from_secs(60);

/// One row of the table.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    task: String,
    direct: Ledger,
    plans: Ledger,
    /// Deviations from the recording, in either way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<String>,
}

/// Replays every task both ways, and prints the table. Exit code 1 if anything failed.
pub async fn run(args: EvalContextArgs) -> anyhow::Result<ExitCode> {
    let tasks = tasks::read(&args.tasks)?;
    let tokenizer = Tokenizer::new()?;
    let mut rows: Vec<Row> = tasks
        .iter()
        .map(|task| Row {
            task: task.name.clone(),
            direct: Ledger::default(),
            plans: Ledger::default(),
            failures: Vec::new(),
        })
        .collect();
    // Each way gets apps of its own, so that neither sees what the other changed.
    for in_code in [false, true] {
        let mut config = match &args.config {
            None => demo::config(0),
            Some(_) => Config::of(&ConfigArgs { config: args.config.clone(), mcp_config: None })?,
        };
        config.codecall.enabled = in_code;
        config.codecall.mode = Mode::CodecallOnly;
        let running = gateway::start(&config).await?;
        gateway::settle(&running, SETTLE).await;
        let replay = Replay::new(&running, &tokenizer, args.detail).await?;
        for (task, row) in tasks.iter().zip(&mut rows) {
            let (ledger, failures) = replay.task(task, in_code).await.with_context(|| task.name.clone())?;
            *if in_code { &mut row.plans } else { &mut row.direct } = ledger;
            row.failures.extend(failures);
        }
        replay.rpc.close().await;
        running.stop().await;
    }
    match args.json {
        true => output::pretty_json(&rows)?,
        false => print_table(&rows)?,
    }
    let failed = rows.iter().any(|row| !row.failures.is_empty());
    let (direct, plans) = totals(&rows);
    let is_over = args.budget.is_some_and(|budget| ratio(direct, plans) > budget);
    if is_over {
        errln!("plans took {:.2} times the tokens of direct calls, more than --budget", ratio(direct, plans));
    }
    Ok(if failed || is_over { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS })
}

/// A client of one gateway.
struct Replay<'a> {
    rpc: Rpc,
    /// Tools that the client lists.
    listed: Vec<Tool>,
    tokenizer: &'a Tokenizer,
    detail: EvalDetail,
}

/// A client that counts.
struct Conversation<'a> {
    replay: &'a Replay<'a>,
    ledger: Ledger,
    failures: Vec<String>,
    described: BTreeSet<String>,
}

impl<'a> Replay<'a> {
    async fn new(running: &Running, tokenizer: &'a Tokenizer, detail: EvalDetail) -> anyhow::Result<Self> {
        let rpc = Rpc::local(running.gateway()).await?;
        let listed = rpc.tools().await?;
        Ok(Self { rpc, listed, tokenizer, detail })
    }

    async fn task(&self, task: &Task, in_code: bool) -> anyhow::Result<(Ledger, Vec<String>)> {
        for call in &task.setup {
            let answer = self.prepare(call, in_code).await?;
            if answer.is_error == Some(true) {
                bail!("the call of `{}` in `setup` failed: {}", call.tool, text_of(&answer));
            }
        }
        let mut conversation = Conversation {
            replay: self,
            ledger: Ledger::default(),
            failures: Vec::new(),
            described: BTreeSet::new(),
        };
        let apps = task.apps();
        let of_task = |tool: &&Tool| {
            let app = tool.name.split_once(':').map_or("", |(app, _)| app);
            in_code || (apps.contains(app) && !task.is_setup(&tool.name))
        };
        let tools: Vec<&Tool> = self.listed.iter().filter(of_task).collect();
        conversation.ledger.list(&tools, self.tokenizer);
        for turn in &task.turns {
            match in_code {
                true => conversation.by_plan(turn).await?,
                false => conversation.directly(turn).await?,
            }
        }
        Ok((conversation.ledger, conversation.failures))
    }

    async fn prepare(&self, call: &Call, in_code: bool) -> anyhow::Result<CallToolResult> {
        match in_code {
            true => {
                let input = object(json!({"tool": call.tool, "input": call.input}));
                self.rpc.call("codecall:invoke", input).await
            }
            false => self.rpc.call(&call.tool, call.input.clone()).await,
        }
    }
}

impl Conversation<'_> {
    async fn directly(&mut self, turn: &Turn) -> anyhow::Result<()> {
        for step in &turn.calls {
            self.ledger.round_trips += 1;
            for call in step.calls() {
                let answer = self.call(&call.tool, call.input.clone()).await?;
                if answer.is_error == Some(true) {
                    self.failures.push(format!("direct: `{}`: {}", call.tool, text_of(&answer)));
                }
            }
        }
        Ok(())
    }

    async fn by_plan(&mut self, turn: &Turn) -> anyhow::Result<()> {
        for query in turn.queries() {
            let body = self.meta("codecall:search", json!({"query": query})).await?;
            let hits = body["tools"].as_array().into_iter().flatten();
            let declared =
                hits.filter(|hit| hit.get("input").is_some()).filter_map(|hit| hit["name"].as_str());
            self.described.extend(declared.map(str::to_owned));
        }
        let unknown: Vec<&str> =
            turn.described().into_iter().filter(|name| !self.described.contains(*name)).collect();
        if !unknown.is_empty() {
            let mut input = json!({"toolNames": unknown});
            if self.replay.detail == EvalDetail::Types {
                input["detail"] = json!("types");
            }
            let body = self.meta("codecall:describe", input).await?;
            if let Some(missing) = body.get("notFound") {
                self.failures.push(format!("plan: no tool {missing}"));
            }
            self.described.extend(unknown.into_iter().map(str::to_owned));
        }
        let body = match turn.only_call() {
            Some(Call { tool, input }) => {
                self.meta("codecall:invoke", json!({"tool": tool, "input": input})).await?
            }
            None => {
                let mut input = json!({"script": turn.script()?});
                if !turn.plan.context.is_empty() {
                    input["context"] = Value::Object(turn.plan.context.clone());
                }
                self.meta("codecall:execute", input).await?
            }
        };
        if body["status"] != "ok" {
            self.failures.push(format!("plan: {}: {}", body["status"], body["error"]["message"]));
        } else if let Some(expected) = &turn.plan.expect
            && body["result"] != *expected
        {
            self.failures.push(format!("plan: returned {} instead of {expected}", body["result"]));
        }
        Ok(())
    }

    /// One round trip to a meta-tool.
    async fn meta(&mut self, tool: &str, input: Value) -> anyhow::Result<Value> {
        self.ledger.round_trips += 1;
        let answer = self.call(tool, object(input)).await?;
        let body = answer
            .structured_content
            .with_context(|| format!("`{tool}` answered without structured content"))?;
        if body["status"] == "error" && tool != "codecall:invoke" {
            self.failures.push(format!("plan: `{tool}`: {}", body["error"]["message"]));
        }
        Ok(body)
    }

    async fn call(&mut self, tool: &str, input: JsonObject) -> anyhow::Result<CallToolResult> {
        let Replay { rpc, tokenizer, .. } = self.replay;
        self.ledger.request(tool, &Value::Object(input.clone()), tokenizer);
        let answer = rpc.call(tool, input).await.with_context(|| format!("the call of `{tool}`"))?;
        self.ledger.answer(&answer, tokenizer);
        Ok(answer)
    }
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::default(),
    }
}

fn text_of(answer: &CallToolResult) -> String {
    let texts = answer.content.iter().filter_map(|block| Some(block.as_text()?.text.as_str()));
    texts.collect::<Vec<_>>().join("\n")
}

fn print_table(rows: &[Row]) -> anyhow::Result<()> {
    let widest = rows.iter().map(|row| row.task.chars().count()).max().unwrap_or(0).max(5);
    outln!("{:widest$}  {:>24}  {:>24}  {:>7}", "", "direct", "plans", "plans /")?;
    outln!(
        "{:widest$}  {:>10} {:>8} {:>4}  {:>10} {:>8} {:>4}  {:>7}",
        "task",
        "bytes",
        "tokens",
        "rt",
        "bytes",
        "tokens",
        "rt",
        "direct"
    )?;
    for row in rows {
        print_row(&row.task, widest, row.direct, row.plans)?;
    }
    if rows.len() > 1 {
        let (direct, plans) = totals(rows);
        print_row("all", widest, direct, plans)?;
    }
    outln!("\nrt: round trips; tokens: o200k_base; the last column compares tokens")?;
    for row in rows {
        for failure in &row.failures {
            outln!("FAILED {}: {failure}", row.task)?;
        }
    }
    Ok(())
}

fn print_row(name: &str, widest: usize, direct: Ledger, plans: Ledger) -> anyhow::Result<()> {
    outln!(
        "{name:widest$}  {:>10} {:>8} {:>4}  {:>10} {:>8} {:>4}  {:>6.2}x",
        direct.bytes,
        direct.tokens,
        direct.round_trips,
        plans.bytes,
        plans.tokens,
        plans.round_trips,
        ratio(direct, plans)
    )
}

/// The sums of all tasks, direct and as plans.
fn totals(rows: &[Row]) -> (Ledger, Ledger) {
    let (mut direct, mut plans) = (Ledger::default(), Ledger::default());
    for row in rows {
        direct.add(row.direct);
        plans.add(row.plans);
    }
    (direct, plans)
}

/// Tokens of plans for each token of direct calls.
#[expect(clippy::cast_precision_loss, reason = "two decimals of a ratio")]
fn ratio(direct: Ledger, plans: Ledger) -> f64 {
    plans.tokens as f64 / direct.tokens.max(1) as f64
}

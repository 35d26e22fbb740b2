//! `/console/script`: runs AgentScript as `codecall:execute` does, and shows the place of an error.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Form,
    extract::{Query, State},
    response::Response,
};
use gatewright_codecall::{CodeCall, RecordedRun};
use gatewright_core::{CallRecord, Ending, Registry, read_json};
use gatewright_executions::Reader;
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::{NavItem, encode, page, result, source, stale, status, token, tool_path, waterfall};
use crate::{ConsoleState, MAX_CALLS, advice, guard, text};

/// Saved plans that are listed.
const MOST_PLANS: usize = 200;

/// A script to begin with; empty fields name none.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Beginning {
    /// Id of a run, which is repeated.
    run: String,
    /// Name of a tool, with the number of its example.
    tool: String,
    example: String,
    /// `<app>:<name>` of a saved plan.
    plan: String,
}

/// A submitted form, and its outcome.
#[derive(Default)]
struct Submission {
    script: Option<String>,
    data: String,
    /// `dryRun`: `yes` or `offline`; empty for none.
    dry_run: String,
    alert: Option<Markup>,
    outcome: Option<(Value, Duration)>,
}

pub(crate) async fn show(
    State(state): State<Arc<ConsoleState>>,
    Query(beginning): Query<Beginning>,
) -> Response {
    let mut sent = Submission::default();
    if let Some(code_call) = &state.code_call {
        match begin(&state, code_call, &beginning).await {
            Ok((script, data)) => (sent.script, sent.data) = (script, data.unwrap_or_default()),
            Err(why) => {
                sent.alert =
                    Some(html! { div.alert role="alert" { strong { "This is the example." } " " (why) } })
            }
        }
    }
    render(&state, StatusCode::OK, &sent)
}

/// The script to begin with, and its context; none for the example.
async fn begin(
    state: &ConsoleState,
    code_call: &CodeCall,
    beginning: &Beginning,
) -> Result<(Option<String>, Option<String>), String> {
    if !beginning.run.is_empty() {
        if !state.shows_contents {
            return Err("Scripts of runs are not shown: `admin.contents` is off.".to_owned());
        }
        let execution = code_call.executions().open(&beginning.run, Reader::Operator).await;
        let execution = execution.map_err(|error| format!("The run cannot be read: {error}."))?;
        let run =
            RecordedRun::read(&execution).await.map_err(|why| format!("The run cannot be read: {why}."))?;
        let context = run.context().and_then(|context| serde_json::to_string_pretty(&context).ok());
        return Ok((Some(run.script().to_owned()), context));
    }
    if !beginning.tool.is_empty() {
        let view = state.operator.view().await;
        let examples =
            view.shows(&beginning.tool).map(|tool| code_call.usage_examples(tool)).unwrap_or_default();
        let example = examples.into_iter().nth(beginning.example.parse().unwrap_or(0));
        return example
            .map(|example| (Some(example.code), None))
            .ok_or_else(|| "There is no such example now.".to_owned());
    }
    if let Some((app, name)) = beginning.plan.split_once(':') {
        let plan = code_call.saved_plan(app, name);
        return plan.map(|text| (Some(text), None)).ok_or_else(|| "There is no such plan now.".to_owned());
    }
    Ok((None, None))
}

pub(crate) async fn run(
    State(state): State<Arc<ConsoleState>>,
    Form(mut typed): Form<HashMap<String, String>>,
) -> Response {
    // Browsers send line ends as CR LF; lines and columns of errors refer to the text as it was typed.
    let text = |text: Option<String>| text.unwrap_or_default().replace("\r\n", "\n");
    let mut sent = Submission {
        script: Some(text(typed.remove("script"))),
        data: text(typed.remove("context")),
        dry_run: text(typed.remove("dry")),
        ..Submission::default()
    };
    if !typed.get(guard::FIELD).is_some_and(|token| state.guard.is_token(token)) {
        sent.alert = Some(stale());
        return render(&state, StatusCode::FORBIDDEN, &sent);
    }
    let data = match sent.data.trim() {
        "" => Ok(None),
        data => read_json(data).map(Some),
    };
    let data = match data {
        Ok(data) => data,
        Err(error) => {
            sent.alert = Some(html! {
                div.alert role="alert" { strong { "Nothing was run." } " The context must be a JSON object: " (error.to_string()) "." }
            });
            return render(&state, StatusCode::UNPROCESSABLE_ENTITY, &sent);
        }
    };
    let started = Instant::now();
    let dry_run = match sent.dry_run.as_str() {
        "yes" => Some(true.into()),
        "offline" => Some("offline".into()),
        _ => None,
    };
    match state.operator.execute(sent.script.as_deref().unwrap_or_default(), data, dry_run).await {
        Ok(body) => sent.outcome = Some((body, started.elapsed())),
        Err(refused) => {
            sent.alert = Some(html! {
                div.alert role="alert" { strong { (text::line(&refused.code, 60)) } " " (text::message(&refused.message)) }
            });
        }
    }
    render(&state, StatusCode::OK, &sent)
}

fn render(state: &ConsoleState, status: StatusCode, sent: &Submission) -> Response {
    let Some(code_call) = &state.code_call else {
        let body = html! { h1 { "Script" } p { "Code mode is off: scripts cannot run. Set " code { "codecall.enabled" } "." } };
        return page(state, StatusCode::NOT_FOUND, NavItem::Script, "Script", body);
    };
    let example = || example(state.operator.gateway().registry());
    let script = sent.script.clone().unwrap_or_else(example);
    let body = html! {
        h1 { "Script" }
        p.soft { "AgentScript, run as " code { "codecall:execute" } " runs it: a function body with " code { "await callTool(name, input)" } " and " code { "return" } "." }
        @if let Some(alert) = &sent.alert { (alert) }
        form.pad method="post" action="/console/script" {
            (token(state))
            div.field {
                label for="script" { "Script" }
                div.editor {
                    textarea.code #script name="script" rows="14" spellcheck="false" autocapitalize="none" autocomplete="off" required aria-describedby="keys" { "\n" (script) }
                }
            }
            details open[!sent.data.is_empty()] {
                summary { "Context" }
                div.field {
                    label for="context" { "JSON object, read as " code { "codecallContext" } }
                    textarea.code #context name="context" rows="4" spellcheck="false" { "\n" (sent.data) }
                }
            }
            div.row {
                button { "Run script" }
                button.quiet name="dry" value="yes" { "Dry run" }
                button.quiet name="dry" value="offline" { "Dry run, offline" }
                span.soft #keys { "Ctrl+Enter runs it. A dry run calls read-only tools only; offline, none." }
            }
        }
        @if let Some((body, took)) = &sent.outcome { (outcome(&script, body, *took)) }
        (plans(code_call))
        (limits(code_call))
    };
    page(state, status, NavItem::Script, "Script", body)
}

fn outcome(script: &str, body: &Value, took: Duration) -> Markup {
    let word = body["status"].as_str().unwrap_or("no status");
    let calls = calls(body);
    let logs: Vec<&str> = body["logs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    html! {
        section.result.failed[word != "ok"] #result aria-labelledby="result-title" tabindex="-1" {
            div.row {
                h2 #result-title { "Outcome" }
                span.facts {
                    (status(word == "ok", word))
                    span { (text::duration(took)) }
                    span.soft { (text::size(body.to_string().len() as u64)) }
                }
            }
            @if let Some(report) = body.get("dryRun") { (rehearsal(report)) }
            @if let Some(error) = body.get("error") { (failure(script, error)) }
            @for warning in body["warnings"].as_array().into_iter().flatten() {
                @if let Some(message) = warning["message"].as_str() { div.alert { strong { "Warning" } " " (text::message(message)) } }
            }
            @if let Some(bytes) = body["truncated"]["bytes"].as_u64() {
                p.soft { "Of " (text::size(bytes)) " this is a part: the result was cut as for a client (codecall.result.maxBytes)." }
            }
            @if let Some(value) = body.get("result") { (result::json(value)) }
            @else if word == "ok" { p.soft { "It returned nothing." } }
            @if !logs.is_empty() { h3 { "Logs" } (result::block(&logs.join("\n"))) }
            @if !calls.is_empty() { h3 { "Calls over time" } (waterfall::waterfall(&calls, 0, took)) }
        }
    }
}

/// The report of a dry run.
fn rehearsal(report: &Value) -> Markup {
    let text = |value: &Value| text::line(value.as_str().unwrap_or_default(), 200);
    let calls = report["calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        p.notice { strong { "Dry run. " } (text(&report["note"])) "." }
        @if !calls.is_empty() {
            h3 { "What it would do" }
            ol.list {
                @for call in calls {
                    li {
                        code.name { (text(&call["name"])) }
                        " " @if call["made"] == true { span.tag { "called" } } @else { span.tag.warn { "not called" } }
                        @if let Some(policy) = call.get("policy") { " " span.tag { "policy: " (text(&policy["decision"])) } " " (text(&policy["reason"])) }
                        @if let Some(source) = call.get("answerFrom") { p.soft { "Answer assumed from " (text(source)) } }
                        @if let Some(arguments) = call.get("arguments") { p { code { (text::line(&arguments.to_string(), 400)) } } }
                    }
                }
            }
            @if let Some(more) = report["more"].as_u64() { p.soft { (more) " more." } }
        }
    }
}

/// The saved plans, each with a link that opens it here.
fn plans(code_call: &CodeCall) -> Markup {
    let plans = code_call.saved_plans();
    html! {
        @if !plans.is_empty() {
            section aria-labelledby="plans" {
                h2 #plans { "Saved plans" }
                ul.list.tools {
                    @for (app, name) in plans.iter().take(MOST_PLANS) {
                        @let name = format!("{app}:{name}");
                        li.row {
                            a.name href=(tool_path(&name)) { (text::line(&name, 100)) }
                            a href=(format!("/console/script?plan={}", encode(&name))) aria-label=(format!("Open {} here", text::line(&name, 100))) { "Open here" }
                        }
                    }
                }
                @if plans.len() > MOST_PLANS { p.soft { (plans.len() - MOST_PLANS) " more are among the tools." } }
                p.soft { "What is run here changes no file: save a plan in the folder that " code { "apps.X.plans" } " names." }
            }
        }
    }
}

fn failure(script: &str, error: &Value) -> Markup {
    let said = |key: &str| error[key].as_str().map(|text| text::line(text, 100));
    let place = |key: &str| error["location"][key].as_u64().and_then(|n| usize::try_from(n).ok());
    let place = place("line").zip(place("column"));
    html! {
        div.alert role="alert" {
            strong { (said("code").unwrap_or_default()) }
            @if let Some(kind) = said("kind").or_else(|| said("name")) { " " span { (kind) } }
            @if let Some(tool) = said("toolName") { " in " code { (tool) } }
            @if let Some((line, column)) = place { " at line " (line) ", column " (column) }
            p { (text::message(error["message"].as_str().unwrap_or_default())) }
        }
        @if let Some(advice) = error["code"].as_str().and_then(advice::on) { p { (text::prose(advice, 400)) } }
        @if let Some((line, column)) = place { (source::excerpt(script, line, column)) }
    }
}

/// The calls of an outcome.
fn calls(body: &Value) -> Vec<CallRecord> {
    let time =
        |value: &Value| Duration::try_from_secs_f64(value.as_f64().unwrap_or(0.0) / 1e3).unwrap_or_default();
    let call = |call: &Value| {
        let word = call["status"].as_str().unwrap_or("error");
        let ending = match word {
            "ok" => Ending::OK,
            word => Ending::new(call["code"].as_str().unwrap_or(word).to_owned()),
        };
        CallRecord {
            tool: call["name"].as_str().unwrap_or_default().into(),
            app: "".into(),
            start: time(&call["startedMs"]),
            duration: time(&call["durationMs"]),
            ending,
            bytes: None,
            span_id: None,
            transport: None,
        }
    };
    body["calls"].as_array().into_iter().flatten().take(MAX_CALLS).map(call).collect()
}

fn limits(code_call: &CodeCall) -> Markup {
    let (limits, vm) = (code_call.limits(), code_call.config().vm);
    let rows = [
        ("Time", text::duration(limits.timeout)),
        ("Loop turns", text::grouped(limits.max_iterations)),
        ("Tool calls", text::grouped(limits.max_tool_calls.into())),
        ("Calls at once", limits.max_pending_calls.to_string()),
        ("Memory", text::size(limits.memory_bytes)),
        ("Script", text::size(limits.script_bytes)),
        ("Result", text::size(limits.result_bytes)),
        ("Console", if vm.console() { "on" } else { "off" }.to_owned()),
    ];
    html! {
        section aria-labelledby="limits" {
            h2 #limits { "Limits" }
            dl.facts { @for (name, value) in rows { div { dt { (name) } dd { (value) } } } }
        }
    }
}

/// A script that runs unchanged: it calls a read-only tool that requires no input, if there is one.
fn example(registry: &Registry) -> String {
    let snapshot = registry.operator_snapshot();
    let tool = snapshot.tools.iter().find(|tool| {
        let reads = tool.tool.annotations.as_ref().is_some_and(|hints| hints.read_only_hint == Some(true));
        let free = tool.input_schema().get("required").and_then(Value::as_array).is_none_or(Vec::is_empty);
        reads && free
    });
    match tool {
        Some(tool) => format!(
            "const result = await callTool({}, {{}});\nconsole.log(\"got\", typeof result);\nreturn result;",
            Value::from(&*tool.name)
        ),
        None => "return 6 * 7;".to_owned(),
    }
}

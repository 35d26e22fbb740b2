//! `/console/script`: runs AgentScript as `codecall:execute` does, and shows the place of an error.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{Form, extract::State, response::Response};
use gatewright_codecall::CodeCall;
use gatewright_core::{CallRecord, Ending, Registry, read_json};
use http::StatusCode;
use maud::{Markup, html};
use serde_json::Value;

use super::{NavItem, page, result, stale, status, token, waterfall};
use crate::{ConsoleState, MAX_CALLS, guard, text};

/// Lines shown before and after the place of an error.
const AROUND: usize = 3;

/// A submitted form, and its outcome.
#[derive(Default)]
struct Submission {
    script: Option<String>,
    data: String,
    alert: Option<Markup>,
    outcome: Option<(Value, Duration)>,
}

pub(crate) async fn show(State(state): State<Arc<ConsoleState>>) -> Response {
    render(&state, StatusCode::OK, &Submission::default())
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
    match state.operator.execute(sent.script.as_deref().unwrap_or_default(), data).await {
        Ok(body) => sent.outcome = Some((body, started.elapsed())),
        Err(refused) => {
            sent.alert = Some(html! {
                div.alert role="alert" { strong { (text::line(&refused.code, 60)) } " " (text::plain(&refused.message)) }
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
                textarea.code #script name="script" rows="12" spellcheck="false" autocapitalize="none" required aria-describedby="keys" { "\n" (script) }
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
                span.soft #keys { "Ctrl+Enter runs it too." }
            }
        }
        @if let Some((body, took)) = &sent.outcome { (outcome(&script, body, *took)) }
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
            @if let Some(error) = body.get("error") { (failure(script, error)) }
            @for warning in body["warnings"].as_array().into_iter().flatten() {
                @if let Some(message) = warning["message"].as_str() { div.alert { strong { "Warning" } " " (text::plain(message)) } }
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
            p { (text::plain(text::cut(error["message"].as_str().unwrap_or_default()).0)) }
        }
        @if let Some((line, column)) = place { (excerpt(script, line, column)) }
    }
}

/// The lines around a place, with a mark under the column.
fn excerpt(script: &str, line: usize, column: usize) -> Markup {
    let first = line.saturating_sub(AROUND).max(1);
    let lines = script.lines().enumerate().map(|(at, text)| (at + 1, text)).skip(first - 1);
    let lines: Vec<(usize, &str)> = lines.take_while(|(at, _)| *at < line + AROUND).collect();
    let mark = " ".repeat(column.saturating_sub(1).min(400));
    html! {
        pre.excerpt tabindex="0" aria-label="The script around the error" {
            @for (at, text) in lines {
                @let shown: String = text.chars().take(400).collect();
                span.line.here[at == line] { span.number aria-hidden="true" { (format!("{at:>4} ")) } (text::plain(&shown)) "\n" }
                @if at == line { span.mark aria-hidden="true" { "     " (mark) "^\n" } }
            }
        }
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

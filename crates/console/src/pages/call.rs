//! `/console/calls/{id}`: one request of a client for a tool: its outcome and advice, its arguments if they are kept, the calls that it made,
//! and ways to its journal and to repeat it.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    extract::{Path, State},
    response::Response,
};
use gatewright_core::{Execution, TraceContext};
use gatewright_executions::{Head, Reader};
use http::StatusCode;
use maud::{Markup, html};
use serde_json::Value;

use super::{NavItem, calls::caller, encode, ending, missing, page, result, run, time, tool_path, waterfall};
use crate::{ConsoleState, Entry, advice, text};

/// Latest journals among which that of a script is looked for.
const LATEST: usize = 200;

pub(crate) async fn show(State(state): State<Arc<ConsoleState>>, Path(id): Path<String>) -> Response {
    let Some(entry) = id.parse().ok().and_then(|id| state.history.get(id)) else {
        return missing(&state, "This call is no longer kept, or there was none with this number.");
    };
    let execution = &entry.execution;
    let runs = runs_of(&state, &entry).await;
    let body = html! {
        p.back { a href="/console/calls" { "Calls" } }
        h1 { code { (text::line(&execution.tool, 100)) } " " (ending(&execution.ending)) }
        dl.facts {
            div { dt { "Started" } dd { (time(execution.started)) } }
            div { dt { "Took" } dd { (text::duration(execution.duration)) } }
            div { dt { "Caller" } dd { (caller(&execution.principal)) } }
            @if let Some(address) = execution.address { div { dt { "Address" } dd { (address) } } }
            @if let Some(bytes) = execution.bytes { div { dt { "Answer" } dd { (text::size(bytes)) } } }
            @if let Some(script) = execution.script { div { dt { "Script" } dd { (text::size(script.bytes as u64)) } } }
            div { dt { "Tool calls" } dd { (execution.calls.len() + execution.more_calls) } }
            @if let Some(trace) = execution.trace.as_ref().map(TraceContext::trace_id) { div { dt { "Trace" } dd { code { (trace) } } } }
        }
        (advised(codes(execution)))
        (journal(execution, &runs))
        (arguments(&state, entry.id, execution))
        section aria-labelledby="over-time" {
            h2 #over-time { "Calls over time" }
            (waterfall::waterfall(&execution.calls, execution.more_calls, execution.duration))
        }
    };
    page(&state, StatusCode::OK, NavItem::Calls, &format!("Call {id}"), body)
}

/// The codes of an execution and its calls, in the order in which they are explained.
fn codes(execution: &Execution) -> Vec<String> {
    let all = std::iter::once(&execution.ending).chain(execution.calls.iter().map(|call| &call.ending));
    let mut seen = BTreeSet::new();
    let failed = all.filter(|ending| !ending.is_ok()).map(|ending| ending.status().to_owned());
    failed.filter(|code| seen.insert(code.clone())).collect()
}

/// Advice about codes, as far as there is any.
pub(crate) fn advised(codes: Vec<String>) -> Markup {
    let advice: Vec<(String, &str)> =
        codes.into_iter().filter_map(|code| advice::on(&code).map(|advice| (code, advice))).collect();
    html! {
        @if !advice.is_empty() {
            section aria-labelledby="advice" {
                h2 #advice { "What to do" }
                dl.list.advice { @for (code, advice) in advice { div { dt { code { (text::line(&code, 60)) } } dd { (text::prose(advice, 400)) } } } }
            }
        }
    }
}

/// The journals of the script that an execution ran.
async fn runs_of(state: &ConsoleState, entry: &Entry) -> Vec<Head> {
    let execution = &entry.execution;
    let (Some(code_call), Some(script)) = (&state.code_call, execution.script) else { return Vec::new() };
    let Ok(listed) = code_call.executions().list(Reader::Operator, None, LATEST).await else {
        return Vec::new();
    };
    // Clients run one script again and again: a journal belongs to one call alone.
    let is_its = |head: &Head| {
        head.about.script == script.sha256
            && run::request(state, head).is_some_and(|request| request.id == entry.id)
    };
    listed.into_iter().map(|one| one.head).filter(is_its).take(5).collect()
}

fn journal(execution: &Execution, runs: &[Head]) -> Markup {
    html! {
        @if execution.script.is_some() {
            section aria-labelledby="journal" {
                h2 #journal { "Script" }
                @if runs.is_empty() { p.soft { "Its journal is no longer kept." } }
                @for head in runs {
                    p { a href=(format!("/console/runs/{}", head.id)) { "Script, calls with their answers, and result" } }
                    p.soft { "Journal " code { (head.id) } }
                    p.buttons { a.button.quiet href=(format!("/console/script?run={}", head.id)) { "Repeat in the pad" } }
                }
            }
        }
    }
}

fn arguments(state: &ConsoleState, id: u64, execution: &Execution) -> Markup {
    let known = state.operator.gateway().registry().operator_snapshot().tool(&execution.tool).is_some();
    let given = execution.arguments.as_ref().filter(|given| !given.is_empty());
    html! {
        @if execution.script.is_none() || given.is_some() {
            section aria-labelledby="arguments" {
                h2 #arguments { "Arguments" }
                @match given {
                    Some(given) => (result::json(&Value::Object(given.clone()))),
                    None if execution.arguments.is_some() => p.soft { "It has none." },
                    None => p.soft { "They are not kept. " code { "audit.includeArguments" } " keeps those of up to 4 KiB." },
                }
                @if known {
                    p { a.button.quiet href=(format!("{}&call={id}", tool_path(&execution.tool))) { "Call the tool again" } }
                }
            }
        }
        @if let Some(name) = execution.arguments.as_ref().and_then(|given| given.get("tool")?.as_str()) {
            p { "Called tool: " a href=(format!("/console/tool?name={}", encode(name))) { code { (text::line(name, 100)) } } }
        }
    }
}

//! `/console/executions`: the latest executions, each with its calls over time, from the memory of `history`. Journals are in `runs`.

use std::sync::Arc;

use axum::{
    extract::{Path, Query, State},
    response::Response,
};
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;

use super::{NavItem, ending, missing, page, time, waterfall};
use crate::{ConsoleState, Entry, OPERATOR, text};

/// Rows on one page.
const ROWS: usize = 50;

#[derive(Debug, Deserialize)]
pub(crate) struct Params {
    before: Option<String>,
}

pub(crate) async fn list(State(state): State<Arc<ConsoleState>>, Query(params): Query<Params>) -> Response {
    let before = params.before.and_then(|before| before.parse().ok());
    let shown = state.history.latest(before, ROWS);
    let older = shown.last().filter(|last| !state.history.latest(Some(last.id), 1).is_empty());
    let body = html! {
        div.row {
            h1 { "Executions" }
            a href="/console/executions" { "Refresh" }
        }
        p.soft {
            (state.history.total()) " since the start; the last " (state.history.capacity()) " are kept. "
            @if before.is_none() { span #news role="status" { "New ones appear here by themselves." } }
        }
        @if before.is_none() { (rows(&shown, ROWS)) } @else { ol.list.runs { @for one in &shown { (row(one)) } } }
        @if let Some(last) = older { p { a.button.quiet href=(format!("/console/executions?before={}", last.id)) { "Older" } } }
    };
    page(&state, StatusCode::OK, NavItem::Executions, "Executions", body)
}

pub(crate) async fn show(State(state): State<Arc<ConsoleState>>, Path(id): Path<String>) -> Response {
    let Some(entry) = id.parse().ok().and_then(|id| state.history.get(id)) else {
        return missing(&state, "This execution is no longer kept, or there was none with this number.");
    };
    let execution = &entry.execution;
    let body = html! {
        p.back { a href="/console/executions" { "Executions" } }
        h1 { code { (text::line(&execution.tool, 100)) } " " (ending(&execution.ending)) }
        dl.facts {
            div { dt { "Started" } dd { (time(execution.started)) } }
            div { dt { "Took" } dd { (text::duration(execution.duration)) } }
            div { dt { "Caller" } dd { (caller(&execution.principal.subject)) } }
            @if let Some(script) = execution.script { div { dt { "Script" } dd { (text::size(script.bytes as u64)) } } }
            div { dt { "Tool calls" } dd { (execution.calls.len() + execution.more_calls) } }
        }
        h2 { "Calls over time" }
        (waterfall::waterfall(&execution.calls, execution.more_calls, execution.duration))
    };
    page(&state, StatusCode::OK, NavItem::Executions, &format!("Execution {id}"), body)
}

/// A list of executions, newest first. While the page is open, live updates keep it at `most` rows.
pub(crate) fn rows(entries: &[Arc<Entry>], most: usize) -> Markup {
    let newest = entries.first().map_or(0, |newest| newest.id);
    html! {
        @if entries.is_empty() { p.soft #none { "Nothing ran yet. Calls by clients and by this console appear here." } }
        ol.list.runs #runs data-most=(most) data-newest=(newest) { @for one in entries { (row(one)) } }
    }
}

/// One row, in the list and in live updates.
pub(crate) fn row(Entry { id, execution }: &Entry) -> Markup {
    let calls = execution.calls.len() + execution.more_calls;
    html! {
        li data-id=(id) {
            a.name href=(format!("/console/executions/{id}")) { (text::line(&execution.tool, 100)) }
            span.facts {
                (ending(&execution.ending))
                span { (text::duration(execution.duration)) }
                span { (text::count(calls, "call")) }
                span.soft { (time(execution.started)) }
                span.soft { (caller(&execution.principal.subject)) }
            }
            (waterfall::bars(&execution.calls, execution.duration))
        }
    }
}

fn caller(subject: &str) -> Markup {
    html! {
        @if subject == OPERATOR { span.tag { "console" } }
        @else { (text::line(subject, 60)) }
    }
}

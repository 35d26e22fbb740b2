//! `/console/executions`: what ran lately, each with its calls over time.

use std::sync::Arc;

use axum::{
    extract::{Path, Query, State},
    response::Response,
};
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;

use super::{Place, missing, overview::time, page, status, waterfall};
use crate::{Execution, OPERATOR, Shared, text};

/// Rows on one page.
const ROWS: usize = 50;

#[derive(Debug, Deserialize)]
pub(crate) struct Asked {
    before: Option<String>,
}

pub(crate) async fn list(State(shared): State<Arc<Shared>>, Query(asked): Query<Asked>) -> Response {
    let before = asked.before.and_then(|before| before.parse().ok());
    let shown = shared.journal.latest(before, ROWS);
    let older = shown.last().filter(|last| !shared.journal.latest(Some(last.id), 1).is_empty());
    let body = html! {
        div.row {
            h1 { "Executions" }
            a href="/console/executions" { "Refresh" }
        }
        p.soft {
            (shared.journal.total()) " since the start; the last " (shared.journal.capacity()) " are kept. "
            @if before.is_none() { span #news role="status" { "New ones appear here by themselves." } }
        }
        @if before.is_none() { (rows(&shown, ROWS)) } @else { ol.runs { @for one in &shown { (row(one)) } } }
        @if let Some(last) = older { p { a href=(format!("/console/executions?before={}", last.id)) { "Older" } } }
    };
    page(&shared, StatusCode::OK, Place::Executions, "Executions", body)
}

pub(crate) async fn show(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    let Some(execution) = id.parse().ok().and_then(|id| shared.journal.get(id)) else {
        return missing(&shared, "This execution is not kept any more, or there was none of this number.");
    };
    let body = html! {
        p.back { a href="/console/executions" { "Executions" } }
        h1 { code { (text::line(&execution.name, 100)) } " " (status(execution.ending.ok, &execution.ending.status)) }
        dl.facts {
            div { dt { "Started" } dd { (time(execution.started)) } }
            div { dt { "Took" } dd { (text::duration(execution.duration)) } }
            div { dt { "Caller" } dd { (who(&execution)) } }
            @if let Some(bytes) = execution.script_bytes { div { dt { "Script" } dd { (text::size(bytes)) } } }
            div { dt { "Tool calls" } dd { (execution.calls.len() + execution.more_calls) } }
        }
        h2 { "Calls over time" }
        (waterfall::waterfall(&execution.calls, execution.more_calls, execution.duration))
    };
    page(&shared, StatusCode::OK, Place::Executions, &format!("Execution {id}"), body)
}

/// A list that grows at its top while the page is open, and keeps at most `most` rows.
pub(crate) fn rows(executions: &[Arc<Execution>], most: usize) -> Markup {
    let newest = executions.first().map_or(0, |newest| newest.id);
    html! {
        @if executions.is_empty() { p.soft #none { "Nothing ran yet. What clients and this console call appears here." } }
        ol.runs #runs data-most=(most) data-newest=(newest) { @for one in executions { (row(one)) } }
    }
}

/// One row; also sent live.
pub(crate) fn row(execution: &Execution) -> Markup {
    let calls = execution.calls.len() + execution.more_calls;
    html! {
        li data-id=(execution.id) {
            a.name href=(format!("/console/executions/{}", execution.id)) { (text::line(&execution.name, 100)) }
            span.facts {
                (status(execution.ending.ok, &execution.ending.status))
                span { (text::duration(execution.duration)) }
                span { (text::count(calls, "call")) }
                span.soft { (time(execution.started)) }
                span.soft { (who(execution)) }
            }
            (waterfall::strip(&execution.calls, execution.duration))
        }
    }
}

fn who(execution: &Execution) -> Markup {
    html! {
        @if &*execution.subject == OPERATOR { span.tag { "console" } }
        @else { (text::line(&execution.subject, 60)) }
    }
}

//! `/console/runs`: journals of scripts, from the crate `executions`: those that wait for somebody first, then those that run, then
//! those that ended.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    extract::{Path, State},
    response::Response,
};
use gatewright_executions::{ExecutionError, Head, Listed, Reader, State as RunState, WaitingFor};
use http::StatusCode;
use maud::{Markup, html};

use super::{NavItem, missing, page, status, time};
use crate::{ConsoleState, OPERATOR, text};

/// Runs on the page.
const MOST: usize = 200;

pub(crate) async fn list(State(state): State<Arc<ConsoleState>>) -> Response {
    let Some(code_call) = &state.code_call else { return missing(&state, "Code mode is off.") };
    let listed = code_call.executions().list(Reader::Operator, None, MOST).await;
    let body = html! {
        div.row {
            h1 { "Runs" }
            a href="/console/runs" { "Refresh" }
        }
        p.soft {
            "Scripts whose journals are kept. One that waits takes no worker; it goes on, on any instance, when it has its answer."
        }
        @match &listed {
            Ok(listed) => (groups(listed)),
            Err(error) => (unavailable(*error)),
        }
    };
    let code = if listed.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    page(&state, code, NavItem::Runs, "Runs", body)
}

fn groups(listed: &[Listed]) -> Markup {
    let of = |state| listed.iter().filter(move |one| one.head.state == state).collect::<Vec<_>>();
    let groups = [
        ("Waiting", of(RunState::Waiting)),
        ("Running", of(RunState::Running)),
        ("Ended", of(RunState::Ended)),
    ];
    html! {
        @if listed.is_empty() { p.soft { "None yet. Scripts of clients and of this console appear here." } }
        @for (title, runs) in groups.iter().filter(|(_, runs)| !runs.is_empty()) {
            section {
                h2 { (title) }
                ol.list.runs { @for one in runs { (row(one)) } }
            }
        }
        @if listed.len() >= MOST { p.soft { "There are more: " code { "gatewright executions list" } " shows them." } }
    }
}

fn row(Listed { head, held }: &Listed) -> Markup {
    html! {
        li {
            a.name href=(format!("/console/runs/{}", head.id)) { (name(head)) }
            span.facts {
                (state_of(head, *held))
                span { (text::count(head.calls.made as usize, "call")) }
                span.soft { (time(at(head.created_ms))) }
                span.soft { (owner(head)) }
            }
            span { @for waiting in head.waiting_for.iter().take(1) { (question(waiting)) } }
        }
    }
}

pub(crate) async fn show(State(state): State<Arc<ConsoleState>>, Path(id): Path<String>) -> Response {
    let Some(code_call) = &state.code_call else { return missing(&state, "Code mode is off.") };
    let head = match code_call.executions().head(&id, Reader::Operator).await {
        Ok(head) => head,
        Err(ExecutionError::NotFound) => {
            return missing(&state, "This run is no longer kept, or there was none with this id.");
        }
        Err(error) => {
            return page(&state, StatusCode::SERVICE_UNAVAILABLE, NavItem::Runs, "Runs", unavailable(error));
        }
    };
    let body = html! {
        p.back { a href="/console/runs" { "Runs" } }
        h1 { (name(&head)) " " (state_of(&head, true)) }
        dl.facts {
            div { dt { "Id" } dd { code { (head.id) } } }
            div { dt { "Started" } dd { (time(at(head.created_ms))) } }
            div { dt { "Changed" } dd { (time(at(head.updated_ms))) } }
            div { dt { "Kept until" } dd { (text::moment(at(head.expires_ms))) } }
            div { dt { "Caller" } dd { (owner(&head)) } }
            @if head.about.detached { div { dt { "Client" } dd { "runs in the background" } } }
            div { dt { "Tool calls" } dd { (head.calls.made) @if head.calls.failed > 0 { ", " (head.calls.failed) " failed" } } }
            div { dt { "Resumed" } dd { (text::count(head.resumed as usize, "time")) } }
            div { dt { "Journal" } dd { @if head.complete { (text::size(head.bytes)) } @else { "too large to be kept" } } }
        }
        @if !head.waiting_for.is_empty() {
            section {
                h2 { "Waits for" }
                ul.list { @for waiting in &head.waiting_for { li { (question(waiting)) } } }
            }
        }
    };
    page(&state, StatusCode::OK, NavItem::Runs, "Run", body)
}

fn unavailable(error: ExecutionError) -> Markup {
    html! { div.alert role="alert" { strong { "The runs cannot be shown." } " " (error) } }
}

/// The name that people know a run by.
fn name(head: &Head) -> String {
    let name = head.about.plan.as_deref().or(head.about.title.as_deref());
    let name = name.map(|name| text::line(name, 100)).filter(|name| !name.is_empty());
    name.unwrap_or_else(|| head.id.to_string())
}

fn state_of(head: &Head, held: bool) -> Markup {
    match (head.state, &head.ending) {
        (RunState::Ended, Some(ending)) => {
            let word = ending.code.as_deref().unwrap_or(&ending.status);
            status(ending.status == "ok", if ending.status == "ok" { "ok" } else { word })
        }
        (RunState::Ended, None) => status(false, "ended"),
        (RunState::Waiting, _) => html! { span.tag.warn { "waits" } },
        (RunState::Running, _) if held => html! { span.tag { "runs" } },
        (RunState::Running, _) => html! { span.tag.warn { "stopped" } },
    }
}

fn question(waiting: &WaitingFor) -> Markup {
    html! {
        (waiting.kind.name())
        @if let Some(tool) = &waiting.tool { " for " code { (text::line(tool, 100)) } }
        @if !waiting.text.is_empty() { ": " (text::line(&waiting.text, 200)) }
    }
}

fn owner(head: &Head) -> Markup {
    let client = head.owner.client_id.as_deref();
    html! {
        @if &*head.owner.subject == OPERATOR { span.tag { "console" } }
        @else {
            (text::line(&head.owner.subject, 60))
            @if let Some(client) = client { " with " (text::line(client, 60)) }
        }
    }
}

fn at(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

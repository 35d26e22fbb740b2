//! `/console/runs`: journals of scripts, from the crate `executions`: those that wait for somebody first, then those that run, then
//! those that ended. One of them is in `run`.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    extract::{Query, State},
    response::Response,
};
use gatewright_executions::{ExecutionError, Head, Listed, Reader, State as RunState, WaitingFor};
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;

use super::{NavItem, missing, page, status, subject, time};
use crate::{ConsoleState, OPERATOR, text};

/// Runs on the page.
const MOST: usize = 200;

/// A choice of runs. Empty fields fit all.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Filter {
    /// Part of the title or plan, of a tool that is waited for, or the beginning of the id.
    q: String,
    caller: String,
    /// `waiting`, `running`, `ok` or `failed`.
    status: String,
}

/// Statuses that the form offers.
const STATUSES: [(&str, &str); 4] =
    [("waiting", "Waiting"), ("running", "Running"), ("ok", "Succeeded"), ("failed", "Failed")];

impl Filter {
    fn is_empty(&self) -> bool {
        [&self.q, &self.caller, &self.status].into_iter().all(String::is_empty)
    }

    fn fits(&self, head: &Head) -> bool {
        let has = |text: &str, part: &str| text.to_lowercase().contains(&part.trim().to_lowercase());
        let texts = [head.about.title.as_deref(), head.about.plan.as_deref()].into_iter().flatten();
        let tools = head.waiting_for.iter().filter_map(|waiting| waiting.tool.as_deref());
        let is_ok = head.ending.as_ref().map(|ending| ending.status == "ok");
        (self.q.is_empty()
            || texts.chain(tools).any(|text| has(text, &self.q))
            || head.id.to_string().starts_with(self.q.trim()))
            && (self.caller.is_empty()
                || has(&head.owner.subject, &self.caller)
                || head.owner.client_id.as_deref().is_some_and(|client| has(client, &self.caller)))
            && match self.status.as_str() {
                "waiting" => head.state == RunState::Waiting,
                "running" => head.state == RunState::Running,
                "ok" => is_ok == Some(true),
                "failed" => is_ok == Some(false),
                _ => true,
            }
    }
}

pub(crate) async fn list(State(state): State<Arc<ConsoleState>>, Query(filter): Query<Filter>) -> Response {
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
        form.filter method="get" action="/console/runs" role="search" data-live="found" {
            div { label for="q" { "Title, plan or id" } input #q name="q" type="search" maxlength="200" value=(filter.q); }
            div { label for="caller" { "Caller" } input #caller name="caller" type="search" maxlength="200" value=(filter.caller); }
            div {
                label for="status" { "Status" }
                select #status name="status" {
                    option value="" { "All" }
                    @for (value, words) in STATUSES { option value=(value) selected[filter.status == value] { (words) } }
                }
            }
            button { "Filter" }
        }
        div #found {
            @match &listed {
                Ok(listed) => (groups(listed, &filter)),
                Err(error) => (unavailable(*error)),
            }
        }
    };
    let code = if listed.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    page(&state, code, NavItem::Runs, "Runs", body)
}

fn groups(listed: &[Listed], filter: &Filter) -> Markup {
    let chosen: Vec<&Listed> = listed.iter().filter(|one| filter.fits(&one.head)).collect();
    let of = |state| chosen.iter().copied().filter(|one| one.head.state == state).collect::<Vec<_>>();
    let groups = [
        ("Waiting", of(RunState::Waiting)),
        ("Running", of(RunState::Running)),
        ("Ended", of(RunState::Ended)),
    ];
    html! {
        @if !listed.is_empty() && chosen.is_empty() && !filter.is_empty() { p.soft { "None fits. " a href="/console/runs" { "Show all" } } }
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
            @let question_class = (!head.waiting_for.is_empty()).then_some("question");
            span class=[question_class] { @for waiting in head.waiting_for.iter().take(1) { (question(waiting)) } }
        }
    }
}

pub(super) fn unavailable(error: ExecutionError) -> Markup {
    html! { div.alert role="alert" { strong { "The runs cannot be shown." } " " (error) } }
}

/// The name that people know a run by.
pub(super) fn name(head: &Head) -> String {
    let name = head.about.plan.as_deref().or(head.about.title.as_deref());
    let name = name.map(|name| text::line(name, 100)).filter(|name| !name.is_empty());
    name.unwrap_or_else(|| head.id.to_string())
}

pub(super) fn state_of(head: &Head, held: bool) -> Markup {
    match (head.state, &head.ending) {
        (RunState::Ended, Some(ending)) => {
            let word = ending.code.as_deref().unwrap_or(&ending.status);
            status(ending.status == "ok", if ending.status == "ok" { "ok" } else { word })
        }
        (RunState::Ended, None) => status(false, "ended"),
        (RunState::Waiting, _) => html! { span.status.waits { "waits" } },
        (RunState::Running, _) if held => html! { span.status { "runs" } },
        (RunState::Running, _) => html! { span.status.waits { "stopped" } },
    }
}

pub(super) fn question(waiting: &WaitingFor) -> Markup {
    html! {
        (waiting.kind.name())
        @if let Some(tool) = &waiting.tool { " for " code { (text::line(tool, 100)) } }
        @if !waiting.text.is_empty() { ": " (text::prose(&waiting.text, 300)) }
    }
}

pub(super) fn owner(head: &Head) -> Markup {
    let client = head.owner.client_id.as_deref();
    html! {
        @if &*head.owner.subject == OPERATOR { span.tag { "console" } }
        @else {
            (subject(&head.owner.subject, client))
            @if let Some(endpoint) = &head.owner.endpoint { " at " (text::line(endpoint, 60)) }
        }
    }
}

pub(super) fn at(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

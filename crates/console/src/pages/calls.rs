//! `/console/calls`: the latest requests of clients for tools, from the memory of `history`, each with the calls of apps that it made. One of
//! them is in `call`; journals of scripts are in `runs`.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    extract::{Query, State},
    response::Response,
};
use gatewright_core::{Ending, Execution, Principal};
use http::StatusCode;
use maud::{Markup, html};

use super::{NavItem, encode, ending, page, subject, time, waterfall};
use crate::{
    ConsoleState, Entry, OPERATOR,
    filter::{Filter, TIMES},
    text,
};

/// Rows on one page.
const ROWS: usize = 50;
/// Statuses that the form offers.
const MOST_STATUSES: usize = 30;
/// Value of `instance` for all of them.
const ALL: &str = "all";

/// Parameters beside the filter.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Place {
    instance: String,
}

pub(crate) async fn list(
    State(state): State<Arc<ConsoleState>>,
    Query(filter): Query<Filter>,
    Query(place): Query<Place>,
) -> Response {
    let others = state.instances.others().await;
    let is_here = others.is_empty() || place.instance.is_empty() || place.instance == state.instances.own();
    let body = html! {
        div.row {
            h1 { "Calls" }
            a href="/console/calls" { "Refresh" }
        }
        p.soft {
            "What clients called, and what came of it. " (state.history.total()) " since the start; the last " (state.history.capacity()) " are kept. "
            @if filter.before.is_empty() && is_here { span #news role="status" { "New ones appear here by themselves." } }
        }
        (form(&state, &filter, &others, &place.instance))
        div #found {
            @if is_here { (own(&state, &filter)) } @else { (elsewhere(&state, &filter, &others, &place.instance)) }
        }
    };
    page(&state, StatusCode::OK, NavItem::Calls, "Calls", body)
}

/// Those of this instance, page by page.
fn own(state: &ConsoleState, filter: &Filter) -> Markup {
    let now = SystemTime::now();
    let fits = |one: &Execution| filter.fits(one, now);
    let shown = state.history.choose(filter.before(), ROWS, fits);
    let older = shown.last().filter(|last| !state.history.choose(Some(last.id), 1, fits).is_empty());
    let is_first = filter.before.is_empty();
    html! {
        @if !filter.is_empty() && shown.is_empty() && state.history.total() > 0 {
            p.soft #none { "None of those that are kept fits. " a href="/console/calls" { "Show all" } }
        }
        @if is_first && (filter.is_empty() || !shown.is_empty()) { (rows(&shown, ROWS)) }
        @else { (scale(longest(&shown))) ol.list.runs { @for one in &shown { (row(one, longest(&shown))) } } }
        @if let Some(last) = older {
            p { a.button.quiet href=(format!("/console/calls?{}&before={}", filter.query(), last.id)) { "Older" } }
        }
    }
}

/// The latest of another instance, or of all.
fn elsewhere(
    state: &ConsoleState,
    filter: &Filter,
    others: &[crate::instances::Report],
    instance: &str,
) -> Markup {
    let now = SystemTime::now();
    let mut all: Vec<(Option<String>, Arc<Entry>)> = Vec::new();
    if instance == ALL {
        let own = state.history.choose(None, ROWS, |one| filter.fits(one, now));
        all.extend(own.into_iter().map(|entry| (None, entry)));
    }
    for report in others.iter().filter(|report| instance == ALL || report.name == instance) {
        let calls = report.executions().filter(|one| filter.fits(one, now));
        all.extend(calls.map(|execution| (Some(report.name.clone()), Arc::new(Entry { id: 0, execution }))));
    }
    all.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.execution.started));
    all.truncate(ROWS);
    let longest = all.iter().map(|(_, entry)| entry.execution.duration).max().unwrap_or_default();
    html! {
        p.soft { "Of other instances the latest " (crate::instances::MOST_CALLS) " are shown, up to some seconds old." }
        @if all.is_empty() { p.soft #none { "Nothing fits." } } @else { (scale(longest)) }
        ol.list.runs { @for (instance, entry) in &all { (row_of(entry, longest, instance.as_deref())) } }
    }
}

fn form(
    state: &ConsoleState,
    filter: &Filter,
    others: &[crate::instances::Report],
    instance: &str,
) -> Markup {
    let snapshot = state.operator.gateway().registry().operator_snapshot();
    let statuses: BTreeSet<String> = state
        .history
        .choose(None, usize::MAX, |_| true)
        .iter()
        .flat_map(|one| {
            let calls = one.execution.calls.iter().map(|call| &call.ending);
            calls
                .chain([&one.execution.ending])
                .filter(|ending| !ending.is_ok())
                .map(|ending| ending.status().to_owned())
                .collect::<Vec<_>>()
        })
        .collect();
    let groups = [("ok", "Succeeded"), ("failed", "Failed"), ("refused", "Refused by a rule")];
    html! {
        form.filter method="get" action="/console/calls" role="search" data-live="found" {
            div { label for="tool" { "Tool" } input #tool name="tool" type="search" maxlength="200" value=(filter.tool); }
            div { label for="caller" { "Caller" } input #caller name="caller" type="search" maxlength="200" value=(filter.caller); }
            div {
                label for="app" { "App" }
                select #app name="app" {
                    option value="" { "All apps" }
                    @for app in &snapshot.apps { option value=(app.id) selected[*app.id == filter.app] { (text::line(&app.id, 40)) } }
                }
            }
            div {
                label for="status" { "Status" }
                select #status name="status" {
                    option value="" { "All" }
                    @for (value, words) in groups { option value=(value) selected[filter.status == value] { (words) } }
                    @for code in statuses.iter().take(MOST_STATUSES) { option value=(code) selected[filter.status == *code] { (text::line(code, 40)) } }
                }
            }
            div {
                label for="within" { "Time" }
                select #within name="within" {
                    option value="" { "Any time" }
                    @for (value, words, _) in TIMES { option value=(value) selected[filter.within == value] { (words) } }
                }
            }
            @if !others.is_empty() {
                div {
                    label for="instance" { "Instance" }
                    select #instance name="instance" {
                        option value="" { "This one" }
                        option value=(ALL) selected[instance == ALL] { "All" }
                        @for other in others { option value=(other.name) selected[instance == other.name] { (text::line(&other.name, 40)) } }
                    }
                }
            }
            button { "Filter" }
        }
    }
}

/// A list of executions, newest first. While the page is open, live updates keep it at `most` rows.
pub(crate) fn rows(entries: &[Arc<Entry>], most: usize) -> Markup {
    let newest = entries.first().map_or(0, |newest| newest.id);
    let longest = longest(entries);
    html! {
        @if entries.is_empty() { p.soft #none { "Nothing was called yet. Calls by clients and by this console appear here." } }
        @else { (scale(longest)) }
        ol.list.runs #runs data-most=(most) data-newest=(newest) { @for one in entries { (row(one, longest)) } }
    }
}

fn longest(entries: &[Arc<Entry>]) -> Duration {
    entries.iter().map(|one| one.execution.duration).max().unwrap_or_default()
}

/// The one time scale of all rows.
fn scale(longest: Duration) -> Markup {
    html! {
        div.scale.shared #scale aria-hidden="true" {
            @for part in [0, 2, 4_u32] { span { (text::duration(longest / 4 * part)) } }
        }
    }
}

/// One row, in the list and in live updates. Its bars are drawn on the scale of `longest`.
pub(crate) fn row(entry: &Entry, longest: Duration) -> Markup {
    row_of(entry, longest, None)
}

fn row_of(Entry { id, execution }: &Entry, longest: Duration, instance: Option<&str>) -> Markup {
    let calls = execution.calls.len() + execution.more_calls;
    let name = text::line(named_after(execution), 100);
    html! {
        li data-id=(id) {
            @if *id > 0 { a.name href=(format!("/console/calls/{id}")) { (name) } }
            @else { span.name { (name) } }
            span.facts {
                (ending(ending_of(execution)))
                @if *named_after(execution) != *execution.tool { span.tag { (text::line(&execution.tool, 100)) } }
                span { (text::duration(execution.duration)) }
                span { (text::count(calls, "call")) }
                span.soft { (time(execution.started)) }
                span.soft { (caller(&execution.principal)) }
                @if let Some(instance) = instance { span.tag { (text::line(instance, 40)) } }
            }
            (waterfall::strip(&execution.calls, execution.duration, longest))
        }
    }
}

/// The tool that a row is named after: the one that `codecall:invoke` called, else the one that the client called.
fn named_after(execution: &Execution) -> &str {
    match execution.calls.as_slice() {
        [call] if execution.is_meta && execution.script.is_none() && execution.more_calls == 0 => &call.tool,
        _ => &execution.tool,
    }
}

/// The ending of a row: that of the call that it is named after says more than `error`.
fn ending_of(execution: &Execution) -> &Ending {
    match execution.calls.as_slice() {
        [call] if *named_after(execution) != *execution.tool && !execution.ending.is_ok() => &call.ending,
        _ => &execution.ending,
    }
}

/// The subject of a caller, and their client.
pub(crate) fn caller(principal: &Principal) -> Markup {
    html! {
        @if *principal.subject == *OPERATOR { span.tag { "console" } }
        @else {
            (subject(&principal.subject, principal.client_id.as_deref()))
        }
        @if let Some(endpoint) = &principal.endpoint { " at " (endpoint) }
    }
}

/// The list of those that an app or tool was called in.
pub(crate) fn path_of_tool(name: &str) -> String {
    format!("/console/calls?tool={}", encode(name))
}

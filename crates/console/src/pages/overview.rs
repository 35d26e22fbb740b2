//! `/console`: first what needs attention, then the last hour, the instances, the apps, and the latest calls.

use std::{sync::Arc, time::Duration};

use axum::{extract::State, response::Response};
use gatewright_core::{AppEntry, AppHealth, Approver};
use gatewright_executions::{Reader, State as RunState};
use gatewright_pages::breakable;
use http::StatusCode;
use maud::{Markup, html};

use super::{NavItem, calls, charts, encode, page, pins, time, tool_path};
use crate::{
    ConsoleState, OPERATOR, advice,
    hour::{HourSummary, Numbers},
    instances::{Report, moment},
    text,
};

/// Executions on this page.
const RECENT: usize = 8;
/// Items of one kind that need attention; more are counted.
const MOST_NAMED: usize = 5;
/// Tools in the table of the slowest.
const SLOWEST: usize = 8;
/// Runs that wait and are counted.
const MOST_WAITING: usize = 100;
/// Apps with cards of their own. Of more, those that work have a line each.
const MOST_CARDS: usize = 12;
/// Longest wait for a store.
const WAIT: Duration = Duration::from_secs(2);
/// Fewest calls of a tool that are judged.
const ENOUGH: u32 = 5;
/// 95th percentile from which a tool is slow, in microseconds.
const SLOW_US: u64 = 2_000_000;

pub(crate) async fn show(State(state): State<Arc<ConsoleState>>) -> Response {
    let (others, hour) = (state.instances.others().await, state.history.last_hour());
    let attention = attention(&state, &hour, &others).await;
    let body = html! {
        h1 { "Overview" }
        section aria-labelledby="attention" {
            h2 #attention { "Needs attention" }
            @if attention.is_empty() { p.notice { "Nothing does." } }
            @else { ul.list.attention { @for item in &attention { li { (item) } } } }
        }
        section aria-labelledby="hour" {
            div.row { h2 #hour { "Last hour" } @if !others.is_empty() { span.soft { "of this instance" } } }
            (charts::charts(&hour))
            (slowest(&hour))
        }
        @if state.instances.are_shared() { (instances(&state, &hour, &others)) }
        section #apps aria-label="Apps" { (apps(&state)) }
        section aria-labelledby="recent" {
            div.row {
                h2 #recent { "Latest calls" }
                a href="/console/calls" { "All calls" }
            }
            (calls::rows(&state.history.latest(None, RECENT), RECENT))
        }
    };
    page(&state, StatusCode::OK, NavItem::Overview, "Overview", body)
}

/// The list of what needs attention, most urgent first.
async fn attention(state: &ConsoleState, hour: &HourSummary, others: &[Report]) -> Vec<Markup> {
    let mut items = down(state);
    for report in others.iter().filter(|report| !report.down.is_empty()).take(MOST_NAMED) {
        let names: Vec<String> =
            report.down.iter().take(MOST_NAMED).map(|(id, _)| text::line(id, 64)).collect();
        items.push(
            html! { (bad("down")) " On " strong { (text::line(&report.name, 60)) } ": " (names.join(", ")) },
        );
    }
    items.extend(configuration(state));
    items.extend(held_back(state));
    items.extend(findings(state));
    items.extend(waiting(state).await);
    for (code, count) in &hour.refused {
        items.push(html! {
            (warn("refused")) " "
            a href=(format!("/console/calls?status={}", encode(code))) { (text::count(*count as usize, "call")) " with " code { (code) } }
            " in the last hour. " span.soft { (text::prose(advice::on(code).unwrap_or_default(), 400)) }
        });
    }
    let failing = |one: &Numbers| one.all >= ENOUGH && one.failed * 5 >= one.all;
    for (name, one) in hour.tools.iter().filter(|(_, one)| failing(one)).take(MOST_NAMED) {
        items.push(html! {
            (warn("errors")) " " a href=(calls::path_of_tool(name)) { code { (text::line(name, 100)) } }
            " failed in " (one.failed) " of " (text::count(one.all as usize, "call")) "."
        });
    }
    let slow = |one: &Numbers| one.all >= ENOUGH && one.p95_us >= SLOW_US;
    for (name, one) in hour.tools.iter().filter(|(_, one)| slow(one)).take(MOST_NAMED) {
        items.push(html! {
            (warn("slow")) " " a href=(calls::path_of_tool(name)) { code { (text::line(name, 100)) } }
            " takes up to " (charts::time(one.p95_us)) " in 95 of 100 calls."
        });
    }
    items
}

fn bad(word: &str) -> Markup {
    html! { span.status.bad { (word) } }
}

fn warn(word: &str) -> Markup {
    html! { span.tag.warn { (word) } }
}

fn down(state: &ConsoleState) -> Vec<Markup> {
    let snapshot = state.operator.gateway().registry().operator_snapshot();
    let down: Vec<(String, String)> = snapshot
        .apps
        .iter()
        .filter_map(|app| match app.app.health() {
            AppHealth::Down(why) => Some((app.id.to_string(), why.in_full())),
            AppHealth::Up | AppHealth::Starting => None,
        })
        .collect();
    let mut items: Vec<Markup> = down
        .iter()
        .take(MOST_NAMED)
        .map(|(id, why)| {
            let since = state.health.of(id).map(|known| known.since);
            html! {
                (bad("down")) " App " strong { (text::line(id, 64)) } @if let Some(since) = since { " since " (time(since)) } ": "
                span.why { (text::prose(why, 300)) }
            }
        })
        .collect();
    if down.len() > MOST_NAMED {
        items.push(html! { (bad("down")) " " (text::count(down.len() - MOST_NAMED, "more app")) ", below." });
    }
    items
}

fn configuration(state: &ConsoleState) -> Vec<Markup> {
    let Some(config) = state.configuration() else { return Vec::new() };
    let page = html! { a href="/console/configuration" { "Configuration" } };
    let mut items = Vec::new();
    if config.refused {
        items.push(html! { (bad("refused")) " The file of the configuration has errors; the last good one stays in force. " (page) });
    }
    if !config.restart.is_empty() {
        items.push(html! { (warn("restart")) " " (text::count(config.restart.len(), "changed key")) " of the configuration need a restart. " (page) });
    }
    if config.unknown_names > 0 {
        items.push(html! { (warn("names")) " " (text::count(config.unknown_names, "finding")) " about names in the configuration, or tools out of reach. " (page) });
    }
    items
}

fn held_back(state: &ConsoleState) -> Option<Markup> {
    let count = pins::count(state);
    (count > 0).then(|| {
        html! { (warn("pins")) " " a href="/console/pins" { (text::count(count, "tool")) } " changed or new since they were approved, and held back." }
    })
}

/// Items of apps that clients are not shown as they are offered.
fn findings(state: &ConsoleState) -> Vec<Markup> {
    let snapshot = state.operator.gateway().registry().operator_snapshot();
    let all =
        snapshot.apps.iter().flat_map(|app| snapshot.findings(&app.id).iter().map(move |one| (app, one)));
    let items = all.take(MOST_NAMED).map(|(app, one)| {
        html! {
            (warn(if one.is_left_out { "left out" } else { "changed" })) " " code { (text::line(&one.item, 100)) } " of app "
            strong { (text::line(&app.id, 64)) } ": " (text::prose(&one.problem, 300))
        }
    });
    items.collect()
}

/// Approvals and runs that wait for somebody.
async fn waiting(state: &ConsoleState) -> Vec<Markup> {
    let mut items = Vec::new();
    let store = state.operator.gateway().invoker().approvals();
    match tokio::time::timeout(WAIT, store.list(Approver::Operator(OPERATOR))).await {
        Ok(Ok(approvals)) if approvals.is_empty() => {}
        Ok(Ok(approvals)) => items.push(html! {
            (warn("waits")) " " a href="/console/approvals" { (text::count(approvals.len(), "request")) } " for an approval."
        }),
        Ok(Err(_)) | Err(_) => items.push(html! { (bad("store")) " The store of approvals does not answer." }),
    }
    if let Some(code_call) = &state.code_call {
        let listed = code_call.executions().list(Reader::Operator, Some(RunState::Waiting), MOST_WAITING);
        match tokio::time::timeout(WAIT, listed).await {
            Ok(Ok(runs)) if runs.is_empty() => {}
            Ok(Ok(runs)) => items.push(html! {
                (warn("waits")) " " a href="/console/runs?status=waiting" { (text::count(runs.len(), "run")) } " for answers."
            }),
            Ok(Err(_)) | Err(_) => items.push(html! { (bad("store")) " The store of executions does not answer." }),
        }
    }
    items
}

fn slowest(hour: &HourSummary) -> Markup {
    html! {
        @if !hour.tools.is_empty() {
            div.wide.card tabindex="0" role="region" aria-label="Slowest tools" {
                table {
                    thead { tr { th scope="col" { "Slowest tools" } th scope="col" { "Calls" } th scope="col" { "Errors" } th scope="col" { "p50" } th scope="col" { "p95" } } }
                    tbody {
                        @for (name, one) in hour.tools.iter().take(SLOWEST) {
                            tr {
                                td { a href=(tool_path(name)) { code { (breakable(&text::line(name, 100))) } } }
                                td { (text::grouped(one.all.into())) }
                                td { @if one.failed > 0 { a href=(format!("{}&status=failed", calls::path_of_tool(name))) { (text::grouped(one.failed.into())) } } @else { "0" } }
                                td { (charts::time(one.p50_us)) }
                                td { (charts::time(one.p95_us)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn instances(state: &ConsoleState, hour: &HourSummary, others: &[Report]) -> Markup {
    let registry = state.operator.gateway().registry().operator_snapshot();
    let down = registry.apps.iter().filter(|app| matches!(app.app.health(), AppHealth::Down(_))).count();
    let row = |name: &str, apps: (usize, usize), total: &Numbers, about: Markup| {
        html! {
            tr {
                td { (text::line(name, 60)) " " span.soft { (about) } }
                td { (apps.0) " of " (apps.1) }
                td { (text::grouped(total.all.into())) }
                td { (text::grouped(total.failed.into())) }
                td { (charts::time(total.p95_us)) }
            }
        }
    };
    html! {
        section aria-labelledby="instances" {
            div.row { h2 #instances { "Instances" } @if !others.is_empty() { a href="/console/calls?instance=all" { "Calls of all instances" } } }
            div.wide.card tabindex="0" role="region" aria-label="Instances" {
                table {
                    thead { tr { th scope="col" { "Name" } th scope="col" { "Apps up" } th scope="col" { "Calls" } th scope="col" { "Errors" } th scope="col" { "p95" } } }
                    tbody {
                        (row(state.instances.own(), (registry.apps.len() - down, registry.apps.len()), &hour.total, html! { "this one" }))
                        @for one in others {
                            (row(&one.name, (one.apps.saturating_sub(one.down.len()), one.apps), &one.hour.total, html! { (text::line(&one.version, 20)) ", since " (text::moment(moment(one.started_ms))) }))
                        }
                    }
                }
            }
            p.soft { "Numbers are of the last hour. Instances that have a console report every five seconds." }
        }
    }
}

/// The apps with their health, on the page and in live updates.
pub(crate) fn apps(state: &ConsoleState) -> Markup {
    let snapshot = state.operator.gateway().registry().operator_snapshot();
    let up = snapshot.apps.iter().filter(|app| app.app.health() == AppHealth::Up).count();
    let mut counts = std::collections::HashMap::<&str, usize>::new();
    snapshot.tools.iter().for_each(|tool| *counts.entry(&tool.app_id).or_default() += 1);
    let mut attention_first: Vec<_> = snapshot.apps.iter().collect();
    attention_first.sort_by_key(|app| match app.app.health() {
        AppHealth::Down(_) => 0,
        AppHealth::Starting => 1,
        AppHealth::Up => 2,
    });
    let is_many = attention_first.len() > MOST_CARDS;
    let is_compact = |app: &&AppEntry| {
        is_many
            && app.app.health() == AppHealth::Up
            && state.health.of(&app.id).is_none_or(|known| known.last_error.is_none())
    };
    let tools_of = |id: &str| {
        let tools = counts.get(id).copied().unwrap_or_default();
        html! { a href=(format!("/console/tools?app={}", encode(id))) { (text::count(tools, "tool")) } }
    };
    html! {
        dl.figures {
            div { dt { "Apps up" } dd { (up) span.soft { " of " (snapshot.apps.len()) } } }
            div { dt { "Tools" } dd { (text::grouped(snapshot.tools.len() as u64)) } }
            div { dt { "Resources" } dd { (text::grouped((snapshot.resources.len() + snapshot.templates.len()) as u64)) } }
            div { dt { "Prompts" } dd { (text::grouped(snapshot.prompts.len() as u64)) } }
        }
        @if snapshot.apps.is_empty() { p { "No apps are configured." } }
        ul.cards {
            @for app in attention_first.extract_if(.., |app| !is_compact(app)) {
                @let known = state.health.of(&app.id);
                @let health = app.app.health();
                li.card.broken[matches!(health, AppHealth::Down(_))] {
                    div.row {
                        h2 { (text::line(&app.id, 64)) }
                        @match &health {
                            AppHealth::Up => span.status.ok { "up" },
                            AppHealth::Starting => span.status { "starting" },
                            AppHealth::Down(_) => span.status.bad { "down" },
                        }
                    }
                    p {
                        (tools_of(&app.id))
                        @if let Some(known) = &known { span.soft { " · since " (time(known.since)) } }
                    }
                    @if let AppHealth::Down(why) = &health { p.why { (text::prose(&why.in_full(), 400)) } }
                    @else if let Some((at, why)) = known.and_then(|known| known.last_error) {
                        p.soft { "Last error, " (time(at)) ": " (text::prose(&why, 300)) }
                    }
                }
            }
        }
        @if !attention_first.is_empty() {
            ul.list.apps {
                @for app in &attention_first {
                    li.row {
                        div {
                            span.name { (breakable(&text::line(&app.id, 64))) } " "
                            (tools_of(&app.id))
                        }
                        span.status.ok { "up" }
                    }
                }
            }
        }
    }
}

//! `/console/pins`: pinned tools whose definitions differ from the approved ones, with the differences and the command that approves them.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use gatewright_core::{AppEntry, DefinitionChanges, PinState, Pins, off_thread, rmcp::model::Tool};
use http::StatusCode;
use maud::{Markup, html};

use super::{NavItem, page};
use crate::{ConsoleState, text};

/// Tools on the page.
const MOST: usize = 50;
/// Differences of one tool.
const MOST_CHANGES: usize = 12;
/// Characters of a value.
const LONGEST: usize = 300;

/// A tool that waits for an approval.
pub(crate) struct Waiting {
    app: String,
    tool: String,
    is_new: bool,
    changes: DefinitionChanges,
}

/// The number of tools that wait for an approval.
pub(crate) fn count(state: &ConsoleState) -> usize {
    waiting(state, 0).len()
}

/// The tools that wait for an approval, of which the first `compared` have their differences.
fn waiting(state: &ConsoleState, compared: usize) -> Vec<Waiting> {
    let registry = state.operator.gateway().registry();
    let (snapshot, pins) = (registry.operator_snapshot(), registry.pins().borrow().clone());
    let mut waiting: Vec<Waiting> = Vec::new();
    for app in snapshot.apps.iter().filter(|app| app.options.pins()) {
        for tool in &app.app.catalog().tools {
            waiting.extend(of_tool(&pins, app, tool, waiting.len() < compared));
        }
    }
    waiting
}

fn of_tool(pins: &Pins, app: &AppEntry, tool: &Tool, is_compared: bool) -> Option<Waiting> {
    let is_new = match pins.state(&app.id, &app.options, tool)? {
        PinState::Approved => return None,
        PinState::Changed(_) => false,
        PinState::New => true,
    };
    let changes =
        if is_new || !is_compared { DefinitionChanges::default() } else { pins.changes(&app.id, tool) };
    Some(Waiting { app: app.id.to_string(), tool: tool.name.to_string(), is_new, changes })
}

/// The state of the tool that its app calls `name`, in words; none if it is not pinned.
pub(crate) fn word(state: &ConsoleState, app: &str, name: &str) -> Option<Markup> {
    let registry = state.operator.gateway().registry();
    let (snapshot, pins) = (registry.operator_snapshot(), registry.pins().borrow().clone());
    let app = snapshot.app(app)?;
    let catalog = app.app.catalog();
    let tool = catalog.tools.iter().find(|tool| *tool.name == *name)?;
    Some(match pins.state(&app.id, &app.options, tool)? {
        PinState::Approved => html! { span.tag { "pinned" } },
        PinState::Changed(_) | PinState::New => {
            html! { a.tag.warn href="/console/pins" { "changed since it was approved" } }
        }
    })
}

pub(crate) async fn show(State(state): State<Arc<ConsoleState>>) -> Response {
    let of_state = state.clone();
    // Definitions have any length.
    let waiting = off_thread(usize::MAX, move || waiting(&of_state, MOST)).await;
    let pinned = {
        let snapshot = state.operator.gateway().registry().operator_snapshot();
        snapshot.apps.iter().filter(|app| app.options.pins()).count()
    };
    let body = html! {
        p.back { a href="/console/tools" { "Tools" } }
        h1 { "Pins" }
        p.soft { "Tools whose definitions are held to those in " code { "gatewright.lock" } ". A changed tool is listed as it was approved and its calls are refused; a new one is not listed." }
        @if pinned == 0 { p { "No app is pinned. Set " code { "pin: true" } " for one." } }
        @else if waiting.is_empty() { p.notice { "All tools of " (text::count(pinned, "pinned app")) " are as they were approved." } }
        @else {
            p { "Read each difference as if a stranger had written it, then approve on the machine of the configuration:" }
            (command("gatewright pins diff --config gatewright.yaml"))
            ul.waiting { @for one in waiting.iter().take(MOST) { (entry(one)) } }
            @if waiting.len() > MOST { p.soft { "There are " (waiting.len() - MOST) " more." } }
        }
    };
    page(&state, StatusCode::OK, NavItem::Tools, "Pins", body)
}

fn command(line: &str) -> Markup {
    html! { pre tabindex="0" { code { (text::plain(line)) } } }
}

fn entry(one: &Waiting) -> Markup {
    let name = format!("{}:{}", one.app, one.tool);
    // Only plain names can be copied into a shell.
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-:.".contains(&byte));
    let more = one.changes.first.len().saturating_sub(MOST_CHANGES) + one.changes.more;
    html! {
        li.card {
            div.row {
                h2 { code { (text::line(&name, 150)) } }
                @if one.is_new { span.tag.warn { "new" } } @else { span.tag.warn { "changed" } }
            }
            @for change in one.changes.first.iter().take(MOST_CHANGES) {
                p { code { (text::line(&change.pointer, 150)) } }
                pre.diff tabindex="0" role="region" aria-label=(format!("Difference at {}", text::line(&change.pointer, 80))) {
                    @if let Some(before) = &change.before { span.minus { "- " (shown(before)) "\n" } }
                    @if let Some(after) = &change.after { span.plus { "+ " (shown(after)) "\n" } }
                }
            }
            @if more > 0 { p.soft { (more) " more differences." } }
            @if is_plain { (command(&format!("gatewright pins approve {name} --config gatewright.yaml"))) }
            @else { p.soft { "Approve it with " code { "gatewright pins approve" } " and its name in quotes." } }
        }
    }
}

fn shown(value: &serde_json::Value) -> String {
    let json = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut shown: String = text::plain(&json).chars().take(LONGEST).collect();
    if json.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

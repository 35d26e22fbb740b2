//! `/console`: the apps, and the latest executions.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use gatewright_core::AppHealth;
use http::StatusCode;
use maud::{Markup, html};

use super::{NavItem, encode, executions, page, time};
use crate::{ConsoleState, text};

/// Executions on this page.
const RECENT: usize = 8;

pub(crate) async fn show(State(state): State<Arc<ConsoleState>>) -> Response {
    let body = html! {
        h1 { "Overview" }
        section #apps aria-label="Apps" { (apps(&state)) }
        section aria-labelledby="recent" {
            div.row {
                h2 #recent { "Latest executions" }
                a href="/console/executions" { "All executions" }
            }
            (executions::rows(&state.history.latest(None, RECENT), RECENT))
        }
    };
    page(&state, StatusCode::OK, NavItem::Overview, "Overview", body)
}

/// The apps with their health, on the page and in live updates.
pub(crate) fn apps(state: &ConsoleState) -> Markup {
    let snapshot = state.operator.gateway().registry().operator_snapshot();
    let up = snapshot.apps.iter().filter(|app| app.app.health() == AppHealth::Up).count();
    let mut attention_first: Vec<_> = snapshot.apps.iter().collect();
    attention_first.sort_by_key(|app| match app.app.health() {
        AppHealth::Down(_) => 0,
        AppHealth::Starting => 1,
        AppHealth::Up => 2,
    });
    html! {
        dl.figures {
            div { dt { "Apps up" } dd { (up) span.soft { " of " (snapshot.apps.len()) } } }
            div { dt { "Tools" } dd { (snapshot.tools.len()) } }
            div { dt { "Resources" } dd { (snapshot.resources.len() + snapshot.templates.len()) } }
            div { dt { "Prompts" } dd { (snapshot.prompts.len()) } }
        }
        @if snapshot.apps.is_empty() { p { "No apps are configured." } }
        ul.cards {
            @for app in attention_first {
                @let known = state.health.of(&app.id);
                @let health = app.app.health();
                @let tools = snapshot.tools.iter().filter(|tool| tool.app_id == app.id).count();
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
                        a href=(format!("/console/tools?app={}", encode(&app.id))) { (text::count(tools, "tool")) }
                        @if let Some(known) = &known { span.soft { " · since " (time(known.since)) } }
                    }
                    @if let AppHealth::Down(why) = &health { p.why { (text::line(why, 400)) } }
                    @else if let Some((at, why)) = known.and_then(|known| known.last_error) {
                        p.soft { "Last error, " (time(at)) ": " (text::line(&why, 300)) }
                    }
                }
            }
        }
    }
}

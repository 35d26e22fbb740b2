//! `/console/tools`: every tool, with a filter.

use std::sync::Arc;

use axum::{
    extract::{Query, State},
    response::Response,
};
use gatewright_core::ToolEntry;
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;

use super::{NavItem, encode, hints, page, tool_path};
use crate::{ConsoleState, text};

/// Tools on one page.
const ROWS: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Params {
    q: String,
    app: String,
    page: Option<String>,
}

pub(crate) async fn show(State(state): State<Arc<ConsoleState>>, Query(params): Query<Params>) -> Response {
    let view = state.operator.view().await;
    let all = view.tools();
    let snapshot = state.operator.gateway().registry().operator_snapshot();
    let words: Vec<String> = params.q.split_whitespace().map(str::to_lowercase).collect();
    let fits = |tool: &Arc<ToolEntry>| {
        let text = || format!("{} {}", tool.tool.name, tool.description()).to_lowercase();
        (params.app.is_empty() || *tool.app_id == params.app)
            && (words.is_empty() || {
                let text = text();
                words.iter().all(|word| text.contains(word))
            })
    };
    let found: Vec<&Arc<ToolEntry>> = all.iter().copied().filter(|tool| fits(tool)).collect();
    let at = params
        .page
        .as_deref()
        .and_then(|page| page.parse().ok())
        .unwrap_or(0_usize)
        .min(all.len() / ROWS + 1);
    let shown = found.iter().skip(at.saturating_mul(ROWS)).take(ROWS);
    let link = |page: usize| {
        format!("/console/tools?q={}&app={}&page={page}", encode(&params.q), encode(&params.app))
    };
    let body = html! {
        h1 { "Tools" }
        form.filter method="get" action="/console/tools" role="search" {
            div { label for="q" { "Name or description" } input #q name="q" type="search" value=(params.q); }
            div {
                label for="app" { "App" }
                select #app name="app" {
                    option value="" { "All apps" }
                    @for app in &snapshot.apps {
                        option value=(app.id) selected[*app.id == params.app] { (text::line(&app.id, 60)) }
                    }
                }
            }
            button { "Filter" }
        }
        p.soft role="status" {
            (text::count(found.len(), "tool"))
            @if found.len() != all.len() { " of " (all.len()) }
        }
        ul.list.tools { @for tool in shown { (row(tool)) } }
        @if at > 0 || found.len() > (at + 1).saturating_mul(ROWS) {
            nav.pages aria-label="Pages" {
                @if at > 0 { a.button.quiet href=(link(at - 1)) { "Previous" } }
                @if found.len() > (at + 1).saturating_mul(ROWS) { a.button.quiet href=(link(at + 1)) { "Next" } }
            }
        }
    };
    page(&state, StatusCode::OK, NavItem::Tools, "Tools", body)
}

fn row(tool: &ToolEntry) -> Markup {
    html! {
        li {
            a.name href=(tool_path(&tool.tool.name)) { (text::line(&tool.tool.name, 100)) }
            (hints(tool.tool.annotations.as_ref()))
            p { (text::line(tool.description(), 200)) }
        }
    }
}

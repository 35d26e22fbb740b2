//! `/console/tools`: every tool, by app, with a filter that follows what is typed.

use std::sync::Arc;

use axum::{
    extract::{Query, State},
    response::Response,
};
use gatewright_core::ToolEntry;
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;

use super::{NavItem, encode, hints, page, page_number, pages, pins, tool_path};
use crate::{ConsoleState, text};

/// Tools on one page.
const ROWS: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Params {
    q: String,
    app: String,
    page: String,
}

pub(crate) async fn show(State(state): State<Arc<ConsoleState>>, Query(params): Query<Params>) -> Response {
    let view = state.operator.view().await;
    let all = view.tools();
    let snapshot = state.operator.gateway().registry().operator_snapshot();
    let words: Vec<String> = params.q.split_whitespace().map(str::to_lowercase).collect();
    let fits = |tool: &Arc<ToolEntry>| {
        (params.app.is_empty() || *tool.app_id == params.app)
            && (words.is_empty() || {
                let text = format!("{} {}", tool.tool.name, tool.description()).to_lowercase();
                words.iter().all(|word| text.contains(word))
            })
    };
    let mut found: Vec<&Arc<ToolEntry>> = all.iter().copied().filter(|tool| fits(tool)).collect();
    found.sort_by(|a, b| a.app_id.cmp(&b.app_id).then_with(|| a.name.cmp(&b.name)));
    let at = page_number(&params.page, ROWS, found.len());
    let shown: Vec<&Arc<ToolEntry>> = found.iter().copied().skip(at * ROWS).take(ROWS).collect();
    let link = |page: usize| {
        format!("/console/tools?q={}&app={}&page={page}", encode(&params.q), encode(&params.app))
    };
    let held_back = pins::count(&state);
    let body = html! {
        h1 { "Tools" }
        @if held_back > 0 { p.notice.warn { a href="/console/pins" { (text::count(held_back, "pinned tool")) } " changed or new since they were approved." } }
        form.filter method="get" action="/console/tools" role="search" data-live="found" {
            div { label for="q" { "Name or description" } input #q name="q" type="search" maxlength="1000" value=(params.q); }
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
        div #found {
            p.soft role="status" {
                (text::count(found.len(), "tool"))
                @if found.len() != all.len() { " of " (text::grouped(all.len() as u64)) }
            }
            @if found.is_empty() && !words.is_empty() { p { "No name or description has these words. " a href=(format!("/console/search?q={}", encode(&params.q))) { "Search by meaning" } } }
            @for group in shown.chunk_by(|a, b| a.app_id == b.app_id) { (of_app(group)) }
            (pages(at, ROWS, found.len(), link))
        }
    };
    page(&state, StatusCode::OK, NavItem::Tools, "Tools", body)
}

fn of_app(group: &[&Arc<ToolEntry>]) -> Markup {
    let id = group.first().map(|tool| &*tool.app_id).unwrap_or_default();
    html! {
        section {
            h2 { (text::line(id, 64)) }
            ul.list.tools { @for tool in group { (row(tool)) } }
        }
    }
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

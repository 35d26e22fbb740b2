//! `/console/resources` and `/console/prompts`: resources, templates and prompts of all apps, and the contents of a resource.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Form,
    extract::{Query, State},
    response::Response,
};
use gatewright_core::{
    Owned,
    rmcp::model::{Prompt, Resource, ResourceContents, ResourceTemplate},
};
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;

use super::{NavItem, encode, page, page_number, pages, result, stale, token};
use crate::{ConsoleState, guard, text};

/// Items on one page.
const ROWS: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Params {
    q: String,
    app: String,
    page: String,
}

/// An item of an app, as the pages show it.
struct Item<'s> {
    app: &'s str,
    name: &'s str,
    title: Option<&'s str>,
    description: &'s str,
    scopes: &'s [String],
    /// Kind, media type, size, arguments.
    about: Vec<String>,
    /// A resource, which can be read.
    can_be_read: bool,
}

fn resource(one: &Owned<Resource>) -> Item<'_> {
    let item = &one.item;
    let size = item.size.map(text::size);
    Item {
        app: &one.owner.id,
        name: &one.key,
        title: Some(item.title.as_deref().unwrap_or(&item.name)),
        description: item.description.as_deref().unwrap_or_default(),
        scopes: &one.scopes,
        about: item.mime_type.iter().cloned().chain(size).collect(),
        can_be_read: true,
    }
}

fn template(one: &Owned<ResourceTemplate>) -> Item<'_> {
    let item = &one.item;
    Item {
        app: &one.owner.id,
        name: &one.key,
        title: Some(item.title.as_deref().unwrap_or(&item.name)),
        description: item.description.as_deref().unwrap_or_default(),
        scopes: &one.scopes,
        about: std::iter::once("template".to_owned()).chain(item.mime_type.clone()).collect(),
        can_be_read: false,
    }
}

fn prompt(one: &Owned<Prompt>) -> Item<'_> {
    let arguments = one.item.arguments.iter().flatten().map(|argument| {
        let required = if argument.required == Some(true) { " (required)" } else { "" };
        format!("{}{required}", argument.name)
    });
    Item {
        app: &one.owner.id,
        name: &one.key,
        title: one.item.title.as_deref(),
        description: one.item.description.as_deref().unwrap_or_default(),
        scopes: &one.scopes,
        about: arguments.take(20).collect(),
        can_be_read: false,
    }
}

pub(crate) async fn resources(
    State(state): State<Arc<ConsoleState>>,
    Query(params): Query<Params>,
) -> Response {
    resources_with(&state, StatusCode::OK, &params, html! {})
}

fn resources_with(state: &ConsoleState, status: StatusCode, params: &Params, outcome: Markup) -> Response {
    let snapshot = state.operator.gateway().registry().operator_snapshot();
    let items =
        snapshot.resources.iter().map(resource).chain(snapshot.templates.iter().map(template)).collect();
    let about = html! { p.soft { "Resources that clients may read, and templates of the addresses of more, with the scopes that each needs." } };
    let read = html! {
        form.filter method="post" action="/console/resources" {
            (token(state))
            div { label for="uri" { "Read a resource, by its URI" } input #uri name="uri" required maxlength="8000" autocomplete="off"; }
            button { "Read" }
        }
        (outcome)
    };
    let list = list(state, "/console/resources", "resource or template", params, items);
    let body = html! { h1 { "Resources" } (about) (list) section { h2 { "Contents" } (read) } };
    page(state, status, NavItem::Resources, "Resources", body)
}

pub(crate) async fn prompts(
    State(state): State<Arc<ConsoleState>>,
    Query(params): Query<Params>,
) -> Response {
    let snapshot = state.operator.gateway().registry().operator_snapshot();
    let items = snapshot.prompts.iter().map(prompt).collect();
    let list = list(&state, "/console/prompts", "prompt", &params, items);
    let body = html! {
        h1 { "Prompts" }
        p.soft { "Prompts that clients may get, with their arguments and the scopes that each needs." }
        (list)
    };
    page(&state, StatusCode::OK, NavItem::Prompts, "Prompts", body)
}

pub(crate) async fn read(
    State(state): State<Arc<ConsoleState>>,
    Form(typed): Form<HashMap<String, String>>,
) -> Response {
    let params = Params::default();
    if !typed.get(guard::FIELD).is_some_and(|token| state.guard.is_token(token)) {
        return resources_with(&state, StatusCode::FORBIDDEN, &params, stale());
    }
    let uri = typed.get("uri").map(|uri| uri.trim()).unwrap_or_default();
    let outcome = match state.operator.read(uri).await {
        Ok(contents) => html! {
            section.result #result aria-labelledby="result-title" tabindex="-1" {
                h2 #result-title { (text::line(uri, 200)) }
                @if contents.is_empty() { p.soft { "It is empty." } }
                @for one in &contents { (content(one)) }
            }
        },
        Err(error) => {
            html! { div.alert role="alert" { strong { (text::line(&error.code, 60)) } " " (text::message(&error.message)) } }
        }
    };
    resources_with(&state, StatusCode::OK, &params, outcome)
}

fn content(one: &ResourceContents) -> Markup {
    html! {
        @match one {
            ResourceContents::TextResourceContents { text: contents, mime_type, .. } => {
                p.soft { (text::line(mime_type.as_deref().unwrap_or("text"), 80)) ", " (text::size(contents.len() as u64)) }
                (result::block(contents))
            }
            ResourceContents::BlobResourceContents { blob, mime_type, .. } => {
                p.soft { (text::line(mime_type.as_deref().unwrap_or("bytes"), 80)) ", " (text::size(blob.len() as u64 * 3 / 4)) ", not shown." }
            }
            _ => p.soft { "Contents of another kind." },
        }
    }
}

fn list(state: &ConsoleState, path: &str, what: &str, params: &Params, items: Vec<Item<'_>>) -> Markup {
    let snapshot = state.operator.gateway().registry().operator_snapshot();
    let words: Vec<String> = params.q.split_whitespace().map(str::to_lowercase).collect();
    let fits = |item: &Item<'_>| {
        (params.app.is_empty() || item.app == params.app)
            && (words.is_empty() || {
                let text = format!("{} {} {}", item.name, item.title.unwrap_or_default(), item.description);
                let text = text.to_lowercase();
                words.iter().all(|word| text.contains(word))
            })
    };
    let all = items.len();
    let mut found: Vec<Item<'_>> = items.into_iter().filter(fits).collect();
    found.sort_by(|a, b| a.app.cmp(b.app));
    let at = page_number(&params.page, ROWS, found.len());
    let link =
        |page: usize| format!("{path}?q={}&app={}&page={page}", encode(&params.q), encode(&params.app));
    let shown = &found[(at * ROWS).min(found.len())..];
    html! {
        form.filter method="get" action=(path) role="search" data-live="found" {
            div { label for="q" { "Name or description" } input #q name="q" type="search" maxlength="1000" value=(params.q); }
            div {
                label for="app" { "App" }
                select #app name="app" {
                    option value="" { "All apps" }
                    @for app in &snapshot.apps { option value=(app.id) selected[*app.id == params.app] { (text::line(&app.id, 60)) } }
                }
            }
            button { "Filter" }
        }
        div #found {
            p.soft role="status" {
                @if all == 0 { "No app has a " (what) "." } @else { (text::grouped(found.len() as u64)) " of " (text::grouped(all as u64)) }
            }
            @for group in shown[..shown.len().min(ROWS)].chunk_by(|a, b| a.app == b.app) {
                section {
                    h2 { (text::line(group[0].app, 64)) }
                    ul.list.tools { @for item in group { (row(state, item)) } }
                }
            }
            (pages(at, ROWS, found.len(), link))
        }
    }
}

fn row(state: &ConsoleState, item: &Item<'_>) -> Markup {
    let title = item.title.map(|title| text::line(title, 100)).filter(|title| title != item.name);
    html! {
        li {
            span.name { (text::line(item.name, 300)) }
            @for about in &item.about { span.tag { (text::line(about, 60)) } }
            @for scope in item.scopes { span.tag { "scope " (text::line(scope, 60)) } }
            @if let Some(title) = &title { p { strong { (title) } } }
            @if !item.description.is_empty() { p { (text::line(item.description, 200)) } }
            @if item.can_be_read {
                form method="post" action="/console/resources#result" {
                    (token(state))
                    input type="hidden" name="uri" value=(item.name);
                    button.quiet aria-label={"Read " (text::line(item.name, 100))} { "Read" }
                }
            }
        }
    }
}

//! The pages. Here: their frame, and what several of them show.

pub(crate) mod executions;
pub(crate) mod overview;
pub(crate) mod result;
pub(crate) mod script;
pub(crate) mod search;
pub(crate) mod tool;
pub(crate) mod tools;
pub(crate) mod waterfall;

use std::{fmt::Write as _, sync::Arc};

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use gatewright_core::rmcp::{ServerHandler, model::ToolAnnotations};
use http::{HeaderValue, StatusCode, header};
use maud::{DOCTYPE, Markup, html};

use crate::{Shared, guard, text};

/// The places of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Overview,
    Tools,
    Search,
    Script,
    Executions,
    Nowhere,
}

const PLACES: [(Place, &str, &str); 5] = [
    (Place::Overview, "/console", "Overview"),
    (Place::Tools, "/console/tools", "Tools"),
    (Place::Search, "/console/search", "Search"),
    (Place::Script, "/console/script", "Script"),
    (Place::Executions, "/console/executions", "Executions"),
];

/// A whole page.
pub(crate) fn page(shared: &Shared, status: StatusCode, place: Place, title: &str, body: Markup) -> Response {
    let info = shared.desk.gateway().get_info().server_info;
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (text::line(title, 80)) " · " (text::line(&info.name, 60)) }
                link rel="icon" href="/console/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/console/style.css";
                script src="/console/script.js" defer {}
            }
            body {
                a.skip href="#content" { "Skip to content" }
                header.top {
                    div.brand {
                        strong { (text::line(&info.name, 60)) }
                        span.soft { (text::line(&info.version, 20)) }
                    }
                    nav aria-label="Console" {
                        @for (at, path, name) in PLACES {
                            a href=(path) aria-current=[(at == place).then_some("page")] { (name) }
                        }
                    }
                }
                main id="content" tabindex="-1" { (body) }
            }
        }
    };
    let mut response = (status, document.into_string()).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

/// Nothing is there.
pub(crate) async fn not_found(State(shared): State<Arc<Shared>>) -> Response {
    missing(&shared, "There is no such page.")
}

/// 404 with a reason.
pub(crate) fn missing(shared: &Shared, why: &str) -> Response {
    let body = html! {
        h1 { "Not here" }
        p { (why) }
        p { a href="/console" { "Back to the overview" } }
    };
    page(shared, StatusCode::NOT_FOUND, Place::Nowhere, "Not here", body)
}

/// The hidden field every form has.
pub(crate) fn token(shared: &Shared) -> Markup {
    html! { input type="hidden" name=(guard::FIELD) value=(shared.guard.token()); }
}

/// What a form of an older process gets: its own text back, and nothing was done.
pub(crate) fn stale() -> Markup {
    html! {
        div.alert role="alert" {
            strong { "Nothing was run." }
            " This page came from an earlier start of the server. Look at what you typed, then send it again."
        }
    }
}

/// A link to a tool's page.
pub(crate) fn tool_path(name: &str) -> String {
    format!("/console/tool?name={}", encode(name))
}

/// Percent-encodes all but unreserved characters (RFC 3986 §2.3).
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// A status with its colour; the word says it all.
pub(crate) fn status(ok: bool, word: &str) -> Markup {
    html! { span.status.ok[ok].bad[!ok] { (text::line(word, 40)) } }
}

/// What a tool says it does to the world.
pub(crate) fn hints(annotations: Option<&ToolAnnotations>) -> Markup {
    let Some(hints) = annotations else { return html! {} };
    html! {
        @if hints.read_only_hint == Some(true) { span.tag { "read-only" } }
        @else if hints.destructive_hint == Some(true) { span.tag.warn { "destructive" } }
        @if hints.idempotent_hint == Some(true) && hints.read_only_hint != Some(true) { span.tag { "idempotent" } }
        @if hints.open_world_hint == Some(true) { span.tag { "open world" } }
    }
}

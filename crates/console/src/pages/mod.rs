//! The pages. This file has their layout and the elements that several of them share.

pub(crate) mod approvals;
pub(crate) mod call;
pub(crate) mod calls;
mod charts;
pub(crate) mod configuration;
pub(crate) mod content;
pub(crate) mod overview;
pub(crate) mod pins;
mod policy;
pub(crate) mod result;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod script;
pub(crate) mod search;
mod source;
pub(crate) mod suggestions;
pub(crate) mod tool;
pub(crate) mod tools;
pub(crate) mod waterfall;

use std::{fmt::Write as _, sync::Arc, time::SystemTime};

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use gatewright_core::{
    Ending, codes,
    rmcp::{ServerHandler, model::ToolAnnotations},
};
use gatewright_pages::{mark, metadata};
use http::{HeaderValue, StatusCode, header};
use maud::{DOCTYPE, Markup, html};

use crate::{ConsoleState, assets, guard, text};

/// Items of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NavItem {
    Overview,
    Tools,
    Resources,
    Prompts,
    Search,
    Script,
    Calls,
    Runs,
    Approvals,
    Configuration,
    /// A page that is not in the navigation.
    Unlisted,
}

const NAV_ITEMS: [(NavItem, &str, &str); 10] = [
    (NavItem::Overview, "/console", "Overview"),
    (NavItem::Tools, "/console/tools", "Tools"),
    (NavItem::Resources, "/console/resources", "Resources"),
    (NavItem::Prompts, "/console/prompts", "Prompts"),
    (NavItem::Search, "/console/search", "Search"),
    (NavItem::Script, "/console/script", "Script"),
    (NavItem::Calls, "/console/calls", "Calls"),
    (NavItem::Runs, "/console/runs", "Runs"),
    (NavItem::Approvals, "/console/approvals", "Approvals"),
    (NavItem::Configuration, "/console/configuration", "Configuration"),
];

/// A whole page.
pub(crate) fn page(
    state: &ConsoleState,
    status: StatusCode,
    place: NavItem,
    title: &str,
    body: Markup,
) -> Response {
    let info = state.operator.gateway().get_info().server_info;
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                (metadata())
                title { (text::line(title, 80)) " · " (text::line(&info.name, 60)) }
                link rel="stylesheet" href=(assets::style());
                script src=(assets::script()) defer {}
            }
            body.console {
                a.skip href="#content" { "Skip to content" }
                header.top {
                    div.brand {
                        (mark())
                        span { (text::line(&info.name, 64)) " " span.soft { (text::line(&info.version, 20)) } }
                    }
                    nav aria-label="Console" {
                        @for (at, path, name) in NAV_ITEMS {
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
    response.headers_mut().insert(header::LINK, assets::preload());
    response
}

/// Responds with 404 to an unknown path.
pub(crate) async fn not_found(State(state): State<Arc<ConsoleState>>) -> Response {
    missing(&state, "There is no such page.")
}

/// A page with status 404 and a reason.
pub(crate) fn missing(state: &ConsoleState, why: &str) -> Response {
    let body = html! {
        h1 { "Not found" }
        p { (why) }
        p { a href="/console" { "Back to the overview" } }
    };
    page(state, StatusCode::NOT_FOUND, NavItem::Unlisted, "Not found", body)
}

/// The hidden field with the token that every form has.
pub(crate) fn token(state: &ConsoleState) -> Markup {
    html! { input type="hidden" name=(guard::FIELD) value=(state.guard.token()); }
}

/// The alert for a form from an earlier start of the server, which is not submitted.
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

/// A status as a coloured word.
pub(crate) fn status(ok: bool, word: &str) -> Markup {
    html! { span.status.ok[ok].bad[!ok] { (text::line(word, 40)) } }
}

/// Status of a call that its script still waits for.
pub(crate) const WAITING: &str = "waiting";

/// Status of a call that asked the user.
const INPUT_REQUIRED: &str = "input_required";

/// Colours of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    /// Somebody has to answer first.
    Waiting,
    Bad,
}

impl Tone {
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Waiting => "waits",
            Self::Bad => "bad",
        }
    }
}

/// The colour of a call that ended like this.
pub(crate) fn tone(ending: &Ending) -> Tone {
    match ending.status() {
        codes::APPROVAL_REQUIRED | INPUT_REQUIRED | WAITING => Tone::Waiting,
        _ if ending.is_ok() => Tone::Good,
        _ => Tone::Bad,
    }
}

/// The status of a call or of an execution.
pub(crate) fn ending(ending: &Ending) -> Markup {
    match tone(ending) {
        Tone::Good => status(true, "ok"),
        Tone::Bad => status(false, ending.status()),
        Tone::Waiting => {
            let word = match ending.status() {
                codes::APPROVAL_REQUIRED => "needs approval",
                INPUT_REQUIRED => "needs an answer",
                _ => WAITING,
            };
            html! { span.status.waits title=(ending.status()) { (word) } }
        }
    }
}

/// A time in UTC, with its day if that is not today.
pub(crate) fn time(at: SystemTime) -> Markup {
    let words = text::day_or_clock(at, SystemTime::now());
    html! { time datetime=(text::instant(at)) title=(text::instant(at)) { (words) } }
}

/// The subject of a caller, and the client if that has another name.
pub(crate) fn subject(subject: &str, client: Option<&str>) -> Markup {
    html! {
        (text::line(subject, 60))
        @if let Some(client) = client.filter(|client| *client != subject) { " via " (text::line(client, 60)) }
    }
}

/// Annotations of a tool as tags.
pub(crate) fn hints(annotations: Option<&ToolAnnotations>) -> Markup {
    let Some(hints) = annotations else { return html! {} };
    html! {
        @if hints.read_only_hint == Some(true) { span.tag { "read-only" } }
        @else if hints.destructive_hint == Some(true) { span.tag.warn { "destructive" } }
        @if hints.idempotent_hint == Some(true) && hints.read_only_hint != Some(true) { span.tag { "idempotent" } }
        @if hints.open_world_hint == Some(true) { span.tag { "open world" } }
    }
}

/// Links to the pages of a list of `count` items, of which the page `at` shows `rows`.
pub(crate) fn pages(at: usize, rows: usize, count: usize, link: impl Fn(usize) -> String) -> Markup {
    let has_more = count > at.saturating_add(1).saturating_mul(rows);
    html! {
        @if at > 0 || has_more {
            nav.pages aria-label="Pages" {
                @if at > 0 { a.button.quiet href=(link(at - 1)) { "Previous" } }
                @if has_more { a.button.quiet href=(link(at + 1)) { "Next" } }
            }
        }
    }
}

/// The number of a page, at most the last one of `count` items.
pub(crate) fn page_number(typed: &str, rows: usize, count: usize) -> usize {
    typed.parse().unwrap_or(0).min(count.saturating_sub(1) / rows)
}

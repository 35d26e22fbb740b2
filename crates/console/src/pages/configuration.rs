//! `/console/configuration`: the configuration that the server runs with, without secrets, and what waits for a restart.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use gatewright_pages::breakable;
use http::StatusCode;
use maud::{Markup, html};

use super::{NavItem, page};
use crate::{ConfigurationView, ConsoleState, text};

/// Keys of one section on the page.
const MOST: usize = 400;
/// Notes on the page.
const MOST_NOTES: usize = 50;
/// Characters of all values together.
const MOST_TEXT: usize = 48 * 1024;

pub(crate) async fn show(State(state): State<Arc<ConsoleState>>) -> Response {
    let body = match state.configuration() {
        Some(view) => shown(&view),
        None => {
            html! { p { "This server was not started from a file: its settings are in the program that started it." } }
        }
    };
    let body = html! { h1 { "Configuration" } (body) };
    page(&state, StatusCode::OK, NavItem::Configuration, "Configuration", body)
}

fn shown(view: &ConfigurationView) -> Markup {
    let sections = view.values.chunk_by(|a, b| section(&a.0) == section(&b.0));
    let mut left = MOST_TEXT;
    html! {
        p.soft { "The keys of the file as the server took them over. Secrets, and all that variables filled in, are not shown; " code { "gatewright check" } " tests a file before it is used." }
        @if view.refused { div.alert role="alert" { strong { "The file has errors." } " The last good one stays in force. The log has every error, and so does " code { "gatewright check" } "." } }
        dl.facts {
            div { dt { "Version" } dd { (view.generation) } }
            div { dt { "Waits for a restart" } dd { (text::count(view.restart.len(), "key")) } }
            div { dt { "Findings" } dd { (text::grouped(view.unknown_names as u64)) } }
        }
        @if !view.notes.is_empty() {
            section aria-labelledby="notes" {
                h2 #notes { "Findings" }
                p.soft { "Names of things that do not exist, and tools that are not offered as their servers define them." }
                ul.bullets { @for note in view.notes.iter().take(MOST_NOTES) { li { (text::prose(note, 1_000)) } } }
                @if view.unknown_names > view.notes.len().min(MOST_NOTES) { p.soft { "And " (view.unknown_names - view.notes.len().min(MOST_NOTES)) " more in the log." } }
            }
        }
        @if !view.restart.is_empty() {
            section aria-labelledby="restart" {
                h2 #restart { "Waits for a restart" }
                p.soft { "The file has other values for these keys than the server was started with." }
                ul.bullets { @for key in view.restart.iter().take(MOST) { li { code { (text::line(key, 200)) } } } }
            }
        }
        section aria-labelledby="keys" {
            h2 #keys { "Keys" }
            @if view.values.is_empty() { p { "The file sets none: all have their defaults." } }
            div.group {
                @for keys in sections {
                    @let name = section(&keys[0].0);
                    details open[keys.len() <= 30] {
                        summary { code { (text::line(name, 60)) } span.soft { (text::count(keys.len(), "key")) } }
                        dl.keys {
                            @for (key, value) in keys.iter().take(MOST) {
                                @let value = cut(value, &mut left);
                                div {
                                    dt { code { (breakable(&text::line(key, 200))) } @if view.restart.contains(key) { " " span.tag.warn { "restart" } } }
                                    dd { code { (breakable(&value)) } }
                                }
                            }
                        }
                        @if keys.len() > MOST { p.soft { (keys.len() - MOST) " more are not shown." } }
                    }
                }
            }
        }
    }
}

fn section(key: &str) -> &str {
    key.split('.').next().unwrap_or(key)
}

/// The value, as far as there is room on the page.
fn cut(value: &str, left: &mut usize) -> String {
    if *left == 0 {
        return "…".to_owned();
    }
    let shown = text::line(value, 300.min(*left));
    *left = left.saturating_sub(shown.len());
    shown
}

//! `/console/search`: what `codecall:search` finds, and why.

use std::sync::Arc;

use axum::{
    extract::{Query, State},
    response::Response,
};
use gatewright_search::{Explanation, Relation};
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;

use super::{Place, page, tool_path};
use crate::{Shared, text};

/// Hits shown.
const TOP: usize = 10;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    q: String,
}

pub(crate) async fn show(State(shared): State<Arc<Shared>>, Query(asked): Query<Asked>) -> Response {
    let Some(code_call) = &shared.code_call else {
        let body = html! { h1 { "Search" } p { "Code mode is off: there is no search. Set " code { "codecall.enabled" } "." } };
        return page(&shared, StatusCode::OK, Place::Search, "Search", body);
    };
    let query = asked.q.trim();
    let top = gatewright_search::Query::new(query).top_k(TOP);
    let found = if query.is_empty() { Vec::new() } else { code_call.explain(&top) };
    let body = html! {
        h1 { "Search" }
        p.soft { "What an agent gets from " code { "codecall:search" } ", with the reasons for each score." }
        form.filter method="get" action="/console/search" role="search" {
            div { label for="q" { "What you want to do, in plain words" } input #q name="q" type="search" value=(asked.q) required maxlength="1000"; }
            button { "Search" }
        }
        @if !query.is_empty() {
            p.soft role="status" { (text::count(found.len(), "hit")) }
            ol.hits { @for hit in &found { (row(hit)) } }
        }
    };
    page(&shared, StatusCode::OK, Place::Search, "Search", body)
}

fn row(explanation: &Explanation) -> Markup {
    let hit = &explanation.hit;
    html! {
        li {
            div.row {
                a.name href=(tool_path(&hit.name)) { (text::line(&hit.name, 100)) }
                (score(hit.score, "score"))
            }
            p { (text::line(&hit.description, 200)) }
            @if explanation.exact_name { p.soft { "The query is the tool's name." } }
            @if !explanation.terms.is_empty() {
                div.wide tabindex="0" role="region" aria-label=(format!("Terms of {}", text::line(&hit.name, 60))) {
                    table {
                        thead { tr { th scope="col" { "Word" } th scope="col" { "Found" } th scope="col" { "In" } th scope="col" { "Share" } } }
                        tbody {
                            @for term in &explanation.terms {
                                tr {
                                    td { (text::line(&term.query, 40)) }
                                    td { (text::line(&term.found, 40)) @if let Some(how) = relation(term.relation) { " " span.tag { (how) } } }
                                    td { (term.fields.join(", ")) }
                                    td { (score(term.share, "share")) }
                                }
                            }
                        }
                    }
                }
            }
            @if !explanation.missing.is_empty() {
                p.soft { "Not found: " (text::line(&explanation.missing.join(", "), 200)) }
            }
        }
    }
}

fn relation(relation: Relation) -> Option<&'static str> {
    match relation {
        Relation::Same => None,
        Relation::Joined => Some("joined"),
        Relation::Synonym => Some("synonym"),
        Relation::Typo => Some("typo"),
    }
}

/// 0 to 1, as a bar and as a number.
fn score(value: f32, what: &str) -> Markup {
    let value = value.clamp(0.0, 1.0);
    html! {
        span.score {
            svg.meter viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                rect x="0" y="0" width=(format!("{:.1}", value * 100.0)) height="10" {}
            }
            span { span.visually-hidden { (what) " " } (format!("{value:.3}")) }
        }
    }
}

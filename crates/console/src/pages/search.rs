//! `/console/search`: results of `codecall:search` with an explanation of their scores.

use std::sync::Arc;

use axum::{
    extract::{Query, State},
    response::Response,
};
use gatewright_codecall::CodeCall;
use gatewright_core::{AppHealth, Caller};
use gatewright_search::{Explanation, Relation};
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::{NavItem, encode, page, tool_path};
use crate::{ConsoleState, text};

/// Hits shown.
const TOP: usize = 10;
/// Texts of a tool's schema among which a word is looked for.
const MOST_TEXTS: usize = 2_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Params {
    q: String,
}

pub(crate) async fn show(State(state): State<Arc<ConsoleState>>, Query(params): Query<Params>) -> Response {
    let Some(code_call) = &state.code_call else {
        let body = html! { h1 { "Search" } p { "Code mode is off: there is no search. Set " code { "codecall.enabled" } "." } };
        return page(&state, StatusCode::OK, NavItem::Search, "Search", body);
    };
    let query = params.q.trim();
    let top = gatewright_search::Query::new(query).top_k(TOP);
    let found = if query.is_empty() {
        Vec::new()
    } else {
        let mut found = explained(code_call, &top, &state.operator.caller()).await;
        found.iter_mut().for_each(|(hit, _)| words(&state, hit));
        found
    };
    let body = html! {
        h1 { "Search" }
        p.soft { "The results that an agent gets from " code { "codecall:search" } ", with the reasons for each score." }
        form.filter method="get" action="/console/search" role="search" {
            div { label for="q" { "What you want to do, in plain words" } input #q name="q" type="search" value=(params.q) required maxlength="1000"; }
            button { "Search" }
        }
        @if !query.is_empty() {
            p.soft role="status" { (text::count(found.len(), "hit")) }
            @if found.is_empty() { (advice(&state, query)) }
            ol.list.hits { @for (hit, meaning) in &found { (row(hit, meaning.as_ref())) } }
        }
    };
    page(&state, StatusCode::OK, NavItem::Search, "Search", body)
}

/// Replaces stems of words that only the tool's parameters have by these words.
fn words(state: &ConsoleState, hit: &mut Explanation) {
    let snapshot = state.operator.gateway().registry().operator_snapshot();
    let Some(tool) = snapshot.tool(&hit.hit.name) else { return };
    let mut texts: Option<Vec<&str>> = None;
    for term in hit.terms.iter_mut().filter(|term| term.found == term.stem) {
        let texts = texts.get_or_insert_with(|| {
            let mut texts = vec![&*tool.app_id];
            collect(tool.input_schema().get("properties"), &mut texts);
            texts
        });
        if let Some(word) = gatewright_search::word_of(&term.stem, texts.iter().copied()) {
            term.found = word;
        }
    }
}

/// Texts of a schema, names of properties among them, at most [`MOST_TEXTS`].
fn collect<'v>(value: Option<&'v Value>, texts: &mut Vec<&'v str>) {
    if texts.len() >= MOST_TEXTS {
        return;
    }
    match value {
        Some(Value::String(text)) => texts.push(text),
        Some(Value::Array(items)) => items.iter().for_each(|item| collect(Some(item), texts)),
        Some(Value::Object(fields)) => {
            for (name, value) in fields {
                texts.push(name);
                collect(Some(value), texts);
            }
        }
        _ => {}
    }
}

/// Advice where nothing was found.
fn advice(state: &ConsoleState, query: &str) -> Markup {
    let snapshot = state.operator.gateway().registry().operator_snapshot();
    let down: Vec<String> = snapshot
        .apps
        .iter()
        .filter(|app| app.app.health() != AppHealth::Up)
        .take(5)
        .map(|app| text::line(&app.id, 64))
        .collect();
    html! {
        div.notice {
            p { strong { "No tool is near enough." } " An agent gets an empty list for this, too." }
            ul.bullets {
                li { "Say what the tool does and to what, as in " em { "list unpaid invoices" } ", rather than the name of a product." }
                li { "Look for a part of the name in the " a href=(format!("/console/tools?q={}", encode(query))) { "list of tools" } "." }
                @if !down.is_empty() { li { "Tools of apps that never connected are not found: " (down.join(", ")) "." } }
                li { "If agents ask for it in these words, describe the tool in them: " code { "apps.X.tools.Y.description" } " replaces a description." }
                li { code { "codecall.embedding.strategy: embedding" } " also finds tools that have none of the words." }
            }
        }
    }
}

/// Semantic scores of a hit, with the strategy `embedding`.
struct Meaning {
    /// The score by words alone, 0 to 1.
    words: f32,
    /// Cosine similarity of the vectors, -1 to 1, if they were compared.
    cosine: Option<f32>,
    /// Ranking scores, in standard deviations: by words, by meaning, and by the better of the two.
    place: [f32; 3],
}

async fn explained(
    code_call: &CodeCall,
    query: &gatewright_search::Query<'_>,
    operator: &Caller,
) -> Vec<(Explanation, Option<Meaning>)> {
    let Some(hits) = code_call.explain_semantic(query, operator).await else {
        return code_call.explain(query, operator).await.into_iter().map(|hit| (hit, None)).collect();
    };
    let explained = hits.into_iter().map(|(blended, mut words)| {
        words.hit.score = blended.score;
        let place = [blended.by_words, blended.by_meaning, blended.by_either];
        (words, Some(Meaning { words: blended.words, cosine: blended.cosine, place }))
    });
    explained.collect()
}

fn row(explanation: &Explanation, meaning: Option<&Meaning>) -> Markup {
    let hit = &explanation.hit;
    html! {
        li {
            div.row {
                a.name href=(tool_path(&hit.name)) { (text::line(&hit.name, 100)) }
                (score(hit.score, "score"))
            }
            p { (text::line(&hit.description, 200)) }
            @if explanation.exact_name { p.soft { "The query is the tool's name." } }
            @if let Some(meaning) = meaning {
                @let Meaning { words, cosine, place: [by_words, by_meaning, by_either] } = meaning;
                p.soft {
                    "By words " (format!("{words:.3}"))
                    @if let Some(cosine) = cosine { ", in meaning " (format!("{cosine:.3}")) " (cosine)" }
                    @if !explanation.exact_name {
                        (format!("; placed by words {by_words:+.2}, meaning {by_meaning:+.2}, the better {by_either:+.2}"))
                    }
                    @if explanation.terms.is_empty() && !explanation.exact_name { "; not among the 100 best by words" }
                }
            }
            @if !explanation.terms.is_empty() {
                div.wide tabindex="0" role="region" aria-label=(format!("Terms of {}", text::line(&hit.name, 60))) {
                    table {
                        thead { tr { th scope="col" { "Word" } th scope="col" { "Found" } th scope="col" { "In" } th scope="col" { "Share" } } }
                        tbody {
                            @for term in &explanation.terms {
                                tr {
                                    td { (text::line(&term.query, 40)) }
                                    td { (text::line(&term.found, 40)) @if let Some(how) = relation(term.relation) { " " span.tag { (how) } } }
                                    td.wraps { (term.fields.join(", ")) }
                                    td { (score(term.share, "share")) }
                                }
                            }
                        }
                    }
                }
            }
            @if let (Some(cosine), None) = (explanation.meaning, meaning) {
                p.soft { "In meaning " (format!("{cosine:.3}")) " (cosine of the words' vectors)" }
            }
            @if explanation.used > 0.0 {
                p.soft { "Called after searches for these words: " (score(explanation.used, "use")) }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn hit() -> Explanation {
        let hit = gatewright_search::Hit {
            name: "crm:users_list".to_owned(),
            app_id: "crm".to_owned(),
            description: "List <users>".to_owned(),
            score: 0.27,
        };
        Explanation {
            hit,
            exact_name: false,
            used: 0.0,
            meaning: None,
            matched: 0.0,
            terms: Vec::new(),
            missing: Vec::new(),
        }
    }

    #[test]
    fn a_hit_found_by_its_meaning_says_how_near_it_is_and_what_its_place_follows() {
        let meaning = Meaning { words: 0.0, cosine: Some(0.54), place: [0.1, 4.7, 1.6] };
        let shown = row(&hit(), Some(&meaning)).into_string();
        for part in [
            "By words 0.000, in meaning 0.540 (cosine)",
            "placed by words +0.10, meaning +4.70, the better +1.60",
            "; not among the 100 best by words",
            "List &lt;users&gt;",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    #[test]
    fn a_hit_found_by_words_alone_says_nothing_of_meaning() {
        assert!(!row(&hit(), None).into_string().contains("meaning"));
    }
}

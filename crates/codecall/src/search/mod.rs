//! `codecall:search`: finds tools by what they do.

mod absent;
mod browse;
mod hit;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::SystemTime};

use gatewright_core::{Caller, ToolEntry, View, off_thread};
use gatewright_embedding::Blended;
use gatewright_search::{Entry, Explanation, Hit, MAX_TOP_K, Query, SearchResult, Usage, Visible};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    CodeCall,
    live_index::{self, Current},
    settings::Settings,
    shapes::Shapes,
    usage::SearchUsage,
};
use browse::Page;
pub(crate) use hit::parameters;

/// Input of `codecall:search`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SearchInput {
    #[serde(default)]
    query: String,
    #[serde(default)]
    cursor: Option<String>,
    #[serde(default)]
    top_k: Option<f64>,
    #[serde(default)]
    filter: Option<Filter>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Filter {
    #[serde(default)]
    app_ids: Option<Vec<String>>,
}

/// Contract: `topK` default 5.
const DEFAULT_TOP_K: usize = 5;
/// Part of the best score below which a hit is left out of an answer whose length nobody asked for. On the sets of the search
/// benchmark it costs no recall.
const WORTH_SHOWING: f32 = 0.3;

impl CodeCall {
    /// Finds tools by a query; without one, lists apps, or the tools of the apps in the filter. Apps that are making their first
    /// connection are waited for.
    ///
    /// # Errors
    /// A sentence, when the input contradicts itself.
    pub(crate) async fn search(&self, input: SearchInput, caller: &Caller) -> Result<Value, String> {
        let registry = self.invoker.registry();
        registry.first_connections().await;
        let view = registry.ready_view(caller).await;
        let is_query = !input.query.trim().is_empty();
        if is_query && input.cursor.is_some() {
            return Err("/cursor: lists have pages, and searches do not; leave `query` out, or raise `topK`"
                .to_owned());
        }
        let lookup = Lookup::new(input, view, self.settings(), &self.usage);
        let (mut ranking, mut status) = (None, None);
        if is_query {
            let current = self.index.with_tools_of(registry.tools_version()).await;
            let made = match self.semantic.search() {
                Some(semantic) => {
                    let shown = |document: &str| lookup.shows(document);
                    let answer = semantic.search(&lookup.query(&shown)).await;
                    status = self.semantic.status(Some(&answer.status));
                    Some(answer.result)
                }
                None => {
                    status = self.semantic.status(None);
                    None
                }
            };
            ranking = Some(Ranking { current, made });
        }
        let (shapes, usage, caller) = (self.shapes.clone(), self.usage.clone(), caller.clone());
        // Every tool of the caller is looked at, and schemas are as long as their servers like.
        off_thread(usize::MAX, move || {
            let mut body = match ranking {
                Some(ranking) => lookup.found(ranking, &shapes, &usage, &caller),
                None => lookup.browse()?,
            };
            if let Some(status) = status {
                body["indexStatus"] = status;
            }
            absent::note(&mut body, &lookup.view, lookup.apps.as_deref(), &lookup.settings);
            Ok(body)
        })
        .await
    }

    /// The terms and fields that scored, for each hit that `caller` may see, when ranked by words.
    pub async fn explain(&self, query: &Query<'_>, caller: &Caller) -> Vec<Explanation> {
        let view = self.invoker.registry().ready_view(caller).await;
        let shown = |document: &str| tool_of(&view, document).is_some();
        let counts = self.usage.counts();
        let usage = counts.as_deref().map(|counts| (counts, SystemTime::now()));
        let query = Query { usage, ..query.visible(Visible::By(&shown)) };
        self.index.current().index.explain(&query).into_iter().map(by_tool_name).collect()
    }

    /// The hits of the strategy `embedding` that `caller` may see and how each came to its place, with which terms and fields scored:
    /// none for a tool that has no word of the query. `None` when answers are lexical.
    pub async fn explain_semantic(
        &self,
        query: &Query<'_>,
        caller: &Caller,
    ) -> Option<Vec<(Blended, Explanation)>> {
        let view = self.invoker.registry().ready_view(caller).await;
        let shown = |document: &str| tool_of(&view, document).is_some();
        let counts = self.usage.counts();
        let usage = counts.as_deref().map(|counts| (counts, SystemTime::now()));
        let query = Query { usage, ..query.visible(Visible::By(&shown)) };
        let hits = self.semantic.search()?.explain(&query).await?;
        let wide = query.top_k(MAX_TOP_K).min_score(0.0);
        let index = &self.index.current().index;
        let mut words = index.explain(&wide);
        let explained = hits.into_iter().filter_map(|hit| {
            let words = match words.iter().position(|one| one.hit.name == hit.name) {
                Some(at) => words.swap_remove(at),
                // Gone meanwhile, if it has no entry.
                None => without_words(index.entry(&hit.name)?, hit.score),
            };
            let hit = Blended { name: live_index::tool_name(&hit.name).to_owned(), ..hit };
            Some((hit, by_tool_name(words)))
        });
        Some(explained.collect())
    }
}

/// A search for a caller with this view.
struct Lookup {
    query: String,
    cursor: Option<String>,
    top_k: Option<usize>,
    apps: Option<Vec<String>>,
    view: View,
    settings: Arc<Settings>,
    /// Calls after searches, and the time of this one.
    used: Option<(Arc<Usage>, SystemTime)>,
}

/// The order of hits.
struct Ranking {
    /// The tools, which are ranked by words if `made` is none.
    current: Arc<Current>,
    /// Hits of a semantic search.
    made: Option<SearchResult>,
}

impl Lookup {
    fn new(input: SearchInput, view: View, settings: Arc<Settings>, usage: &SearchUsage) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the schema bounds it to 1-100"
        )]
        let top_k = input.top_k.map(|top_k| top_k as usize);
        let apps = input.filter.and_then(|filter| filter.app_ids);
        let used = usage.counts().map(|counts| (counts, SystemTime::now()));
        Self { query: input.query, cursor: input.cursor, top_k, apps, view, settings, used }
    }

    fn in_code(&self, tool: &ToolEntry) -> bool {
        self.settings.config.mode.in_code(tool)
    }

    /// Returns `true` if the caller may see the tool that a document is about.
    fn shows(&self, document: &str) -> bool {
        tool_of(&self.view, document).is_some_and(|tool| self.in_code(tool))
    }

    fn query<'q>(&'q self, shown: &'q (dyn Fn(&str) -> bool + Sync)) -> Query<'q> {
        let query = Query::new(self.query.trim())
            .top_k(self.top_k.unwrap_or(DEFAULT_TOP_K))
            .app_ids(self.apps.as_deref())
            .visible(Visible::By(shown));
        let query = Query { usage: self.used.as_ref().map(|(usage, now)| (&**usage, *now)), ..query };
        match self.settings.config.embedding.similarity_threshold {
            Some(threshold) => query.min_score(threshold),
            None => query,
        }
    }

    fn found(&self, ranking: Ranking, shapes: &Shapes, usage: &SearchUsage, caller: &Caller) -> Value {
        let index = &ranking.current.index;
        let shown = |document: &str| self.shows(document);
        let found = ranking.made.unwrap_or_else(|| index.search(&self.query(&shown)));
        if let Some((_, now)) = self.used {
            let names = found.hits.iter().map(|hit| hit.name.as_str());
            usage.searched(caller, index.usage_terms(&self.query), names, now);
        }
        // A caller who says how many gets as many.
        let first = found.hits.first().filter(|_| self.top_k.is_none());
        let least = first.map_or(0.0, |best| best.score * WORTH_SHOWING);
        let hits = found.hits.iter().filter(|found| found.score >= least).filter_map(|found| {
            // Three decimals say all there is to say, and cost a model fewer tokens.
            let score = (f64::from(found.score) * 1_000.0).round() / 1_000.0;
            Some((&**tool_of(&self.view, &found.name)?, score))
        });
        let hits = hit::hits(hits, shapes, caller);
        let is_empty = hits.is_empty();
        let mut body = json!({"tools": hits, "totalIndexed": found.total_indexed});
        if is_empty {
            body["hint"] = "no tool has these words; search without query lists the apps".into();
        }
        body
    }

    fn browse(&self) -> Result<Value, String> {
        let (cursor, in_code) = (self.cursor.as_deref(), |tool: &ToolEntry| self.in_code(tool));
        match self.apps.as_deref() {
            None => Ok(browse::apps(&self.view, in_code, &Page::new("apps", self.top_k, cursor)?)),
            Some(apps) => {
                Ok(browse::tools(&self.view, in_code, apps, &Page::new("tools", self.top_k, cursor)?))
            }
        }
    }
}

/// The tool that a document is about, as `view` has it.
fn tool_of<'v>(view: &'v View, document: &str) -> Option<&'v Arc<ToolEntry>> {
    view.shows(live_index::tool_name(document)).filter(|tool| live_index::document_name(tool) == document)
}

fn by_tool_name(mut explanation: Explanation) -> Explanation {
    let name = &mut explanation.hit.name;
    name.truncate(live_index::tool_name(name).len());
    explanation
}

fn without_words(entry: Entry<'_>, score: f32) -> Explanation {
    let hit = Hit {
        name: entry.name.to_owned(),
        app_id: entry.app_id.to_owned(),
        description: entry.description.to_owned(),
        score,
    };
    Explanation {
        hit,
        exact_name: false,
        meaning: None,
        used: 0.0,
        matched: 0.0,
        terms: Vec::new(),
        missing: Vec::new(),
    }
}

//! The search index, kept in step with the registry.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use gatewright_core::{Change, Notice, Registry, ToolEntry};
use gatewright_search::{Change as IndexChange, Document, Index};
use tokio::sync::{broadcast::error::RecvError, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{Meaning, semantic::Semantic};

/// A search index that follows the registry.
#[derive(Debug)]
pub(crate) struct LiveIndex {
    current: Arc<ArcSwap<Current>>,
    /// Told of each new index.
    renewed: watch::Receiver<()>,
    _stop: DropGuard,
}

/// An index and the tools it was made from: those of all callers. Hits are for the caller's view to filter.
#[derive(Debug, Default)]
pub(crate) struct Current {
    pub(crate) index: Index,
    tools: Vec<Arc<ToolEntry>>,
    /// The registry's version of the tools, at least.
    version: u64,
}

impl LiveIndex {
    /// Indexes what `registry` offers, and follows it until dropped. What is indexed is handed to `semantic` too.
    pub(crate) fn follow(registry: Arc<Registry>, semantic: Semantic, meaning: Meaning) -> Self {
        let mut changes = registry.changes();
        let version = registry.tools_version();
        let empty = match meaning {
            Meaning::On => Index::default(),
            Meaning::Off => Index::by_words(),
        };
        let first = Current { index: empty, ..Current::default() }.caught_up(registry.all_tools(), version);
        let current = Arc::new(ArcSwap::from_pointee(first));
        let (renew, renewed) = watch::channel(());
        let stop = CancellationToken::new();
        let (following, stopped) = (current.clone(), stop.clone());
        tokio::spawn(async move {
            loop {
                let change = tokio::select! {
                    notice = changes.recv() => notice.map(|Notice { change, .. }| change),
                    () = semantic.came() => Ok(Change::Tools),
                    () = stopped.cancelled() => return,
                };
                match change {
                    Ok(Change::Tools) | Err(RecvError::Lagged(_)) => {}
                    Ok(_) => continue,
                    Err(RecvError::Closed) => return,
                }
                // Read before the tools: they are of this version or a later one.
                let version = registry.tools_version();
                let (old, tools, semantic) = (following.load_full(), registry.all_tools(), semantic.clone());
                // Indexing ten thousand tools takes long enough to hold up other tasks of this thread.
                let caught_up = tokio::task::spawn_blocking(move || {
                    let new = old.caught_up(tools, version);
                    semantic.feed(&new.index);
                    new
                });
                if let Ok(new) = caught_up.await {
                    following.store(Arc::new(new));
                    renew.send_replace(());
                }
            }
        });
        Self { current, renewed, _stop: stop.drop_guard() }
    }

    pub(crate) fn current(&self) -> Arc<Current> {
        self.current.load_full()
    }

    /// The index once it has the tools of `version`; the one of the moment if that takes long.
    pub(crate) async fn with_tools_of(&self, version: u64) -> Arc<Current> {
        let mut renewed = self.renewed.clone();
        let caught_up = async {
            while self.current.load().version < version {
                renewed.mark_unchanged();
                if self.current.load().version >= version || renewed.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(LONGEST_WAIT, caught_up).await;
        self.current()
    }
}

/// Longest wait of a search for the index to have the tools that the registry has.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

impl Current {
    /// The index of `tools`, made from this one: only apps whose tools changed are indexed again.
    fn caught_up(&self, tools: Vec<Arc<ToolEntry>>, version: u64) -> Self {
        let old = by_app(&self.tools);
        let new = by_app(&tools);
        let gone = old.keys().filter(|app| !new.contains_key(*app));
        let mut changes: Vec<IndexChange> = gone
            .map(|app| IndexChange::ReplaceApp { app_id: (*app).to_owned(), documents: Vec::new() })
            .collect();
        for (app, tools) in &new {
            match old.get(app) {
                Some(before) => changes.extend(app_changes(before, tools)),
                None => changes.push(IndexChange::ReplaceApp {
                    app_id: (*app).to_owned(),
                    documents: tools.iter().map(|tool| document(tool)).collect(),
                }),
            }
        }
        Self { index: self.index.updated(changes), tools, version }
    }
}

fn by_app(tools: &[Arc<ToolEntry>]) -> BTreeMap<&str, Vec<&Arc<ToolEntry>>> {
    let mut apps: BTreeMap<&str, Vec<&Arc<ToolEntry>>> = BTreeMap::new();
    for tool in tools {
        apps.entry(&tool.app_id).or_default().push(tool);
    }
    apps
}

/// Changes within one app. An entry of the registry keeps its identity while its tool stays the same.
fn app_changes(before: &[&Arc<ToolEntry>], after: &[&Arc<ToolEntry>]) -> Vec<IndexChange> {
    let by_document = |tools: &[&Arc<ToolEntry>]| -> HashMap<String, Arc<ToolEntry>> {
        tools.iter().map(|tool| (document_name(tool).into_owned(), Arc::clone(tool))).collect()
    };
    let (old, new) = (by_document(before), by_document(after));
    let removed = before.iter().map(|tool| document_name(tool)).filter(|name| !new.contains_key(&**name));
    let is_new =
        |tool: &&&Arc<ToolEntry>| old.get(&*document_name(tool)).is_none_or(|same| !Arc::ptr_eq(same, tool));
    let changed = after.iter().filter(is_new).map(|tool| IndexChange::Upsert(document(tool)));
    removed.map(|name| IndexChange::Remove(name.into_owned())).chain(changed).collect()
}

fn document(tool: &ToolEntry) -> Document {
    Document {
        name: document_name(tool).into_owned(),
        app_id: tool.app_id.to_string(),
        description: tool.description().to_owned(),
        input_schema: tool.input_schema().clone(),
    }
}

/// Between the name of a tool and what tells it apart from others of that name. No character of names or queries.
const VARIANT: char = '\u{1f}';

/// The name of a tool's document: that of the tool, and, where callers have different tools of one name, its variant in characters that
/// are no part of words.
pub(crate) fn document_name(tool: &ToolEntry) -> Cow<'_, str> {
    let Some(variant) = tool.variant else { return Cow::Borrowed(&tool.name) };
    // Sixteen control characters, none of them white space.
    let digit = |nibble: u8| char::from(if nibble < 8 { nibble + 0x01 } else { nibble - 8 + 0x0e });
    let digits = variant.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]);
    Cow::Owned(tool.name.chars().chain([VARIANT]).chain(digits).collect())
}

/// The tool's name in that of its document.
pub(crate) fn tool_name(document: &str) -> &str {
    document.split_once(VARIANT).map_or(document, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use gatewright_search::Query;

    use super::*;

    #[test]
    fn a_variant_of_a_name_is_found_and_scored_like_the_name_itself() {
        let document = |name: &str| Document {
            name: name.to_owned(),
            app_id: "notes".to_owned(),
            description: "Show what was written".to_owned(),
            input_schema: Arc::default(),
        };
        let variant = "notes:list_pages\u{1f}\u{1}\u{8}\u{e}\u{15}";
        for query in ["list pages", "notes:list_pages", "notes_list_pages", "what was written"] {
            let score = |name: &str| {
                let found = Index::build([document(name)]).search(&Query::new(query));
                found.hits.first().map(|hit| hit.score)
            };
            let plain = score("notes:list_pages");
            assert!(plain.is_some(), "{query}");
            assert_eq!(score(variant), plain, "{query}");
        }
        assert_eq!(tool_name(variant), "notes:list_pages");
        assert_eq!(tool_name("notes:list_pages"), "notes:list_pages");
    }

    #[tokio::test]
    async fn a_document_shares_the_schema_of_its_tool() {
        for tool in crate::examples::testing::fixtures().await {
            assert!(Arc::ptr_eq(&document(&tool).input_schema, tool.input_schema()));
        }
    }
}

//! The search index, kept in step with the registry.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use arc_swap::ArcSwap;
use gatewright_core::{Change, Registry, Snapshot, ToolEntry};
use gatewright_search::{Change as IndexChange, Document, Index};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::semantic::Semantic;

/// A search index that follows the registry. Readers never wait: they use the snapshot of the moment.
#[derive(Debug)]
pub(crate) struct LiveIndex {
    current: Arc<ArcSwap<Current>>,
    _stop: DropGuard,
}

/// An index and the tools it was made from.
#[derive(Debug, Default)]
pub(crate) struct Current {
    pub(crate) index: Index,
    pub(crate) tools: Arc<Snapshot>,
}

impl LiveIndex {
    /// Indexes what `registry` offers, and follows it until dropped. What is indexed is handed to `semantic` too.
    pub(crate) fn follow(registry: Arc<Registry>, semantic: Semantic) -> Self {
        let mut changes = registry.changes();
        let current = Arc::new(ArcSwap::from_pointee(Current::default().caught_up(registry.snapshot())));
        let stop = CancellationToken::new();
        let (following, stopped) = (current.clone(), stop.clone());
        tokio::spawn(async move {
            loop {
                let change = tokio::select! {
                    change = changes.recv() => change,
                    () = semantic.came() => Ok(Change::Tools),
                    () = stopped.cancelled() => return,
                };
                match change {
                    Ok(Change::Tools) | Err(RecvError::Lagged(_)) => {}
                    Ok(_) => continue,
                    Err(RecvError::Closed) => return,
                }
                let (old, tools, semantic) = (following.load_full(), registry.snapshot(), semantic.clone());
                // Indexing ten thousand tools takes long enough to hold up other tasks of this thread.
                let caught_up = tokio::task::spawn_blocking(move || {
                    let new = old.caught_up(tools);
                    semantic.feed(&new.index);
                    new
                });
                if let Ok(new) = caught_up.await {
                    following.store(Arc::new(new));
                }
            }
        });
        Self { current, _stop: stop.drop_guard() }
    }

    pub(crate) fn current(&self) -> Arc<Current> {
        self.current.load_full()
    }
}

impl Current {
    /// The index of `tools`, made from this one: only apps whose tools changed are indexed again.
    fn caught_up(&self, tools: Arc<Snapshot>) -> Self {
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
        Self { index: self.index.updated(changes), tools }
    }
}

fn by_app(snapshot: &Snapshot) -> BTreeMap<&str, Vec<&Arc<ToolEntry>>> {
    let mut apps: BTreeMap<&str, Vec<&Arc<ToolEntry>>> = BTreeMap::new();
    for tool in &snapshot.tools {
        apps.entry(&tool.app_id).or_default().push(tool);
    }
    apps
}

/// What changed within one app. An entry of the registry keeps its identity while its tool stays the same.
fn app_changes(before: &[&Arc<ToolEntry>], after: &[&Arc<ToolEntry>]) -> Vec<IndexChange> {
    let old: HashMap<&str, &Arc<ToolEntry>> = before.iter().map(|tool| (&*tool.name, *tool)).collect();
    let new: HashMap<&str, &Arc<ToolEntry>> = after.iter().map(|tool| (&*tool.name, *tool)).collect();
    let removed = before.iter().filter(|tool| !new.contains_key(&*tool.name));
    let changed =
        after.iter().filter(|tool| old.get(&*tool.name).is_none_or(|same| !Arc::ptr_eq(same, tool)));
    removed
        .map(|tool| IndexChange::Remove(tool.name.to_string()))
        .chain(changed.map(|tool| IndexChange::Upsert(document(tool))))
        .collect()
}

fn document(tool: &ToolEntry) -> Document {
    Document {
        name: tool.name.to_string(),
        app_id: tool.app_id.to_string(),
        description: tool.description().to_owned(),
        input_schema: serde_json::Value::Object((**tool.input_schema()).clone()),
    }
}

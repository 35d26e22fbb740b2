//! One snapshot of the tools, with the keys of their vectors.

use std::{collections::HashSet, sync::Arc};

use gatewright_search::{Index, Query, Visible};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::{Key, text};

/// Vectors no tool needs any more that are kept all the same: an app that goes away often comes back.
const SPARE: usize = 1_000;

/// Progress of the vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum Status {
    /// Vectors are being made; answers are lexical.
    Building {
        /// Texts that have their vector.
        done: usize,
        /// Texts there are.
        total: usize,
    },
    /// Answers are blended.
    Ready,
    /// The model or the store failed; answers are lexical.
    Unavailable {
        /// Stable code of the error.
        code: &'static str,
    },
}

/// The tools that are searched. Immutable, like the index it is made from.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    pub(crate) index: Index,
    /// For each tool, by name: its vector's key.
    pub(crate) keys: FxHashMap<String, Key>,
    /// Tools with the same text share a vector.
    pub(crate) names: FxHashMap<Key, Vec<String>>,
    /// Keys that earlier snapshots had and this one does not need.
    pub(crate) gone: Vec<Key>,
}

impl Tools {
    /// The snapshot for `index` after `before`.
    pub(crate) fn of(index: Index, model: &str, before: &Self) -> Self {
        let mut keys = FxHashMap::with_capacity_and_hasher(index.len(), Default::default());
        let mut names: FxHashMap<Key, Vec<String>> =
            FxHashMap::with_capacity_and_hasher(index.len(), Default::default());
        for entry in index.entries() {
            let key = text::key(model, &text::of(&entry));
            keys.insert(entry.name.to_owned(), key);
            names.entry(key).or_default().push(entry.name.to_owned());
        }
        let earlier = before.names.keys().chain(&before.gone);
        let gone = earlier.filter(|key| !names.contains_key(key)).copied().collect();
        Self { index, keys, names, gone }
    }

    /// Keys to remove from the store: none until there are many.
    pub(crate) fn to_forget(&self) -> &[Key] {
        if self.gone.len() > SPARE { &self.gone } else { &[] }
    }

    /// Keys of the tools that the filters of `query` leave, each once and in order, or `None` if they leave all.
    pub(crate) fn among(&self, query: &Query<'_>) -> Option<Vec<Key>> {
        if query.app_ids.is_none() && matches!(query.visible, Visible::All) {
            return None;
        }
        let names: Vec<&str> = self.index.visible_names(query.app_ids, query.visible).collect();
        (names.len() < self.index.len()).then(|| self.keys_of(names))
    }

    /// Keys of tools, each once and in order.
    pub(crate) fn keys_of<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<Key> {
        let mut keys: Vec<Key> = names.into_iter().filter_map(|name| self.keys.get(name)).copied().collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Returns the texts whose vectors the store lacks, each once.
    pub(crate) fn texts(&self, missing: &HashSet<Key>) -> Vec<(Key, String)> {
        let mut seen = HashSet::new();
        self.index
            .entries()
            .filter(|entry| {
                self.keys.get(entry.name).is_some_and(|key| missing.contains(key) && seen.insert(*key))
            })
            .filter_map(|entry| Some((*self.keys.get(entry.name)?, text::of(&entry))))
            .collect()
    }
}

/// The tools that are searched, and the progress of their vectors.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) tools: Arc<Tools>,
    pub(crate) status: Status,
    /// Counts snapshots.
    pub(crate) generation: u64,
}
